// The speed of an answer in tokens a second, computed from the log.

import { beginOf, quantile, type Replay, type Trace } from "./trace";

/** How many points the course of an answer has at most, and how long each is at least, in milliseconds. */
const points = 60;
const shortest = 250;
/** What a token takes where the agent does not say how many there were. */
const usual = 4;

export interface Rate {
  /** Milliseconds from the turn's beginning to the first token; undefined where there was none. */
  first?: number;
  /** Tokens a second, one value for each step of so many milliseconds since the turn began. */
  values: readonly number[]; step: number;
  /** Of the steps in which it grew; undefined where it never did. */
  median?: number;
  /** Made, by the agent's own count or by the bytes. */
  tokens: number; counted: boolean;
}

/** The course of an answer; told is how many tokens the agent says that it made. */
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

/** The value at a moment since the turn began. */
export const rateAt = (r: Rate, ms: number): number => r.values[Math.min(r.values.length - 1, Math.max(0, Math.floor(ms / r.step)))] ?? 0;
