import type { Message, Part, Turn } from "@leat/client";
import { expect, test } from "vitest";

import { activityOf } from "./Activity";

const turn: Turn = { id: "t", state: "running", phase: "starting" };
const message = (isEnded: boolean, ...parts: Partial<Part>[]): Message => ({ id: "m", role: "assistant", turn: "t", ended: isEnded, parts: parts.map((p, i) => ({ id: `p${i}`, kind: "text", ...p })) });

test("an agent whose text has ended, and which has not exited yet, is not shown to think", () => {
  expect(activityOf(turn, message(false, { text: "Hel" }))).toBe("Answering");
  expect(activityOf(turn, message(false, { text: "Hello", ended: true }))).toBe("Answering");
  expect(activityOf(turn, message(true, { text: "Hello", ended: true }))).toBe("Answering");
  expect(activityOf(turn, message(false, { text: "Look", ended: true }, { kind: "reasoning", text: "hm" }))).toBe("Thinking");
  expect(activityOf({ id: "t", state: "running" }, message(false, { text: "Look", ended: true }, { kind: "tool", name: "ls", ended: true }))).toBe("Thinking");
  expect(activityOf(turn, undefined)).toBe("Starting");
});
