import type { Part } from "@leat/client";
import { useId, useRef, useState } from "react";

import { Markdown } from "../../markdown/Markdown";
import type { Hold } from "./Fold";
import { Mark } from "./Mark";
import { lines } from "./marks";

/** A status up to this length gets a row of fixed height, so that replacing it moves nothing. */
const oneLine = 160;

/** The agent's current status, and on demand the earlier ones. The last status may be the answer itself. */
export function Status({ part: p, live, hold }: { part: Part; live: boolean; hold: Hold }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const trail = useId();
  const text = p.text ?? "";
  const before = (p.history ?? []).filter((entry, i, entries) => i < entries.length - 1 || entry.trim() !== text.trim());
  if (!text && before.length === 0) return null;
  const short = text.length <= oneLine && !text.trim().includes("\n");
  return (
    <div className="status" role="group" aria-label="Status" data-live={live || undefined} data-short={short || undefined}>
      <div className="now">
        <Mark of={live ? "running" : "done"} named={false} />
        {text ? <Markdown text={text} live={live} /> : <span className="muted">Done</span>}
        {before.length > 0 && (
          <button ref={button} type="button" className="quiet trail" aria-expanded={open} aria-controls={open ? trail : undefined} onClick={() => hold(button.current!, () => setOpen(!open))}>
            {open ? "Hide" : `${before.length} earlier`}
          </button>
        )}
      </div>
      {open && <ol id={trail}>{before.map((entry, i) => <li key={i} dir="auto">{lines(entry)}</li>)}</ol>}
    </div>
  );
}
