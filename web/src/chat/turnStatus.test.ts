import type { Message, Part, Turn } from "@leat/client";
import { expect, test } from "vitest";

import { Outages } from "./outages";
import { activityOf, durationOf, isLost, turnStatus } from "./turnStatus";
import type { Kind } from "./words";

const turn: Turn = { id: "t", state: "running", phase: "starting", startedAt: 10_000 };
const message = (isEnded: boolean, ...parts: Partial<Part>[]): Message => ({ id: "m", role: "assistant", turn: "t", ended: isEnded, parts: parts.map((p, i) => ({ id: `p${i}`, kind: "text", ...p })) });

test("an agent whose text has ended, and which has not exited yet, is not shown to think", () => {
  expect(activityOf(turn, message(false, { text: "Hel" }))).toBe("Answering");
  expect(activityOf(turn, message(false, { text: "Hello", ended: true }))).toBe("Answering");
  expect(activityOf(turn, message(true, { text: "Hello", ended: true }))).toBe("Answering");
  expect(activityOf(turn, message(false, { text: "Look", ended: true }, { kind: "reasoning", text: "hm" }))).toBe("Reasoning");
  expect(activityOf({ id: "t", state: "running" }, message(false, { text: "Look", ended: true }, { kind: "tool", name: "ls", ended: true }))).toBe("Thinking");
  expect(activityOf(turn, undefined)).toBe("Starting");
});

test("without a connection no turn is shown as running, and no clock counts", () => {
  const m = message(false, { text: "Hel" });
  const status = (kind: Kind, isOpen: boolean) => turnStatus(turn, m, { kind, isOpen }, 16_000, new Outages());
  for (const kind of ["live", "behind"] as const) expect(status(kind, true)).toEqual({ text: "Answering", mark: "running", age: 6000 });
  for (const kind of ["connecting", "reconnecting", "offline", "silent", "forbidden", "out"] as const) expect(status(kind, kind === "silent")).toEqual({ text: "Waiting for the connection", mark: "waiting" });
  expect(status("restarting", true)).toEqual({ text: "Answering", mark: "running", age: 6000 }); // it may still end
  expect(status("restarting", false)).toEqual({ text: "Waiting for the gateway", mark: "waiting" });
  expect(isLost({ kind: "live", isOpen: false })).toBe(false); // a short interruption, which isn't shown
});

test("a queued turn has no clock, and one that waits for a person says so", () => {
  const l = { kind: "live", isOpen: true } as const;
  expect(turnStatus({ ...turn, state: "queued" }, undefined, l, 16_000, new Outages())).toEqual({ text: "Queued", mark: "running" });
  expect(turnStatus({ ...turn, state: "waiting" }, undefined, l, 16_000, new Outages())).toEqual({ text: "Waiting for you", mark: "waiting", age: 6000 });
});

test("the time for which the gateway was down isn't the turn's", () => {
  const outages = new Outages();
  outages.disconnected(12_000);
  outages.disconnected(13_000); // another failed attempt
  outages.connected(20_000);
  expect(outages.during(10_000, 30_000)).toBe(8000);
  expect(outages.during(15_000, 18_000)).toBe(3000);
  expect(outages.during(21_000, 30_000)).toBe(0);
  expect(turnStatus(turn, undefined, { kind: "live", isOpen: true }, 22_000, outages).age).toBe(4000);
  outages.disconnected(40_000);
  outages.connected(20_000); // only the connection was lost
  outages.connected(90_000); // nothing was lost
  expect(outages.during(0, 100_000)).toBe(8000);
});

test("an interrupted turn ended at an unknown time", () => {
  const finished: Turn = { ...turn, state: "ended", outcome: "completed", endedAt: 12_500 };
  expect(durationOf(finished)).toBe(2500);
  expect(durationOf({ ...finished, outcome: "interrupted" })).toBeUndefined();
  expect(durationOf(turn)).toBeUndefined();
});
