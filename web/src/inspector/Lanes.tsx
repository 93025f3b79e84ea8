import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";

import { theme } from "../theme";
import { useStore } from "../store";
import { brief } from "../time";
import { type Axis, axis, lanes, nearest, describe } from "./axis";
import type { Replay, Trace } from "./trace";

/** The canvas in pixels: its height, where the names of tools end, and the lanes. */
const height = 96;
const head = 16;
const lane = 26;
const colours = ["--info", "--ok", "--reason"] as const;

interface LanesProps {
  trace: Trace; replay: Replay; names: ReadonlyMap<string, string>;
  /** When each commit was shown here, by the log's clock. */
  shown: readonly (number | undefined)[];
  /** The moment that is looked at, by the log's clock. */
  at: number;
  /** What is told of a commit, and of the moment. */
  tell: (i: number) => string; now: string;
  pin: (i: number) => void;
}

/** Three lanes on one axis of time: arrived, stored, shown here. */
export function Lanes({ trace, replay, names, shown, at, tell, now, pin }: LanesProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [over, setOver] = useState(-1);
  const dark = useStore(theme);
  const a = useMemo(() => axis(trace, shown, replay, names, width), [trace, shown, replay, names, width]);
  useEffect(() => {
    const seen = new ResizeObserver(([e]) => setWidth(Math.floor(e!.contentRect.width)));
    seen.observe(canvas.current!);
    return () => seen.disconnect();
  }, []);
  useEffect(() => {
    if (width > 0) draw(canvas.current!, a, width, at, over < 0 ? undefined : trace.commits[over]!.arrival);
  }, [a, width, at, over, trace, dark]);
  const find = (e: PointerEvent) => {
    const box = e.currentTarget.getBoundingClientRect();
    const which = Math.min(lanes.length - 1, Math.max(0, Math.floor((e.clientY - box.top - head) / lane)));
    const time = a.from + ((e.clientX - box.left) / Math.max(1, width - 1)) * (a.to - a.from);
    const found = nearest(trace, shown, which, time);
    return found < 0 ? nearest(trace, shown, 0, time) : found;
  };
  return (
    <figure className="lanes">
      <canvas ref={canvas} role="img" aria-label={describe(trace, a, shown, brief)} onPointerMove={(e) => setOver(find(e))} onPointerLeave={() => setOver(-1)}
        onClick={(e) => { const i = find(e as unknown as PointerEvent); if (i >= 0) pin(i); }} />
      <figcaption>
        <span className="ends"><span>0</span><span>{brief(a.to - a.from)}</span></span>
        <span className="key"><span className="arrived">arrived</span><span className="stored">stored</span><span className="seen">shown here</span><span className="first">first token</span>
          {a.tools.length > 0 && <span className="ran">tool</span>}{a.gaps.length > 0 && <span className="gap">gap over 2 s</span>}</span>
        <span className="over">{over >= 0 && trace.commits[over] ? tell(over) : now}</span>
      </figcaption>
    </figure>
  );
}

function draw(c: HTMLCanvasElement, a: Axis, width: number, at: number, over: number | undefined): void {
  const g = c.getContext("2d");
  if (!g) return;
  const scale = devicePixelRatio || 1;
  c.width = width * scale;
  c.height = height * scale;
  g.scale(scale, scale);
  const style = getComputedStyle(c);
  const fill = (name: string, x: number, y: number, w: number, h: number) => {
    g.fillStyle = style.getPropertyValue(name).trim();
    g.fillRect(x, y, w, h);
  };
  for (const t of a.tools) fill("--warn-soft", t.from, 0, Math.max(2, t.to - t.from - 1), height); // one and the next stay apart
  for (const gap of a.gaps) fill("--danger-soft", gap.from, head, Math.max(2, gap.to - gap.from), height - head);
  g.font = `11px ${style.getPropertyValue("--mono")}`;
  g.textBaseline = "middle";
  let free = 0; // up to where names are written
  for (const t of a.tools) {
    fill("--warn", t.from, 0, Math.max(2, t.to - t.from - 1), 2);
    const wide = g.measureText(t.name).width;
    if (t.from + 3 < free || t.from + 3 + wide > width) continue;
    g.fillStyle = style.getPropertyValue("--warn").trim();
    g.fillText(t.name, t.from + 3, 9);
    free = t.from + 9 + wide;
  }
  lanes.forEach((_, i) => {
    const floor = head + (i + 1) * lane - 4;
    fill("--line", 0, floor, width, 1);
    a.counts[i]!.forEach((n, x) => {
      if (n === 0) return;
      const high = Math.min(lane - 6, 10 + 3 * Math.log2(n)); // denser is higher
      fill(colours[i]!, x, floor - high, 1, high);
    });
  });
  if (a.first !== undefined) fill("--accent", a.first, 0, 1, height);
  if (over !== undefined) fill("--line-strong", a.pixel(over), 0, 1, height);
  fill("--text", a.pixel(at), 0, 1, height);
}
