// The current activity of a running turn, as words and a clock, so that a turn without output doesn't look dead.

import type { Message, Turn } from "@leat/client";

import { elapsed } from "../time";
import { useNow } from "../ui/Clock";
import { Mark } from "./parts/Mark";
import { line } from "./parts/marks";

const phases: Record<string, string> = { starting: "Starting", retrying: "Retrying", waiting: "Waiting", thinking: "Thinking", compacting: "Summarizing the conversation", resuming: "Resuming" };

export function Activity({ turn: t, message }: { turn: Turn; message?: Message }) {
  const time = useNow();
  return (
    <p className="alive">
      <Mark of={t.state === "waiting" ? "waiting" : "running"} named={false} /> {activityOf(t, message)}
      {t.state !== "queued" && t.startedAt !== undefined && <> · <time className="clock">{elapsed(time - t.startedAt)}</time></>}
    </p>
  );
}

export function activityOf(t: Turn, m: Message | undefined): string {
  if (t.state === "waiting") return "Waiting for you";
  if (t.state === "queued") return "Queued";
  const last = m?.parts.at(-1);
  // An ended text part still counts as activity. Otherwise the turn would be shown as thinking between the text's end and its own.
  const p = (m?.ended ? undefined : m?.parts.findLast((q) => !q.ended)) ?? (last?.kind === "text" ? last : undefined);
  const step = t.step ? `, step ${t.step}` : "";
  if (p?.kind === "tool") return `Running ${line(p.name || "a tool", 60)}${step}`;
  if (p?.kind === "reasoning") return `Thinking${step}`; // the reasoning row shows the details
  if (p?.kind === "text" && p.text && t.phase !== "compacting") return `Answering${step}`; // even if a tool ran before the text
  if (t.phase) return `${phases[t.phase] ?? sentence(t.phase)}${step}`;
  if (p?.kind === "status") return `Working${step}`;
  return `Thinking${step}`;
}

function sentence(phase: string): string {
  const text = line(phase.replace(/[_-]+/g, " "), 60);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
