import type { LiveEvent, Summary } from "@leat/client";
import { expect, test } from "vitest";

import { applyEvent } from "./listing";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const entry = (id: string, minute: number, options: Partial<Summary> = {}): Summary => ({ id, title: id, createdAt: at(0), updatedAt: at(minute), ...options });
const list = [entry("a", 9), entry("b", 8, { owner: "eve" }), entry("c", 7)];
const updated = (id: string, title: string, minute: number): LiveEvent => ({ type: "conversation-updated", conversation: { id, title, roomId: id, createdAt: at(0), updatedAt: at(minute) } });

test("a title, and what is used is first", () => {
  const r = applyEvent(list, updated("b", "B", 10));
  expect(r.ask).toBe(false);
  expect(r.conversations.map((c) => c.id)).toEqual(["b", "a", "c"]);
  expect(r.conversations[0]).toEqual(entry("b", 10, { title: "B", owner: "eve" }));
  expect(r.conversations[1]).toBe(list[0]);
});

test("an event that was known changes nothing, and what is older takes nothing back", () => {
  expect(applyEvent(list, updated("a", "a", 9)).conversations).toBe(list);
  expect(applyEvent(list, updated("a", "a", 3)).conversations).toBe(list);
});

test("a conversation that is not in the list is asked for; one that is gone goes, once", () => {
  expect(applyEvent(list, updated("new", "New", 10))).toEqual({ conversations: list, ask: true });
  const deletion: LiveEvent = { type: "conversation-deleted", conversationId: "b" };
  const r = applyEvent(list, deletion);
  expect(r).toEqual({ conversations: [list[0], list[2]], ask: false });
  expect(applyEvent(r.conversations, deletion).conversations).toBe(r.conversations);
});

test("read and unread", () => {
  const unread = applyEvent(list, { type: "conversation-read", conversationId: "c", unread: true, read: 3 }).conversations;
  expect(unread[2]).toEqual(entry("c", 7, { unread: true, read: 3 }));
  const readEvent = applyEvent(unread, { type: "conversation-read", conversationId: "c", unread: false, read: 5 }).conversations;
  expect(readEvent[2]).toEqual(entry("c", 7, { read: 5 }));
});

test("a turn that begins and what an agent says unasked make a conversation the last used", () => {
  const ts = Date.parse(at(20));
  const signal = (roomId: string | undefined, stream: string): LiveEvent => ({ type: "agent_event", version: 1, eventId: "evt-1", ts, stream, ...(roomId && { roomId }), payload: {} });
  expect(applyEvent(list, signal("c", "lifecycle")).conversations[0]!.id).toBe("c");
  expect(applyEvent(list, signal("c", "assistant")).conversations).toBe(list);
  expect(applyEvent(list, signal("gone", "lifecycle"))).toEqual({ conversations: list, ask: false });
  expect(applyEvent(list, signal(undefined, "lifecycle")).conversations).toBe(list);
  expect(applyEvent(list, { type: "proactive-message", conversationId: "b", message: { id: "m", role: "assistant", text: "psst", timestamp: ts, source: "autonomy" } }).conversations[0]!.id).toBe("b");
});

test("events that were lost", () => {
  expect(applyEvent(list, { type: "resync", missed: 3 })).toEqual({ conversations: list, ask: true });
  expect(applyEvent(list, { type: "status", state: "running", agentName: "a" })).toEqual({ conversations: list, ask: false });
});

test("marks and waiting follow the event, and other metadata stays", () => {
  const before = [entry("a", 9, { metadata: { color: "red", pinned: true }, waiting: true })];
  const change = (options: object) => applyEvent(before, { type: "conversation-updated", conversation: { id: "a", title: "a", roomId: "a", createdAt: at(0), updatedAt: at(9), ...options } }).conversations[0];
  expect(change({ pinned: true, waiting: true })).toBe(before[0]);
  expect(change({ archived: true })).toEqual(entry("a", 9, { metadata: { color: "red", archived: true } }));
  expect(change({})).toEqual(entry("a", 9, { metadata: { color: "red" } }));
  expect(applyEvent([entry("b", 1)], updated("b", "b", 1)).conversations[0]).not.toHaveProperty("metadata");
});

test("when a turn ends in a conversation that waits for a person, the list is asked", () => {
  const end: LiveEvent = { type: "agent_event", version: 1, eventId: "evt-2", ts: Date.parse(at(20)), stream: "lifecycle", roomId: "a", payload: { phase: "end" } };
  expect(applyEvent([entry("a", 9, { waiting: true })], end).ask).toBe(true);
  expect(applyEvent([entry("a", 9)], end).ask).toBe(false);
});
