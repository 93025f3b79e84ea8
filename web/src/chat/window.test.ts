import { expect, test } from "vitest";

import { earlier, heavy, showLater, maxShown, place, step } from "./window";

const messages = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => ({ id: `m${from + i}` }));

test("a stretch follows the end", () => {
  expect(place({}, messages(0, 1000), true)).toEqual({ from: 1000 - step, to: 1000 });
  expect(place({}, [], true)).toEqual({ from: 0, to: 0 });
  // What follows the end for long stays bounded.
  expect(place({ first: "m10" }, messages(0, 1000), true)).toEqual({ from: 1000 - maxShown, to: 1000 });
});

test("a stretch keeps its messages when older ones come before them and newer ones after", () => {
  const s = { first: "m60", last: "m90" };
  expect(place(s, messages(50, 100), false)).toEqual({ from: 10, to: 41 });
  expect(place(s, messages(0, 150), false)).toEqual({ from: 60, to: 91 });
});

test("to the beginning and back, every message is shown on the way, and never too many", () => {
  const all = messages(0, 1000);
  const seen = new Set<string>();
  let at = place({}, all, true);
  const look = () => {
    expect(at.to - at.from).toBeLessThanOrEqual(maxShown);
    for (const m of all.slice(at.from, at.to)) seen.add(m.id);
  };
  for (look(); at.from > 0; look()) at = place(earlier(at, all), all, false);
  expect(seen.size).toBe(1000);
  seen.clear();
  for (look(); at.to < 1000; look()) at = place(showLater(at, all), all, false);
  expect(seen.size).toBe(1000);
});

test("a first message that is not held any more is the beginning", () => {
  expect(place({ first: "gone" }, messages(0, 20), false)).toEqual({ from: 0, to: 20 });
});

test("long messages are fewer", () => {
  const all = messages(0, 100).map((m) => ({ ...m, parts: [{ text: "x".repeat(50_000) }] }));
  const weigh = (at: { from: number; to: number }) => (at.to - at.from) * 50_000;
  let at = place({}, all, true);
  expect(weigh(at)).toBe(heavy);
  const seen = new Set(all.slice(at.from, at.to));
  while (at.from > 0) {
    at = place(earlier(at, all), all, false);
    expect(weigh(at)).toBeLessThanOrEqual(5 * heavy);
    for (const m of all.slice(at.from, at.to)) seen.add(m);
  }
  while (at.to < 100) at = place(showLater(at, all), all, false);
  expect(seen.size).toBe(100);
  // However long they are, a few are there.
  expect(place({}, all.map((m) => ({ ...m, parts: [{ text: "x".repeat(heavy) }] })), true)).toEqual({ from: 96, to: 100 });
});
