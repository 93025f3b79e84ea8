// The installations of plugins, each with its phase.

import { line } from "../chat/parts/marks";
import { clock, lasted } from "../time";
import { Clock } from "../ui/Clock";
import type { Install } from "./installs";

/** The phases in their order (docs/plugins.md), in words. */
const phases: readonly (readonly [phase: string, text: string])[] = [
  ["resolving", "Find"], ["downloading", "Download"], ["installing-deps", "Dependencies"], ["validating", "Validate"], ["configuring", "Configure"], ["restarting", "Start"], ["complete", "Complete"],
];

const dots = { running: "running", done: "done", failed: "failed", unknown: "" };

export function Installs({ installs }: { installs: readonly Install[] }) {
  return (
    <section aria-labelledby="installs">
      <h2 id="installs">Plugins</h2>
      <ul className="rows">{installs.map((i) => <Row key={i.id} install={i} />)}</ul>
    </section>
  );
}

function Row({ install: i }: { install: Install }) {
  const at = phases.findIndex(([p]) => p === i.phase);
  const state = i.state === "running" ? phases[at]?.[1] ?? line(i.phase, 40) : i.state === "done" ? "installed" : i.state === "failed" ? "failed" : "connection lost, end unknown";
  return (
    <li>
      <p className="head">
        <span className="name">{i.plugin ? line(i.plugin, 120) : "A plugin"}</span>
        <span className="when muted">
          <span className={`dot ${dots[i.state]}`} /> <span className={i.state === "failed" ? "bad" : undefined}>{state}</span>
          {i.state === "running" ? <> · <Clock since={i.since} /></> : i.until !== undefined && ` · ${lasted(i.until - i.since)}`}
          {" · "}<time>{clock(i.since)}</time>
        </span>
      </p>
      {i.state === "running" && <progress aria-label={`Installation of ${i.plugin ? line(i.plugin, 60) : "a plugin"}`} max={phases.length} value={at < 0 ? undefined : at + 1} />}
      {i.message && <p className={i.state === "failed" ? "detail bad" : "detail"}>{line(i.message)}</p>}
    </li>
  );
}
