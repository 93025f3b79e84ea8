// The status of a turn in words. One function decides it from the turn and the connection, so that the two never contradict each other.

import type { Message, Turn } from "@leat/client";

import { Store } from "../store";
import type { Outages } from "./outages";
import { line } from "./parts/marks";
import type { Kind } from "./words";

/** The shown state of the connection, and whether there is one: a gateway that restarts is connected until it closes the connection. */
export interface Link { kind: Kind; isOpen: boolean }

/** The connection as the header shows it. */
export const link = new Store<Link>({ kind: "connecting", isOpen: false });

const lostKinds: ReadonlySet<Kind> = new Set(["connecting", "reconnecting", "offline", "silent", "forbidden", "out"]);

/** Reports whether nobody here knows what the turn is doing. */
export const isLost = (l: Link): boolean => lostKinds.has(l.kind) || l.kind === "restarting" && !l.isOpen;

export interface TurnStatus {
  text: string;
  mark: "running" | "waiting";
  /** How long the turn has been running, in milliseconds; undefined while that is unknown. */
  age?: number;
}

/** Returns the status of an open turn whose last message is m. */
export function turnStatus(t: Turn, m: Message | undefined, l: Link, time: number, outages: Outages): TurnStatus {
  if (isLost(l)) return { text: l.kind === "restarting" ? "Waiting for the gateway" : "Waiting for the connection", mark: "waiting" };
  const text = activityOf(t, m);
  const mark = t.state === "waiting" ? "waiting" : "running";
  if (t.state === "queued" || t.startedAt === undefined) return { text, mark };
  return { text, mark, age: time - t.startedAt - outages.during(t.startedAt, time) };
}

/** How long an ended turn took, in milliseconds. An interrupted turn ends when the gateway is back, so its duration is unknown. */
export const durationOf = (t: Turn): number | undefined =>
  t.startedAt !== undefined && t.endedAt !== undefined && t.outcome !== "interrupted" ? t.endedAt - t.startedAt : undefined;

const phases: Record<string, string> = { starting: "Starting", retrying: "Retrying", waiting: "Waiting", thinking: "Thinking", compacting: "Summarizing the conversation", resuming: "Resuming" };

export function activityOf(t: Turn, m: Message | undefined): string {
  if (t.state === "waiting") return "Waiting for you";
  if (t.state === "queued") return "Queued";
  const last = m?.parts.at(-1);
  // An ended text part still counts as activity. Otherwise the turn would be shown as thinking between the text's end and its own.
  const p = (m?.ended ? undefined : m?.parts.findLast((q) => !q.ended)) ?? (last?.kind === "text" ? last : undefined);
  const step = t.step ? `, step ${t.step}` : "";
  if (p?.kind === "tool") return `Running ${line(p.name || "a tool", 60)}${step}`;
  if (p?.kind === "reasoning") return `Reasoning${step}`; // as its row is named
  if (p?.kind === "text" && p.text && t.phase !== "compacting") return `Answering${step}`; // even if a tool ran before the text
  if (t.phase) return `${phases[t.phase] ?? sentence(t.phase)}${step}`;
  if (p?.kind === "status") return `Working${step}`;
  return `Thinking${step}`;
}

function sentence(phase: string): string {
  const text = line(phase.replace(/[_-]+/g, " "), 60);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
