// The tree of a trace, with a bar for each span on one time axis. It follows the ARIA pattern of a tree. Only rows near the visible
// area are rendered.

import { type KeyboardEvent, type ReactNode, useLayoutEffect, useRef, useState } from "react";

import { brief, elapsed } from "../time";
import { Icon } from "../ui/Icon";
import { kindWords, stateWords } from "./glossary";
import { KindIcon } from "./KindIcon";
import { type Place, type Row, ticksOf } from "./rows";
import type { Span } from "./spans";

/** The height of a row in pixels, with the bar next to the name and below it; the height of the axis; rows rendered outside the view. */
const height = { beside: 28, below: 48 };
const axisHeight = 24;
const beyond = 8;
/** Characters that are typed within this time belong together. Milliseconds. */
const typingPause = 800;

/** Formats a round time of the axis. */
const tickLabel = (ms: number): string => (ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${ms / 1000} s` : elapsed(ms));

/** How a span was selected: by moving to it, by a click or a tap, or by Enter. */
export type Selection = "move" | "click" | "enter";

interface TreeProps {
  rows: readonly Row[];
  selected: string;
  select: (id: string, gesture: Selection) => void;
  setOpen: (id: string, open: boolean) => void;
  hits: ReadonlyMap<string, Place>;
  /** The searched text. */
  text: string;
  /** The current time, at which running bars end. */
  time: number;
  /** The bars are below the names, and rows are high enough for a finger. */
  isNarrow: boolean;
}

export const durationOf = (s: Span, time: number): number => Math.max(0, (s.end ?? time) - s.start);

export function TraceTree({ rows, selected, select, setOpen, hits, text, time, isNarrow }: TreeProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const typing = useRef({ text: "", at: 0 });
  const isAtEnd = useRef(false);
  const [view, setView] = useState({ top: 0, height: 600 });
  const rowHeight = isNarrow ? height.below : height.beside;
  const root = rows[0]!.span;
  // Inner spans of an incomplete turn can be longer than the turn.
  const end = Math.max(root.start + 1, root.end ?? time, ...rows.map((r) => r.span.end ?? r.span.start));
  const total = end - root.start;
  const place = Math.max(0, rows.findIndex((r) => r.span.id === selected));
  const from = Math.max(0, Math.floor(view.top / rowHeight) - beyond);
  const to = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + beyond);
  // The selected row is always rendered, because the tree refers to it.
  const indices = Array.from({ length: to - from }, (_, i) => from + i);
  if (place < from || place >= to) indices.push(place);
  useLayoutEffect(() => {
    const s = scroller.current!;
    const observer = new ResizeObserver(() => setView({ top: s.scrollTop, height: s.clientHeight }));
    observer.observe(s);
    return () => observer.disconnect();
  }, []);
  // Scroll the selected span into view.
  useLayoutEffect(() => {
    const s = scroller.current!;
    const top = place * rowHeight;
    const visible = s.clientHeight - axisHeight;
    if (top < s.scrollTop) s.scrollTop = top;
    else if (top + rowHeight > s.scrollTop + visible) s.scrollTop = top + rowHeight - visible;
  }, [place, selected, rowHeight]);
  // Follow a growing trace if its end is visible.
  useLayoutEffect(() => {
    const s = scroller.current!;
    if (isAtEnd.current && root.end === undefined) s.scrollTop = s.scrollHeight;
  }, [rows.length, root.end]);
  const keys = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const row = rows[place]!;
    if (e.key.length > 1) typing.current.text = ""; // another key ends a word
    const go = (i: number) => { if (rows[i]) select(rows[i].span.id, "move"); };
    switch (e.key) {
      case "ArrowDown": go(place + 1); break;
      case "ArrowUp": go(place - 1); break;
      case "Home": go(0); break;
      case "End": go(rows.length - 1); break;
      case "ArrowRight":
        if (row.isOpen === false) setOpen(row.span.id, true);
        else if (row.isOpen) go(place + 1);
        break;
      case "ArrowLeft":
        if (row.isOpen && row.level > 1) setOpen(row.span.id, false);
        else go(rows.findLastIndex((r, i) => i < place && r.level < row.level));
        break;
      case "Enter": select(row.span.id, "enter"); break;
      default: {
        if (e.key.length !== 1 || e.key === " ") return;
        const t = typing.current;
        t.text = e.timeStamp - t.at > typingPause ? e.key : t.text + e.key;
        t.at = e.timeStamp;
        // A single character goes to the next span, more characters refine the search.
        const start = place + (t.text.length === 1 ? 1 : 0);
        const match = rows.map((_, i) => (start + i) % rows.length).find((i) => rows[i]!.span.name.toLowerCase().startsWith(t.text.toLowerCase()));
        if (match !== undefined) go(match);
      }
    }
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div ref={scroller} className="tree" role="tree" aria-label="Spans" tabIndex={0} aria-activedescendant={rowId(rows[place]!.span.id)} data-narrow={isNarrow || undefined} onKeyDown={keys}
      onScroll={(e) => {
        const s = e.currentTarget;
        isAtEnd.current = s.scrollHeight - s.scrollTop - s.clientHeight <= 1;
        setView({ top: s.scrollTop, height: s.clientHeight });
      }}>
      <div className="axis" aria-hidden="true"><span className="scale">
        {ticksOf(total, 4).map((t, i) => <span key={t} style={{ left: `${(t / total) * 100}%` }} data-end={t / total > 0.9 || undefined}>{i === 0 ? "0" : tickLabel(t)}</span>)}
      </span></div>
      <div className="rows" role="none" style={{ height: `${rows.length * rowHeight}px` }}>
        {indices.map((i) => <TreeRow key={rows[i]!.span.id} row={rows[i]!} top={i * rowHeight} isSelected={i === place} hit={hits.get(rows[i]!.span.id)} text={text} start={root.start} total={total} time={end} select={select} setOpen={setOpen} />)}
      </div>
    </div>
  );
}

const rowId = (span: string): string => `span-${span.replaceAll(" ", "-")}`;

interface RowProps { row: Row; top: number; isSelected: boolean; hit: Place | undefined; text: string; start: number; total: number; time: number; select: TreeProps["select"]; setOpen: TreeProps["setOpen"] }

function TreeRow({ row, top, isSelected, hit, text, start, total, time, select, setOpen }: RowProps) {
  const { span: s, level } = row;
  const took = durationOf(s, time);
  const kind = kindWords[s.kind].name;
  const percent = (at: number) => `${((Math.min(Math.max(at, start), start + total) - start) / total) * 100}%`;
  return (
    <div id={rowId(s.id)} className="span-row" role="treeitem" aria-level={level} aria-setsize={row.size} aria-posinset={row.position} aria-selected={isSelected} aria-expanded={row.isOpen} data-hit={hit} data-kind={s.kind} data-state={s.state}
      style={{ top: `${top}px`, "--level": level - 1 } as React.CSSProperties} onClick={() => select(s.id, "click")}>
      <span className="label">
        {row.isOpen === undefined ? <span className="twist" /> : <span className="twist" data-open={row.isOpen || undefined} onClick={(e) => { e.stopPropagation(); setOpen(s.id, !row.isOpen); }}><Icon name="fold" /></span>}
        <KindIcon kind={s.kind} />
        {!s.name.startsWith(kind) && <span className="unseen">{kind} </span>}
        <bdi className="name">{highlight(s.name, text)}</bdi>
        {s.preview && s.preview !== s.name && <><span className="unseen">, </span><bdi className="preview">{highlight(s.preview, text)}</bdi></>}
        {hit && hit !== "name" && <><span className="unseen">, found </span><span className="place">in {hit}</span></>}
        <span className="unseen">, {stateWords[s.state]}, </span>
      </span>
      <span className="bars"><span className="bar" style={{ left: percent(s.start), width: `calc(${percent(s.end ?? time)} - ${percent(s.start)})` }}>
        {s.first !== undefined && s.kind !== "turn" && took > 0 && <span className="wait" style={{ width: `${Math.min(100, ((s.first - s.start) / took) * 100)}%` }} />}
      </span></span>
      <span className="took">{s.state !== "done" && <StateMark of={s} />}{brief(took)}</span>
    </div>
  );
}

/** Marks the first place of a searched text. */
function highlight(label: string, text: string): ReactNode {
  const needle = text.trim().toLowerCase();
  const at = needle ? label.toLowerCase().indexOf(needle) : -1;
  return at < 0 ? label : <>{label.slice(0, at)}<mark>{label.slice(at, at + needle.length)}</mark>{label.slice(at + needle.length)}</>;
}

function StateMark({ of: s }: { of: Span }) {
  if (s.state === "running") return <span className="dot running" />;
  if (s.state === "failed" || s.state === "denied") return <Icon name="cross" />;
  return s.state === "waiting" ? <Icon name="help" /> : <Icon name="stop" />;
}
