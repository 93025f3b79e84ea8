import type { Summary } from "@leat/client";
import { expect, test } from "vitest";

import { archiving, find, groupByDate, inOrder, isArchived, isPinned, pinning } from "./grouping";

const time = new Date(2026, 2, 31, 0, 30); // half past midnight, so that an hour ago is yesterday
const entry = (id: string, at: Date, options: Partial<Summary> = {}): Summary => ({ id, title: id, createdAt: at.toISOString(), updatedAt: at.toISOString(), ...options });
const shape = (entries: Summary[]) => groupByDate(entries, time).map((g) => [g.name, g.entries.map((c) => c.id).join()]);

test("groups are by days of the calendar, also across a change of the clock", () => {
  expect(shape([
    entry("now", new Date(2026, 2, 31, 0, 20)), entry("late", new Date(2026, 2, 30, 23, 30)), entry("two", new Date(2026, 2, 29, 12)), entry("seven", new Date(2026, 2, 24, 1)),
    entry("eight", new Date(2026, 2, 23, 23)), entry("thirty", new Date(2026, 2, 1)), entry("month", new Date(2026, 1, 28, 12)), entry("year", new Date(2025, 1, 28)),
  ])).toEqual([["Today", "now"], ["Yesterday", "late"], ["Previous 7 days", "two,seven"], ["Previous 30 days", "eight,thirty"], ["February", "month"], ["February 2025", "year"]]);
});

test("a clock that is behind the gateway's makes no day of the future", () => {
  expect(shape([entry("ahead", new Date(2026, 3, 1, 12))])).toEqual([["Today", "ahead"]]);
});

test("pinned conversations are first, archived ones are left out, and marks of other owners don't count", () => {
  const at = new Date(2026, 2, 1);
  const entries = [
    entry("a", time), entry("pinned", at, { metadata: { pinned: true } }), entry("archived", at, { metadata: { archived: true } }),
    entry("both", at, { metadata: { archived: true, pinned: true } }), entry("theirs", at, { owner: "eve", metadata: { pinned: true, archived: true } }), entry("odd", at, { metadata: { pinned: "yes" } }),
  ];
  expect(shape(entries)).toEqual([["Pinned", "pinned"], ["Today", "a"], ["Previous 30 days", "theirs,odd"]]);
  expect(inOrder(entries).map((c) => c.id)).toEqual(["pinned", "a", "theirs", "odd"]);
  expect(entries.filter(isArchived).map((c) => c.id)).toEqual(["archived", "both"]);
  expect(entries.filter(isPinned).map((c) => c.id)).toEqual(["pinned", "both"]);
});

test("a mark is removed with null, and archiving unpins", () => {
  expect(pinning(true)).toEqual({ pinned: true });
  expect(pinning(false)).toEqual({ pinned: null });
  expect(archiving(true)).toEqual({ archived: true, pinned: null });
  expect(archiving(false)).toEqual({ archived: null });
});

test("every word of a query is in the title", () => {
  const entries = [entry("The plan of yesterday", time), entry("The plan", time)];
  expect(find(entries, "plan YEST").map((c) => c.id)).toEqual(["The plan of yesterday"]);
  expect(find(entries, " ")).toBe(entries);
});
