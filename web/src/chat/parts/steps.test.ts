import type { Part } from "@leat/client";
import { expect, test } from "vitest";

import { minTools, runs, stays } from "./steps";

const parts = (kinds: string): Part[] => [...kinds].map((k, i) => ({ id: `p${i}`, kind: ({ t: "tool", f: "tool", r: "reasoning", x: "text" } as const)[k as "t"], ...(k === "f" && { state: "failed" as const }), ended: true }));

test("only many tool calls in a row are one run, with the reasoning between them", () => {
  expect(runs(parts("t".repeat(minTools - 1)))).toEqual([]);
  expect(runs(parts("ttttxttt"))).toEqual([]);
  expect(runs(parts(`x${"tr".repeat(minTools)}x`))).toEqual([{ from: 1, to: 2 * minTools, tools: minTools, failed: 0 }]);
  expect(runs(parts(`rttfttttftx${"t".repeat(minTools)}`))).toEqual([{ from: 1, to: 10, tools: 9, failed: 2 }, { from: 11, to: 11 + minTools, tools: minTools, failed: 0 }]);
});

test("what runs stays visible, and what the reader has opened", () => {
  const [endedTool, runningTool] = [{ id: "a", kind: "tool", ended: true }, { id: "b", kind: "tool" }] as Part[];
  expect([stays(endedTool!, true, false), stays(endedTool!, true, true), stays(runningTool!, true, false), stays(runningTool!, false, false)]).toEqual([false, true, true, false]);
});
