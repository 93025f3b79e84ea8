// What the overview shows in numbers, out of one reading after another.

import { lasted } from "../time";
import { quantile, type Sample, sum } from "./metrics";

export type State = "up" | "down" | "failing" | "starting" | "unknown";

/** How an agent or a channel is; times are epoch milliseconds by the gateway's clock. */
export interface Health {
  name: string; kind?: string; default?: boolean; state: State; since: number; lastEvent?: number; conversation?: string;
  error?: string; errorAt?: number; errorTurn?: string; errorConversation?: string;
}

export interface OpenTurn { turn: string; conversation: string; title?: string; agent?: string; state: "queued" | "running" | "waiting"; since: number }

/** A conversation that can't be read, and from which seq on, if it is an event that is damaged. */
export interface Damage { conversation: string; seq?: number; error: string }

/** The gateway's answer to GET /api/overview. */
export interface Snapshot { now: number; agents: Health[]; channels: Health[]; turns: OpenTurn[]; damaged?: Damage[] }

/** One reading; undefined stands for a second in which there was none. */
export interface Sampled { at: number; samples: readonly Sample[]; look: Snapshot }

/** How many readings are kept, and over how many a quantile is taken. */
export const maxReadings = 60;
const span = 15;

/** What is read of the metrics; the rest is not kept. */
export const metricNames = /^leat_(turns_running|turns_queued|viewers|commit_seconds_bucket|viewer_lag_seconds_bucket|limit_refusals_total|agent_retries_total|turns_total|tokens_total|turn_first_text_seconds_bucket|journal_bytes|disk_free_bytes|conversations_open|commits_failed_total|webhook_waiting)$/;

export interface Tile {
  name: string;
  /** Of a reading; before is one of some seconds ago, first the oldest of the minute. */
  value: (now: Sampled, before: Sampled, first: Sampled) => number | undefined;
  show: (v: number, now: Sampled) => string;
  /** Above this it is much, which words say. */
  limit: number;
  words: (now: Sampled | undefined) => string;
}

const ms = (v: number) => (v < 0.001 ? "under 1 ms" : v < 1 ? `${Math.round(v * 1000)} ms` : lasted(v * 1000));
const is = (all: readonly Health[], ...states: State[]) => all.filter((h) => states.includes(h.state)).length;
const upDown = (all: readonly Health[]) => {
  const down = is(all, "down", "failing");
  const coming = is(all, "starting");
  return [`${all.length - down - coming} up`, ...(coming > 0 ? [`${coming} starting`] : []), ...(down > 0 ? [`${down} down`] : [])].join(", ");
};
const since = (now: Sampled, first: Sampled, name: string, fits?: (l: Record<string, string>) => boolean) => Math.max(0, sum(now.samples, name, fits) - sum(first.samples, name, fits));
const failed = (l: Record<string, string>) => l["outcome"] === "failed" || l["outcome"] === "interrupted";

export const tiles: readonly Tile[] = [
  { name: "Live turns", value: (now) => sum(now.samples, "leat_turns_running"), show: (v, now) => (sum(now.samples, "leat_turns_queued") > 0 ? `${v}, ${sum(now.samples, "leat_turns_queued")} queued` : String(v)), limit: Infinity, words: () => "running or awaiting approval" },
  { name: "Viewers", value: (now) => sum(now.samples, "leat_viewers"), show: String, limit: Infinity, words: () => "streams and subscriptions" },
  { name: "Agents", value: (now) => is(now.look.agents, "down", "failing"), show: (_, now) => (now.look.agents.length > 0 ? upDown(now.look.agents) : "none"), limit: 0, words: () => "check any that are down" },
  { name: "Channels", value: (now) => is(now.look.channels, "down", "failing"), show: (_, now) => (now.look.channels.length > 0 ? upDown(now.look.channels) : "none"), limit: 0, words: () => "check any that are down" },
  { name: "Commit p99", value: (now, before) => quantile(before.samples, now.samples, "leat_commit_seconds", 0.99), show: ms, limit: 0.1, words: () => "above 100\u00a0ms the disk is slow" },
  { name: "Lag p99", value: (now, before) => quantile(before.samples, now.samples, "leat_viewer_lag_seconds", 0.99), show: ms, limit: 1, words: () => "above 1\u00a0s viewers fall behind" },
  {
    name: "Rate-limit waits", value: (now, _, first) => since(now, first, "leat_limit_refusals_total") + since(now, first, "leat_agent_retries_total"), show: (v) => `${v} a minute`, limit: 10,
    words: () => "refusals and agent retries; above 10 a limit is too low",
  },
  {
    name: "Errors", value: (now, _, first) => since(now, first, "leat_turns_total", failed), show: (v) => `${v} a minute`, limit: 0,
    words: (now) => `failed turns, ${now ? sum(now.samples, "leat_turns_total", failed) : 0} since the start; check each`,
  },
];

/** A tile's values, the newest last; where there was no reading, or nothing to tell, there is none. */
export function course(t: Tile, readings: readonly (Sampled | undefined)[]): (number | undefined)[] {
  const first = readings.find((r) => r !== undefined);
  return readings.map((now, i) => {
    if (!now || !first) return undefined;
    const before = readings.slice(Math.max(0, i - span), i + 1).find((r) => r !== undefined)!;
    return t.value(now, before, first);
  });
}

/** Adds a reading, after as many gaps as seconds were missed. */
export function add(readings: readonly (Sampled | undefined)[], now: Sampled, every: number): readonly (Sampled | undefined)[] {
  const last = readings.findLast((r) => r !== undefined);
  const missed = last ? Math.min(maxReadings, Math.max(0, Math.round((now.at - last.at) / every) - 1)) : 0;
  return [...readings, ...new Array<undefined>(missed > 1 ? missed : 0).fill(undefined), now].slice(-maxReadings);
}
