import type { Message } from "@leat/client";
import { expect, test } from "vitest";

import { axis, nearest, describe } from "./axis";
import { rate, rateAt } from "./rate";
import { figures, Replay, shownTimes, type Trace } from "./trace";

const trace: Trace = {
  turn: "t",
  commits: [
    { arrival: 1000, commit: 1001, seq: 1, type: "turn.start" },
    { arrival: 1010, commit: 1012, seq: 2, type: "message.start", message: "m" },
    { arrival: 1010, commit: 1012, seq: 3, type: "part.start", message: "m", part: "s" },
    { arrival: 1010, commit: 1012, seq: 4, type: "part.replace", message: "m", part: "s", end: 7 },
    { arrival: 1100, commit: 1101, seq: 5, type: "part.replace", message: "m", part: "s", end: 4 },
    { arrival: 1200, commit: 1201, seq: 6, type: "part.start", message: "m", part: "p" },
    { arrival: 1200, commit: 1201, seq: 7, type: "part.append", message: "m", part: "p", end: 6 },
    { arrival: 4200, commit: 4203, seq: 8, type: "part.append", message: "m", part: "p", end: 10 },
    { arrival: 4200, commit: 4203, seq: 9, type: "part.end", message: "m", part: "p" },
    { arrival: 4210, commit: 4211, seq: 10, type: "turn.end" },
  ],
  replaced: [{ seq: 5, message: "m", part: "s", text: "Looking" }],
};
const messages: Message[] = [{ id: "m", role: "assistant", ended: true, parts: [{ id: "s", kind: "status", text: "Done" }, { id: "p", kind: "text", text: "grüße you", ended: true }] }];
const replay = new Replay(trace, messages);

test("the answer as it was, byte for byte, with what was taken back", () => {
  const texts = (n: number) => replay.at(n).flatMap((m) => m.parts.map((p) => p.text ?? ""));
  expect(texts(0)).toEqual([]);
  expect(texts(2)).toEqual([]);
  expect(texts(4)).toEqual(["Looking"]);
  expect(texts(5)).toEqual(["Done"]);
  expect(texts(7)).toEqual(["Done", "grüß"]); // six bytes
  expect(texts(8)).toEqual(["Done", "grüße yo"]);
  expect(replay.at(9)[0]!.parts[1]!.ended).toBe(true);
});

test("what each event brought", () => {
  expect(trace.commits.map((_, i) => replay.textOf(i, 80))).toEqual(["", "", "", "Looking", "Done", "", "grüß", "e yo", "", ""]);
  expect(trace.commits.map((_, i) => replay.size(i))).toEqual([0, 0, 0, 7, 4, 0, 6, 4, 0, 0]);
  expect(trace.commits.map((_, i) => replay.producedBytes(i))).toEqual([0, 0, 0, 0, 0, 0, 6, 4, 0, 0]); // a status is not output of the model
  expect(replay.textOf(6, 2)).toBe("gr");
});

test("a text that was taken back and is not stored is not made up", () => {
  const commits = [
    { arrival: 0, commit: 0, seq: 1, type: "message.start", message: "m" }, { arrival: 0, commit: 0, seq: 2, type: "part.start", message: "m", part: "p" },
    { arrival: 0, commit: 0, seq: 3, type: "part.append", message: "m", part: "p", end: 5 }, { arrival: 1, commit: 1, seq: 4, type: "part.replace", message: "m", part: "p", end: 3 },
    { arrival: 2, commit: 2, seq: 5, type: "part.replace", message: "m", part: "p", end: 3 }, // by the same: takes nothing back
  ];
  const r = new Replay({ turn: "t", commits }, [{ id: "m", role: "assistant", parts: [{ id: "p", kind: "text", text: "new" }] }]);
  expect(r.at(3)[0]!.parts[0]!.text).toBeUndefined();
  expect(r.textOf(2, 80)).toBe("(not stored)");
  expect(r.at(4)[0]!.parts[0]!.text).toBe("new");
  expect(r.at(5)[0]!.parts[0]!.text).toBe("new");
});

test("figures, and what was merged for this tab", () => {
  // The tab came when the turn ran, and its clock is 20 ms behind.
  const displayed = [{ at: 985, from: 2, upto: 4, events: 2 }, { at: 4190, from: 7, upto: 9, events: 1 }];
  expect(shownTimes(trace, displayed, 20)).toEqual([undefined, 1005, 1005, 1005, undefined, undefined, 4210, 4210, 4210, undefined]);
  expect(figures(trace, displayed, 20)).toEqual({
    total: 3210, largestGap: 3000, commitP50: 2, commitP99: 3, lagP50: 7, lagP99: 3009, events: 10, seen: 6, pieces: 3, batches: 2, bytes: 21,
  });
  expect(figures({ turn: "t", commits: [] }, [], 0)).toMatchObject({ total: 0, events: 0, bytes: 0, seen: 0 });
});

