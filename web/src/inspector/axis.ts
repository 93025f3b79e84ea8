// Maps a turn's events to the pixels of a time axis.

import { beginOf, longGap, type Replay, type Trace } from "./trace";

export const lanes = ["arrived", "stored", "shown"] as const;

export interface Span { from: number; to: number }

export interface Axis {
  /** The number of events at each pixel of each lane. */
  counts: readonly Uint32Array[];
  tools: readonly (Span & { name: string })[];
  gaps: readonly (Span & { ms: number })[];
  /** The pixel of the first token. */
  first?: number;
  /** The times at both ends, by the log's clock, in epoch milliseconds. */
  from: number; to: number;
  pixel: (at: number) => number;
}

export function axis(t: Trace, displayTimes: readonly (number | undefined)[], replay: Replay, names: ReadonlyMap<string, string>, width: number): Axis {
  const { commits } = t;
  let from = Infinity;
  let to = -Infinity;
  commits.forEach((c, i) => {
    from = Math.min(from, c.arrival);
    to = Math.max(to, c.arrival, c.commit, displayTimes[i] ?? 0);
  });
  if (!Number.isFinite(from)) from = to = 0;
  to = Math.max(to, from + 1);
  const last = Math.max(0, width - 1);
  const pixel = (at: number) => Math.round(((Math.min(to, Math.max(from, at)) - from) / (to - from)) * last);
  const counts = lanes.map(() => new Uint32Array(Math.max(1, width)));
  const tools: (Span & { name: string; part: string; open: boolean })[] = [];
  const gaps: (Span & { ms: number })[] = [];
  let firstToken: number | undefined;
  commits.forEach((c, i) => {
    counts[0]![pixel(c.arrival)]!++;
    counts[1]![pixel(c.commit)]!++;
    if (displayTimes[i] !== undefined) counts[2]![pixel(displayTimes[i])]!++;
    if (firstToken === undefined && replay.producedBytes(i) > 0) firstToken = pixel(c.arrival);
    const before = commits[i - 1]?.arrival ?? c.arrival;
    if (c.arrival - before > longGap) gaps.push({ from: pixel(before), to: pixel(c.arrival), ms: c.arrival - before });
    const part = `${c.message} ${c.part}`;
    if (c.type === "part.start" && replay.kind(c) === "tool") tools.push({ from: pixel(c.arrival), to: pixel(to), name: names.get(part) ?? "tool", part, open: true });
    const tool = c.type === "part.end" && tools.findLast((x) => x.part === part && x.open);
    if (tool) [tool.to, tool.open] = [pixel(c.arrival), false];
  });
  return { counts, tools, gaps, ...(firstToken !== undefined && { first: firstToken }), from, to, pixel };
}

/** Returns the commit closest to a time in a lane. */
export function nearest(t: Trace, displayTimes: readonly (number | undefined)[], lane: number, at: number): number {
  let best = -1;
  let distance = Infinity;
  t.commits.forEach((c, i) => {
    const time = lane === 0 ? c.arrival : lane === 1 ? c.commit : displayTimes[i];
    if (time !== undefined && Math.abs(time - at) < distance) [best, distance] = [i, Math.abs(time - at)];
  });
  return best;
}

/** Describes the axis in words. */
export function describe(t: Trace, a: Axis, displayTimes: readonly (number | undefined)[], lasted: (ms: number) => string): string {
  const shownCount = displayTimes.filter((s) => s !== undefined).length;
  const begin = beginOf(t);
  return [
    `${t.commits.length} events arrived in ${lasted(Math.max(0, (t.commits.at(-1)?.arrival ?? begin) - begin))} and were stored as they came`,
    shownCount > 0 ? `${shownCount} were shown here live` : "none were shown here live",
    ...(a.tools.length > 0 ? [`tools ran: ${[...new Set(a.tools.map((x) => x.name))].join(", ")}`] : []),
    ...(a.gaps.length > 0 ? [`no events came for more than 2 seconds ${a.gaps.length === 1 ? "once" : `${a.gaps.length} times`}`] : []),
  ].join("; ") + ".";
}
