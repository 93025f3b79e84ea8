// The speed of an answer in tokens a second, computed from the log.

import { beginOf, quantile, type Replay, type Trace } from "./trace";

/** The maximum number of points in the chart, and the minimum duration of each in milliseconds. */
const points = 60;
const shortest = 250;
/** The assumed bytes per token if the agent doesn't report its tokens. */
const usual = 4;

export interface Rate {
  /** Milliseconds from the turn's beginning to the first token; undefined if there was none. */
  first?: number;
  /** Tokens per second, one value for each step. A step is this many milliseconds. */
  values: readonly number[]; step: number;
  /** The median over the steps with output; undefined if there was none. */
  median?: number;
  /** The number of tokens. counted is true if the agent reported it, and false if it is estimated from the bytes. */
  tokens: number; counted: boolean;
}

/** Computes the rate of an answer. reportedTokens is the agent's own count, if it reports one. */
export function rate(t: Trace, replay: Replay, reportedTokens: number | undefined): Rate {
  const begin = beginOf(t);
  const total = Math.max(0, (t.commits.at(-1)?.arrival ?? begin) - begin);
  const step = Math.max(shortest, Math.ceil(total / points / 50) * 50);
  const bytes = new Array<number>(Math.floor(total / step) + 1).fill(0);
  let totalBytes = 0;
  let firstToken: number | undefined;
  t.commits.forEach((c, i) => {
    const n = replay.producedBytes(i);
    if (n === 0) return;
    const at = Math.max(0, c.arrival - begin);
    firstToken ??= at;
    totalBytes += n;
    bytes[Math.min(bytes.length - 1, Math.floor(at / step))]! += n;
  });
  const isCounted = reportedTokens !== undefined && reportedTokens > 0 && totalBytes > 0;
  const tokens = isCounted ? reportedTokens : totalBytes / usual;
  const values = bytes.map((n) => (totalBytes > 0 ? ((n / totalBytes) * tokens * 1000) / step : 0));
  const grew = values.filter((v) => v > 0);
  return { ...(firstToken !== undefined && { first: firstToken }), values, step, ...(grew.length > 0 && { median: quantile(grew, 0.5) }), tokens: Math.round(tokens), counted: isCounted };
}

/** Returns the rate at a time since the turn began. */
export const rateAt = (r: Rate, ms: number): number => r.values[Math.min(r.values.length - 1, Math.max(0, Math.floor(ms / r.step)))] ?? 0;
