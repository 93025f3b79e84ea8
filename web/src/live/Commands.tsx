// The commands with their output. The newest is open, and so is each that the user opens.

import { useState } from "react";

import { line, terminal } from "../chat/parts/marks";
import { about, clock, lasted } from "../time";
import { Clock } from "../ui/Clock";
import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import type { Command, Piece } from "./commands";
import { hasFailed } from "./state";
import { commandEnd } from "./words";

export function Commands({ commands }: { commands: readonly Command[] }) {
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  return (
    <section aria-labelledby="commands">
      <h2 id="commands">Commands</h2>
      <ul className="rows">
        {commands.map((c, i) => {
          const isOpen = toggled.get(c.id) ?? i === 0;
          return <Row key={c.id} command={c} isOpen={isOpen} toggle={() => setToggled((t) => new Map([...t, [c.id, !isOpen] as const].slice(-commands.length)))} />;
        })}
      </ul>
    </section>
  );
}

function Row({ command: c, isOpen, toggle }: { command: Command; isOpen: boolean; toggle: () => void }) {
  const isRunning = c.state === "running";
  return (
    <li>
      <p className="head">
        <button type="button" className="fold" aria-expanded={isOpen} onClick={toggle}><Icon name="fold" /><code>{c.command === undefined ? "A command that began before this page was opened" : line(c.command)}</code></button>
        <span className="when muted">
          <span className={`dot ${isRunning ? "running" : hasFailed(c) ? "failed" : c.state === "unknown" ? "" : "done"}`} />{" "}
          <span className={hasFailed(c) ? "bad" : undefined}>{commandEnd(c)}</span>
          {isRunning ? <> · <Clock since={c.since} />{c.limit !== undefined && ` of ${about(c.limit)}`}</> : c.until !== undefined && ` · ${lasted(c.until - c.since)}`}
          {" · "}<time>{clock(c.since)}</time>
        </span>
      </p>
      {isOpen && <Output command={c} />}
    </li>
  );
}

function Output({ command: c }: { command: Command }) {
  if (c.pieces.length === 0) return <p className="detail muted">{c.state === "running" ? "No output yet" : "No output"}</p>;
  return (
    <div className="output">
      {c.isCut && <p className="muted">The beginning was dropped; this is the end of the output.</p>}
      <div className="screen">
        <CopyButton text={() => c.pieces.map((p) => terminal(p.text)).join("")} what="output" />
        <pre tabIndex={0} role="group" aria-label={`Output of ${line(c.command ?? "the command", 60)}`} dir="auto">
          {c.pieces.map((p, i) => (p.isError ? <span key={i} className="stderr"><span className="unseen">Error output: </span>{display(p)}</span> : <span key={i}>{display(p)}</span>))}
        </pre>
      </div>
    </div>
  );
}

// The rest of an escape sequence may still be on its way.
const unfinished = /\u001b(?:\[[0-?]*[ -/]*|\][^\u0007\u001b]*)?$/;

const display = (p: Piece): string => terminal(p.text.replace(unfinished, ""));
