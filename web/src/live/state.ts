// What the gateway reports outside of conversations, folded from live events. Frames that are unknown or malformed change nothing:
// other programs write signals too.

import type { LiveEvent } from "@leat/client";

import { type Command, onOutput, unknownCommands } from "./commands";
import { amount, flag, type Fields, fieldsOf, text } from "./fields";
import { type Beat, onBeat } from "./beats";
import { type Install, onInstall, unknownInstalls } from "./installs";
import { onTraining, type Training } from "./trainings";

/** An emote to show. Each frame has its own number, so that the same emote can be shown again. */
export interface Emote { number: number; emoteId: string; /** Milliseconds. */ duration: number; isLoop: boolean }

export interface Activity {
  /** Why the gateway needs a restart; empty if it doesn't. */
  reasons: readonly string[];
  /** The default agent's name, and its state. */
  agent: string; agentState: string;
  /** When the gateway's agent was started, to detect that it was restarted. */
  startedAt: number;
  /** Newest first, like all lists. */
  commands: readonly Command[];
  installs: readonly Install[];
  trainings: readonly Training[];
  beats: readonly Beat[];
  emote: Emote | undefined; emotes: number;
  /** The number of failures that the user has not seen yet. */
  failures: number;
}

/** An event, or the moment at which the connection is back after events may have been lost. */
export type Input = LiveEvent | { type: "connected" };

export const emptyActivity: Activity = {
  reasons: [], agent: "", agentState: "", startedAt: 0, commands: [], installs: [], trainings: [], beats: [], emote: undefined, emotes: 0, failures: 0,
};

/** Returns the state after an event. An event without effect returns the same object. startTime is when the page began to follow. */
export function apply(a: Activity, input: Input, time: number, startTime: number): Activity {
  const frame = fieldsOf(input);
  if (!frame) return a;
  switch (frame["type"]) {
    case "status": return onStatus(a, frame);
    case "restart-required": return withField(a, "reasons", texts(frame["reasons"]) ?? a.reasons);
    case "install-progress": return withFailures(a, withField(a, "installs", onInstall(a.installs, frame, time)));
    case "terminal-output": return withFailures(a, withField(a, "commands", onOutput(a.commands, frame, time)));
    case "training_event": return withFailures(a, withField(a, "trainings", onTraining(a.trainings, frame, startTime)));
    case "heartbeat_event":
    case "agent_event": return withField(a, "beats", onBeat(a.beats, frame));
    case "emote": return onEmote(a, frame);
    case "connected":
    case "resync": return withField(withField(a, "commands", unknownCommands(a.commands)), "installs", unknownInstalls(a.installs));
  }
  return a;
}

const withField = <K extends keyof Activity>(a: Activity, key: K, value: Activity[K]): Activity => (a[key] === value ? a : { ...a, [key]: value });

function onStatus(a: Activity, f: Fields): Activity {
  const agent = text(f["agentName"]) ?? a.agent;
  const agentState = text(f["state"]) ?? a.agentState;
  const startedAt = amount(f["startedAt"]) ?? a.startedAt;
  // The first status of a connection has no reasons. If the gateway was started meanwhile, the known ones are over.
  const reported = texts(f["pendingRestartReasons"]);
  const reasons = reported ?? (startedAt === a.startedAt ? a.reasons : []);
  const isSame = agent === a.agent && agentState === a.agentState && startedAt === a.startedAt && reasons.join("\n") === a.reasons.join("\n");
  return isSame ? a : { ...a, agent, agentState, startedAt, reasons };
}

function onEmote(a: Activity, f: Fields): Activity {
  const emoteId = text(f["emoteId"]);
  const seconds = amount(f["duration"]);
  if (!emoteId || seconds === undefined) return a;
  const number = a.emotes + 1;
  return { ...a, emotes: number, emote: { number, emoteId, duration: seconds * 1000, isLoop: flag(f["loop"]) } };
}

function texts(v: unknown): string[] | undefined {
  return Array.isArray(v) && v.every((r) => typeof r === "string") ? v : undefined;
}

interface Outcome { id: string | number; isFailed: boolean }

const outcomes = (a: Activity): readonly Outcome[] => [
  ...a.commands.map((c) => ({ id: `command ${c.id}`, isFailed: hasFailed(c) })),
  ...a.installs.map((i) => ({ id: `install ${i.id}`, isFailed: i.state === "failed" })),
  ...a.trainings.map((t) => ({ id: `training ${t.id}`, isFailed: t.state === "failed" && t.isNew })),
];

/** Reports whether a command failed: it couldn't run, ran too long, or ended with another exit code than 0. */
export const hasFailed = (c: Command): boolean => c.state === "error" || c.state === "timeout" || c.state === "ended" && c.code !== 0;

function withFailures(before: Activity, after: Activity): Activity {
  if (before === after) return before;
  const failedIds = new Set(outcomes(before).filter((e) => e.isFailed).map((e) => e.id));
  const added = outcomes(after).filter((e) => e.isFailed && !failedIds.has(e.id)).length;
  return added > 0 ? { ...after, failures: before.failures + added } : after;
}
