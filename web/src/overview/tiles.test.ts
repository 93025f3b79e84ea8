import { expect, test } from "vitest";

import { parse } from "./metrics";
import { add, course, type Health, type Snapshot, type Sampled, tiles } from "./tiles";

const tile = (name: string) => tiles.find((t) => t.name === name)!;
const health = (name: string, state: Health["state"]): Health => ({ name, state, since: 0 });
const makeReading = (second: number, metrics: string, snapshot: Partial<Snapshot> = {}): Sampled => ({ at: second * 1000, samples: parse(metrics), look: { now: 0, agents: [], channels: [], turns: [], ...snapshot } });

test("there are eight tiles at most, each with words", () => {
  expect(tiles.length).toBeLessThanOrEqual(8);
  for (const t of tiles) expect(t.words(undefined)).not.toBe("");
});

test("counters show the last minute, also after a pause", () => {
  const at = (second: number, refusals: number, retries: number, failed: number) =>
    makeReading(second, `leat_limit_refusals_total{limit="turns"} ${refusals}\nleat_agent_retries_total{agent="a"} ${retries}\nleat_turns_total{agent="a",outcome="failed"} ${failed}\nleat_turns_total{agent="a",outcome="completed"} 9`);
  let readings: readonly (Sampled | undefined)[] = [];
  for (const r of [at(0, 5, 1, 2), at(1, 5, 1, 2), at(2, 6, 3, 2), at(8, 6, 3, 4)]) readings = add(readings, r, 1000);
  expect(readings.map((r) => r && r.at / 1000)).toEqual([0, 1, 2, undefined, undefined, undefined, undefined, undefined, 8]);
  expect(course(tile("Rate-limit waits"), readings)).toEqual([0, 0, 3, undefined, undefined, undefined, undefined, undefined, 3]);
  expect(course(tile("Errors"), readings).at(-1)).toBe(2);
  expect(tile("Errors").words(readings.at(-1))).toBe("failed turns, 4 since the start; check each");
  for (let i = 9; i < 80; i++) readings = add(readings, at(i, 6, 3, 4), 1000);
  expect(readings.length).toBe(60);
  expect(course(tile("Rate-limit waits"), readings).at(-1)).toBe(0);
  expect(course(tile("Errors"), []).length).toBe(0);
});

test("agents and channels that are up and down", () => {
  const r = makeReading(0, "", { agents: [health("a", "up"), health("b", "down"), health("c", "failing"), health("d", "unknown"), health("e", "starting")] });
  expect(tile("Agents").value(r, r, r)).toBe(2);
  expect(tile("Agents").show(2, r)).toBe("2 up, 1 starting, 2 down");
  expect(tile("Channels").show(0, r)).toBe("none");
});

test("quantiles of the last seconds, and turns that run and wait", () => {
  const at = (second: number, n: number) => makeReading(second, `leat_commit_seconds_bucket{le="0.1"} ${n}\nleat_commit_seconds_bucket{le="+Inf"} ${n}\nleat_turns_running 2\nleat_turns_queued 1`);
  const readings = [at(0, 5), at(1, 5), at(2, 15)];
  expect(course(tile("Commit p99"), readings)).toEqual([undefined, undefined, expect.closeTo(0.099)]);
  expect(tile("Commit p99").show(0.099, readings[2]!)).toBe("99 ms");
  expect(tile("Live turns").show(2, readings[2]!)).toBe("2, 1 queued");
});
