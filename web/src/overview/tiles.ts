// The figures of the overview, computed from successive readings of the metrics.

import { lasted } from "../time";
import { quantile, type Sample, sum } from "./metrics";

export type State = "up" | "down" | "failing" | "starting" | "unknown";

/** The state of an agent or channel. Times are epoch milliseconds by the gateway's clock. */
export interface Health {
  name: string; kind?: string; default?: boolean; state: State; since: number; lastEvent?: number; conversation?: string;
  error?: string; errorAt?: number; errorTurn?: string; errorConversation?: string;
}

export interface OpenTurn { turn: string; conversation: string; title?: string; agent?: string; state: "queued" | "running" | "waiting"; since: number }

/** A conversation that can't be read. If one event is damaged, seq is its number. */
export interface Damage { conversation: string; seq?: number; error: string }

/** The response to GET /api/overview. */
export interface Snapshot { now: number; agents: Health[]; channels: Health[]; turns: OpenTurn[]; damaged?: Damage[] }

/** One reading. A second without a reading is undefined. */
export interface Sampled { at: number; samples: readonly Sample[]; look: Snapshot }

/** The number of stored readings, and the number over which a quantile is computed. */
export const maxReadings = 60;
const span = 15;

/** The metrics that are used. Other samples are dropped. */
export const metricNames = /^leat_(turns_running|turns_queued|viewers|commit_seconds_bucket|viewer_lag_seconds_bucket|limit_refusals_total|agent_retries_total|turns_total|tokens_total|turn_first_text_seconds_bucket|journal_bytes|disk_free_bytes|conversations_open|commits_failed_total|webhook_waiting)$/;

export interface Tile {
  name: string;
  /** Computes the value. before is the reading some seconds ago, oldest the first of the last minute. */
  value: (current: Sampled, before: Sampled, oldest: Sampled) => number | undefined;
  show: (v: number, current: Sampled) => string;
  /** Values above this are marked as high. */
  limit: number;
  words: (current: Sampled | undefined) => string;
}

const ms = (v: number) => (v < 0.001 ? "under 1 ms" : v < 1 ? `${Math.round(v * 1000)} ms` : lasted(v * 1000));
const is = (list: readonly Health[], ...states: State[]) => list.filter((h) => states.includes(h.state)).length;
const upDown = (list: readonly Health[]) => {
  const down = is(list, "down", "failing");
  const startingCount = is(list, "starting");
  return [`${list.length - down - startingCount} up`, ...(startingCount > 0 ? [`${startingCount} starting`] : []), ...(down > 0 ? [`${down} down`] : [])].join(", ");
};
const since = (current: Sampled, oldest: Sampled, name: string, fits?: (l: Record<string, string>) => boolean) => Math.max(0, sum(current.samples, name, fits) - sum(oldest.samples, name, fits));
const failed = (l: Record<string, string>) => l["outcome"] === "failed" || l["outcome"] === "interrupted";

export const tiles: readonly Tile[] = [
  { name: "Live turns", value: (current) => sum(current.samples, "leat_turns_running"), show: (v, current) => (sum(current.samples, "leat_turns_queued") > 0 ? `${v}, ${sum(current.samples, "leat_turns_queued")} queued` : String(v)), limit: Infinity, words: () => "running or awaiting approval" },
  { name: "Viewers", value: (current) => sum(current.samples, "leat_viewers"), show: String, limit: Infinity, words: () => "streams and subscriptions" },
  { name: "Agents", value: (current) => is(current.look.agents, "down", "failing"), show: (_, current) => (current.look.agents.length > 0 ? upDown(current.look.agents) : "none"), limit: 0, words: () => "check any that are down" },
  { name: "Channels", value: (current) => is(current.look.channels, "down", "failing"), show: (_, current) => (current.look.channels.length > 0 ? upDown(current.look.channels) : "none"), limit: 0, words: () => "check any that are down" },
  { name: "Commit p99", value: (current, before) => quantile(before.samples, current.samples, "leat_commit_seconds", 0.99), show: ms, limit: 0.1, words: () => "above 100\u00a0ms the disk is slow" },
  { name: "Lag p99", value: (current, before) => quantile(before.samples, current.samples, "leat_viewer_lag_seconds", 0.99), show: ms, limit: 1, words: () => "above 1\u00a0s viewers fall behind" },
  {
    name: "Rate-limit waits", value: (current, _, oldest) => since(current, oldest, "leat_limit_refusals_total") + since(current, oldest, "leat_agent_retries_total"), show: (v) => `${v} a minute`, limit: 10,
    words: () => "refusals and agent retries; above 10 a limit is too low",
  },
  {
    name: "Errors", value: (current, _, oldest) => since(current, oldest, "leat_turns_total", failed), show: (v) => `${v} a minute`, limit: 0,
    words: (current) => `failed turns, ${current ? sum(current.samples, "leat_turns_total", failed) : 0} since the start; check each`,
  },
];

/** Returns the values of a tile, the newest last, with undefined for seconds without a value. */
export function course(t: Tile, readings: readonly (Sampled | undefined)[]): (number | undefined)[] {
  const oldest = readings.find((r) => r !== undefined);
  return readings.map((current, i) => {
    if (!current || !oldest) return undefined;
    const before = readings.slice(Math.max(0, i - span), i + 1).find((r) => r !== undefined)!;
    return t.value(current, before, oldest);
  });
}

/** Appends a reading, after one gap for each missed second. */
export function add(readings: readonly (Sampled | undefined)[], current: Sampled, interval: number): readonly (Sampled | undefined)[] {
  const last = readings.findLast((r) => r !== undefined);
  const missedCount = last ? Math.min(maxReadings, Math.max(0, Math.round((current.at - last.at) / interval) - 1)) : 0;
  return [...readings, ...new Array<undefined>(missedCount > 1 ? missedCount : 0).fill(undefined), current].slice(-maxReadings);
}
