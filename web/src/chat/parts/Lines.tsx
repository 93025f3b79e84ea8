// A text that may be long: its last or first lines, and more on demand. The number of rendered lines is limited, so that the page
// stays responsive.

import { useLayoutEffect, useRef, useState } from "react";

import { CopyButton } from "../../ui/Copy";
import { terminal } from "./marks";

/** The numbers of lines and characters that are shown at first, and the maximum. */
const preview = { lines: 12, length: 8_000 };
const maximum = { lines: 5_000, length: 400_000 };

interface LinesProps { name: string; text: string; bad?: boolean; from?: "start" | "end" }

export function Lines({ name, text, bad = false, from = "end" }: LinesProps) {
  const [showAll, setAll] = useState(false);
  const pre = useRef<HTMLPreElement>(null);
  const away = useRef(false); // the reader has scrolled up inside the text
  const count = countLines(text);
  const isCut = count > preview.lines || text.length > preview.length;
  const { piece, whole } = stretch(text, showAll ? maximum : preview, from);
  useLayoutEffect(() => {
    const p = pre.current;
    if (p && from === "end" && !away.current) p.scrollTop = p.scrollHeight;
  }, [piece, from]);
  return (
    <div className={bad ? "field bad" : "field"}>
      <header role="none">
        <span>{name}</span>
        {isCut && <button type="button" className="link" aria-expanded={showAll} onClick={() => setAll(!showAll)}>{showAll ? "Show less" : `Show all ${count.toLocaleString("en")} ${count === 1 ? "line" : "lines"}`}</button>}
        <CopyButton text={text} what={name.toLowerCase()} />
      </header>
      {showAll && !whole && <p className="muted">Too long to show in full: this is its {from === "end" ? "end" : "beginning"}. Copy it to get all of it.</p>}
      <pre ref={pre} tabIndex={0} role="group" aria-label={name} dir="auto" onScroll={(e) => { const p = e.currentTarget; away.current = p.scrollHeight - p.scrollTop - p.clientHeight > 4; }}>{terminal(piece)}</pre>
    </div>
  );
}

/** Returns the number of lines. A trailing line break doesn't begin another line. */
export function countLines(text: string): number {
  if (text === "") return 0;
  let n = 1;
  for (let i = text.indexOf("\n"); i >= 0 && i < text.length - 1; i = text.indexOf("\n", i + 1)) n++;
  return n;
}

/** Returns the start or end of a text up to a limit, cut between lines unless a line is too long. */
export function stretch(text: string, limit: { lines: number; length: number }, from: "start" | "end"): { piece: string; whole: boolean } {
  const end = text.endsWith("\n") ? text.length - 1 : text.length;
  if (from === "start") {
    let to = -1;
    for (let n = 0; n < limit.lines && to < end; n++) {
      const next = text.indexOf("\n", to + 1);
      to = next < 0 ? end : next;
    }
    to = clear(text, Math.min(to, limit.length, end));
    return { piece: text.slice(0, to), whole: to >= end };
  }
  let begin = 0;
  for (let n = 0, at = end; n < limit.lines; n++) {
    const before = at > 0 ? text.lastIndexOf("\n", at - 1) : -1;
    begin = before + 1;
    if (before < 0) break;
    at = before;
  }
  begin = clear(text, Math.max(begin, end - limit.length));
  return { piece: text.slice(begin, end), whole: begin === 0 };
}

// clear moves a position out of a surrogate pair.
const clear = (text: string, at: number): number => (at > 0 && /[\udc00-\udfff]/.test(text[at] ?? "") ? at + 1 : at);
