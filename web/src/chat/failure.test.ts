import type { Turn } from "@leat/client";
import { expect, test } from "vitest";

import { choices, did } from "./choices";
import { causeOf, explain } from "./failure";
import { answerless, around } from "./nesting";

const turn = (t: Partial<Turn>): Turn => ({ id: "t", state: "ended", startedAt: 1000, endedAt: 13_400, ...t });

test.each([
  ["rate_limit_error", /rate limit/, true], ["overloaded_error", /overloaded/, true], ["insufficient_quota", /quota exceeded/, false], ["authentication_error", /key/, false],
  ["agent_unreachable", /can’t be reached/, true], ["agent_exit", /program exited/, true], ["cut_short", /cut off/, true], ["silence", /nothing for too long/, true],
  ["context_length_exceeded", /too long/, false], ["invalid_stream", /unreadable/, false], ["content_filter", /filter/, false], ["wait_expired", /in time/, true], ["timeout", /too long/, true], ["busy", /gateway is busy/, true],
])("%s says what happened and what to do", (code, name, isRetryable) => {
  const t = explain(turn({ outcome: "failed", error: { code, message: "HTTP 400: words of the upstream" } }), true)!;
  expect(t.what).toMatch(name);
  expect(t.todo).toMatch(/^The partial answer is saved\. ./);
  expect(t.again).toBe(isRetryable);
  expect(t.cause).toBe("HTTP 400: words of the upstream"); // folded
});

test("every code that the gateway gives is known", () => {
  for (const code of ["silence", "turn_limit", "lease_expired", "wait_expired", "not_answered", "invalid_stream", "cut_short", "not_started", "agent_not_started", "agent_exit", "too_large", "agent_control", "key_missing", "key_refused", "model_unknown", "quota",
    "context_too_long", "overloaded", "rate_limited", "request_refused", "provider_unreachable", "provider_error", "provider_answer", "response_gone", "agent_login", "agent_stuck", "agent_closed", "agent_unreachable", "agent_status", "token_refused", "agent_unknown",
    "agent_refused", "gap", "run_lost", "agent_request", "attachment", "agent_restarts", "file_unavailable", "busy", "agent_busy", "agent_answer", "too_many_runs"]) expect(causeOf(code), code).toBeDefined();
});

test("an unknown failure is shown with its own message", () => {
  const t = explain(turn({ outcome: "failed", error: { code: "x", message: "database is locked\nat line 3", retryable: true } }), false)!;
  expect(t).toMatchObject({ what: "Database is locked.", todo: "Try again.", again: true, cause: "" });
  expect(explain(turn({ outcome: "failed" }), false)).toMatchObject({ what: "The agent failed.", todo: expect.stringMatching(/^Try again or rephrase/) as string, again: false });
});

test("stopped, interrupted, and ended early", () => {
  expect(explain(turn({ outcome: "cancelled", reason: "stopped" }), true, "you")!.what).toBe("Stopped by you after 12.4 s");
  expect(explain(turn({ outcome: "cancelled", reason: "stopped" }), true)!.what).toBe("Stopped after 12.4 s");
  expect(explain(turn({ outcome: "interrupted", reason: "gateway_restart" }), true)).toMatchObject({ what: "Interrupted: the gateway was restarted.", todo: "The partial answer is saved. Try again for a complete answer.", again: true });
  expect(explain(turn({ outcome: "completed", reason: "length" }), true)!.what).toMatch(/length limit/);
  expect(explain(turn({ outcome: "completed", reason: "end_turn" }), true)).toBeUndefined();
  expect(explain(turn({ outcome: "completed" }), false)!.what).toBe("The agent sent an empty answer.");
});

test("a refusal is offered first, and every approval has one", () => {
  const labels = (options: string[] | undefined, tool = "rm") => choices({ id: "q", kind: "approval", tool, ...(options && { options }) }).map((c) => c.label);
  expect(labels(undefined)).toEqual(["Deny", "Allow once"]);
  expect(labels(["allow-always"])).toEqual(["Deny", "Allow once", "Always allow rm"]);
  expect(labels(["Allow", "Always Allow", "Reject"])).toEqual(["Reject", "Allow", "Always Allow"]);
  expect(choices({ id: "q", kind: "input", options: ["red", "blue"] }).map((c) => c.decision)).toEqual(["red", "blue"]);
  expect(choices({ id: "q", kind: "input" })).toEqual([]);
  const r = { id: "q", kind: "approval" as const, tool: "rm", options: ["allow-always"] };
  expect([did(r, "deny"), did(r, "approve"), did(r, "allow-always")]).toEqual(["denied rm", "allowed rm", "allowed rm from now on"]);
});

test("turns within turns, and turns without a message", () => {
  const outer = turn({ id: "a", agent: "main", answers: "u" });
  const inner = turn({ id: "b", agent: "helper", parent: "a", outcome: "failed" });
  const of = new Map([outer, inner].map((t) => [t.id, t]));
  expect(around(inner, of)).toEqual({ inside: "main", depth: 1 });
  expect(around(outer, of)).toEqual({});
  expect(around(turn({ id: "c", parent: "c" }), new Map([["c", turn({ id: "c", parent: "c" })]])).depth).toBe(32);
  const messages = [{ id: "u", role: "user" as const, parts: [] }, { id: "m", role: "assistant" as const, turn: "a", parts: [] }];
  const { after, end } = answerless([outer, inner, turn({ id: "d", answers: "gone", outcome: "failed" })], messages, new Map([["a", "m"]]));
  expect([...after].map(([m, texts]) => [m, texts.map((t) => t.id)])).toEqual([["m", ["b"]]]);
  expect(end).toEqual([]);
});