test("tokens a second: by the agent's count, else by bytes; the sum of the course is the whole", () => {
  const r = rate(trace, replay, 20);
  expect(r).toMatchObject({ first: 200, step: 250, tokens: 20, counted: true });
  expect(r.values.length).toBe(13);
  expect(r.values[0]).toBeCloseTo((0.6 * 20) / 0.25);
  expect(r.values[12]).toBeCloseTo((0.4 * 20) / 0.25);
  expect((r.values.reduce((a, b) => a + b, 0) * r.step) / 1000).toBeCloseTo(20);
  expect(r.median).toBeCloseTo(48);
  expect(rateAt(r, 3200)).toBeCloseTo(32);
  expect(rateAt(r, 99_999)).toBeCloseTo(32);
  expect(rate(trace, replay, undefined)).toMatchObject({ counted: false, tokens: 3 });
  expect(rate({ turn: "t", commits: [] }, replay, undefined)).toMatchObject({ values: [0], tokens: 0 });
});

test("a long answer has at most sixty points and one", () => {
  const commits = Array.from({ length: 10_000 }, (_, i) => ({ arrival: i * 37, commit: i * 37 + 1, seq: i + 1, type: "part.append", message: "m", part: "p", end: i + 1 }));
  const longTrace: Trace = { turn: "t", commits };
  const r = rate(longTrace, new Replay(longTrace, [{ id: "m", role: "assistant", parts: [{ id: "p", kind: "text", text: "x".repeat(10_000) }] }]), 5000);
  expect(r.values.length).toBeLessThanOrEqual(61);
  expect((r.values.reduce((a, b) => a + b, 0) * r.step) / 1000).toBeCloseTo(5000);
});

test("the axis: each event at its pixel, tools as bands, silences, the first token", () => {
  const tool: Trace = {
    turn: "t", commits: [
      { arrival: 0, commit: 0, seq: 1, type: "turn.start" }, { arrival: 0, commit: 0, seq: 2, type: "message.start", message: "m" },
      { arrival: 1000, commit: 1000, seq: 3, type: "part.start", message: "m", part: "a" }, { arrival: 2000, commit: 2000, seq: 4, type: "part.start", message: "m", part: "b" },
      { arrival: 5000, commit: 5000, seq: 5, type: "part.end", message: "m", part: "a" },
      { arrival: 6000, commit: 6000, seq: 6, type: "part.append", message: "m", part: "p", end: 2 }, { arrival: 10_000, commit: 10_000, seq: 7, type: "turn.end" },
    ],
  };
  const parts = [{ id: "a", kind: "tool" as const }, { id: "b", kind: "tool" as const }, { id: "p", kind: "text" as const, text: "hi" }];
  const displayed = [undefined, undefined, 1000, 1000, 1000, undefined, undefined];
  const r = new Replay(tool, [{ id: "m", role: "assistant", parts }]);
  const a = axis(tool, displayed, r, new Map([["m a", "bash"]]), 101);
  expect([...a.counts[0]!].flatMap((n, x) => (n ? [[x, n]] : []))).toEqual([[0, 2], [10, 1], [20, 1], [50, 1], [60, 1], [100, 1]]);
  expect([...a.counts[2]!].flatMap((n, x) => (n ? [[x, n]] : []))).toEqual([[10, 3]]);
  expect(a.tools).toMatchObject([{ from: 10, to: 50, name: "bash" }, { from: 20, to: 100, name: "tool" }]); // the second never ended
  expect(a.gaps).toEqual([{ from: 20, to: 50, ms: 3000 }, { from: 60, to: 100, ms: 4000 }]);
  expect(a.first).toBe(60);
  expect(nearest(tool, displayed, 0, 5400)).toBe(4);
  expect(nearest(tool, displayed, 2, 9999)).toBe(2);
  expect(nearest(tool, [], 2, 9999)).toBe(-1);
  expect(describe(tool, a, displayed, (ms) => `${ms / 1000} s`)).toBe("7 events arrived in 10 s and were stored as they came; 3 were shown here live; tools ran: bash, tool; no events came for more than 2 seconds 2 times.");
  expect(axis({ turn: "t", commits: [] }, [], r, new Map(), 0).counts[0]!.length).toBe(1);
});
