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
  const conversation = messages(0, 1000);
  const ids = new Set<string>();
  let at = place({}, conversation, true);
  const collect = () => {
    expect(at.to - at.from).toBeLessThanOrEqual(maxShown);
    for (const m of conversation.slice(at.from, at.to)) ids.add(m.id);
  };
  for (collect(); at.from > 0; collect()) at = place(earlier(at, conversation), conversation, false);
  expect(ids.size).toBe(1000);
  ids.clear();
  for (collect(); at.to < 1000; collect()) at = place(showLater(at, conversation), conversation, false);
  expect(ids.size).toBe(1000);
});

test("a first message that is not held any more is the beginning", () => {
  expect(place({ first: "gone" }, messages(0, 20), false)).toEqual({ from: 0, to: 20 });
});

test("long messages are fewer", () => {
  const conversation = messages(0, 100).map((m) => ({ ...m, parts: [{ text: "x".repeat(50_000) }] }));
  const weigh = (at: { from: number; to: number }) => (at.to - at.from) * 50_000;
  let at = place({}, conversation, true);
  expect(weigh(at)).toBe(heavy);
  const rendered = new Set(conversation.slice(at.from, at.to));
  while (at.from > 0) {
    at = place(earlier(at, conversation), conversation, false);
    expect(weigh(at)).toBeLessThanOrEqual(5 * heavy);
    for (const m of conversation.slice(at.from, at.to)) rendered.add(m);
  }
  while (at.to < 100) at = place(showLater(at, conversation), conversation, false);
  expect(rendered.size).toBe(100);
  // However long they are, a few are there.
  expect(place({}, conversation.map((m) => ({ ...m, parts: [{ text: "x".repeat(heavy) }] })), true)).toEqual({ from: 96, to: 100 });
});
