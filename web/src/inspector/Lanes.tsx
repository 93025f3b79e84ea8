import { type PointerEvent, useLayoutEffect, useMemo, useRef, useState } from "react";

import { theme } from "../theme";
import { useStore } from "../store";
import { brief } from "../time";
import { type Axis, axis, lanes, nearest, describe } from "./axis";
import type { Replay, Trace } from "./trace";

/** The layout of the canvas in pixels: its height, the bottom of the tool names, and the lanes. */
const height = 96;
const head = 16;
const lane = 26;
const colours = ["--info", "--ok", "--reason"] as const;

interface LanesProps {
  trace: Trace; replay: Replay; names: ReadonlyMap<string, string>;
  /** The display time of each commit, by the log's clock. */
  shown: readonly (number | undefined)[];
  /** The selected moment, by the log's clock. */
  at: number;
  /** The descriptions of a commit and of the selected moment. */
  tell: (i: number) => string; now: string;
  pin: (i: number) => void;
}

/** Three lanes on one time axis: arrived, stored, displayed. */
export function Lanes({ trace, replay, names, shown, at, tell, now, pin }: LanesProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [hovered, setOver] = useState(-1);
  const dark = useStore(theme);
  const a = useMemo(() => axis(trace, shown, replay, names, width), [trace, shown, replay, names, width]);
  // Before the first painting, so that the figure isn't empty for a moment.
  useLayoutEffect(() => {
    setWidth(canvas.current!.clientWidth);
    const observer = new ResizeObserver(([e]) => setWidth(Math.floor(e!.contentRect.width)));
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (width > 0) draw(canvas.current!, a, width, at, hovered < 0 ? undefined : trace.commits[hovered]!.arrival);
  }, [a, width, at, hovered, trace, dark]);
  const find = (e: PointerEvent) => {
    const box = e.currentTarget.getBoundingClientRect();
    const laneIndex = Math.min(lanes.length - 1, Math.max(0, Math.floor((e.clientY - box.top - head) / lane)));
    const time = a.from + ((e.clientX - box.left) / Math.max(1, width - 1)) * (a.to - a.from);
    const match = nearest(trace, shown, laneIndex, time);
    return match < 0 ? nearest(trace, shown, 0, time) : match;
  };
  return (
    <figure className="lanes">
      <canvas ref={canvas} role="img" aria-label={describe(trace, a, shown, brief)} onPointerMove={(e) => setOver(find(e))} onPointerLeave={() => setOver(-1)}
        onClick={(e) => { const i = find(e as unknown as PointerEvent); if (i >= 0) pin(i); }} />
      <figcaption>
        <span className="ends"><span>0</span><span>{brief(a.to - a.from)}</span></span>
        <span className="key"><span className="arrived">arrived</span><span className="stored">stored</span><span className="seen">shown here</span><span className="first">first token</span>
          {a.tools.length > 0 && <span className="ran">tool</span>}{a.gaps.length > 0 && <span className="gap">gap over 2 s</span>}</span>
        <span className="pointed">{hovered >= 0 && trace.commits[hovered] ? tell(hovered) : now}</span>
      </figcaption>
    </figure>
  );
}

function draw(c: HTMLCanvasElement, a: Axis, width: number, at: number, hoverTime: number | undefined): void {
  const g = c.getContext("2d");
  if (!g) return;
  const scale = devicePixelRatio || 1;
  c.width = width * scale;
  c.height = height * scale;
  g.scale(scale, scale);
  const style = getComputedStyle(c);
  const fillRect = (name: string, x: number, y: number, w: number, h: number) => {
    g.fillStyle = style.getPropertyValue(name).trim();
    g.fillRect(x, y, w, h);
  };
  for (const t of a.tools) fillRect("--warn-soft", t.from, 0, Math.max(2, t.to - t.from - 1), height); // leave a gap between adjacent tools
  for (const gap of a.gaps) fillRect("--danger-soft", gap.from, head, Math.max(2, gap.to - gap.from), height - head);
  g.font = `11px ${style.getPropertyValue("--mono")}`;
  g.textBaseline = "middle";
  let free = 0; // the right end of the last tool name
  for (const t of a.tools) {
    fillRect("--warn", t.from, 0, Math.max(2, t.to - t.from - 1), 2);
    const wide = g.measureText(t.name).width;
    if (t.from + 3 < free || t.from + 3 + wide > width) continue;
    g.fillStyle = style.getPropertyValue("--warn").trim();
    g.fillText(t.name, t.from + 3, 9);
    free = t.from + 9 + wide;
  }
  lanes.forEach((_, i) => {
    const floor = head + (i + 1) * lane - 4;
    fillRect("--line", 0, floor, width, 1);
    a.counts[i]!.forEach((n, x) => {
      if (n === 0) return;
      const high = Math.min(lane - 6, 10 + 3 * Math.log2(n)); // the height shows the density
      fillRect(colours[i]!, x, floor - high, 1, high);
    });
  });
  if (a.first !== undefined) fillRect("--accent", a.first, 0, 1, height);
  if (hoverTime !== undefined) fillRect("--line-strong", a.pixel(hoverTime), 0, 1, height);
  fillRect("--text", a.pixel(at), 0, 1, height);
}
