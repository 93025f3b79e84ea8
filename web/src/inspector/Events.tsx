import { type KeyboardEvent, useLayoutEffect, useMemo, useRef, useState } from "react";

import { line } from "../chat/parts/marks";
import { size } from "../time";
import { beginOf, isText, type Replay, type Trace } from "./trace";

/** The height of a row as in the stylesheet, and the number of rows rendered beyond the visible ones. */
const row = 24;
const beyond = 10;
/** The maximum length of the text in a row. */
const maxText = 80;

interface EventsProps { trace: Trace; replay: Replay; at: number; pin: (i: number) => void }

/** The events of a turn as a table. Only rows near the visible area are rendered. */
export function Events({ trace, replay, at, pin }: EventsProps) {
  const [kind, setKind] = useState("");
  const [view, setView] = useState({ top: 0, height: 320 });
  const table = useRef<HTMLDivElement>(null);
  const { commits } = trace;
  const begin = beginOf(trace);
  const kinds = useMemo(() => [...new Set(commits.map((c) => c.type))].toSorted(), [commits]);
  const indices = useMemo(() => commits.flatMap((c, i) => (!kind || c.type === kind ? [i] : [])), [commits, kind]);
  const from = Math.max(0, Math.floor(view.top / row) - beyond);
  const to = Math.min(indices.length, Math.ceil((view.top + view.height) / row) + beyond);
  const place = indices.findLastIndex((i) => i < at);
  // Scroll the selected event into view.
  useLayoutEffect(() => {
    const t = table.current;
    if (!t || place < 0) return;
    const top = place * row;
    const visibleHeight = t.clientHeight - row; // the header covers one row
    if (top < t.scrollTop) t.scrollTop = top;
    else if (top + row > t.scrollTop + visibleHeight) t.scrollTop = top + row - visibleHeight;
  }, [place, indices]);
  const arrows = (e: KeyboardEvent) => {
    const next = e.key === "ArrowDown" ? place + 1 : e.key === "ArrowUp" ? place - 1 : e.key === "Home" ? 0 : e.key === "End" ? indices.length - 1 : -1;
    if (indices[next] === undefined) return;
    e.preventDefault();
    pin(indices[next]);
  };
  return (
    <section className="events" aria-label="Events">
      <header>
        <h3>Events</h3>
        <label>Kind <select value={kind} onChange={(e) => setKind(e.target.value)}><option value="">all {commits.length}</option>{kinds.map((k) => <option key={k}>{k}</option>)}</select></label>
      </header>
      <div ref={table} className="table" tabIndex={0} role="region" aria-label="Events of the turn" onKeyDown={arrows} onScroll={(e) => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}>
        <table aria-rowcount={indices.length + 1}>
          <thead><tr><th scope="col">Seq</th><th scope="col">After</th><th scope="col">Event</th><th scope="col">Part</th><th scope="col">Size</th><th scope="col">Text</th></tr></thead>
          <tbody>
            {from > 0 && <tr aria-hidden="true" style={{ height: from * row }} />}
            {indices.slice(from, to).map((i, n) => {
              const c = commits[i]!;
              return (
                <tr key={`${c.seq} ${i}`} aria-rowindex={from + n + 2} aria-current={i + 1 === at || undefined} onClick={() => pin(i)}>
                  <td>{c.seq}</td><td>+{c.arrival - begin}</td><td>{c.type}</td><td>{line(c.part ?? "")}{c.field ? ` ${c.field}` : ""}</td>
                  <td>{isText(c) ? size(replay.size(i)) : ""}</td><td className="said">{line(replay.textOf(i, maxText).replace(/\s+/g, " "), maxText)}</td>
                </tr>
              );
            })}
            {to < indices.length && <tr aria-hidden="true" style={{ height: (indices.length - to) * row }} />}
          </tbody>
        </table>
      </div>
    </section>
  );
}
