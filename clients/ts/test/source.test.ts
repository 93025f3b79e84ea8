import assert from "node:assert/strict";
import { test } from "node:test";

import { Conversation, type Host, independent } from "../src/conversation.js";
import type { ClientFrame, Command, Event } from "../src/wire.js";

test("a turn that its upstream began outlives the turn around it, and is stopped with the others", async () => {
  const stops: string[] = [];
  const host = {
    send: (_: ClientFrame) => true, pending: () => [], isUncreated: () => false, advance: () => {}, refusal: () => undefined, use: () => {},
    command: (_: string, c: Command) => { stops.push(c.type === "stop" ? c.turn : ""); return Promise.resolve({ seq: 1 }); },
  } as unknown as Host;
  const c = new Conversation("c", host);
  const leave = c.subscribe(() => {});
  const start = (seq: number, turn: string, extra: object = {}) => ({ seq, type: "turn.start", turn, ...extra }) as Event;
  const events = [start(1, "a", { agent: "x" }), start(2, "inner", { parent: "a" }), start(3, "own", { parent: "a", source: "cron" })];
  c.take({ type: "subscribed", id: "s1", head: 3 });
  c.take({ type: "snapshot", reset: true, conversation: "c", epoch: "e", cursor: "1", transcript: { seq: 0, messages: [], turns: [] } });
  c.take({ type: "batch", conversation: "c", cursor: "2", seq: 3, events: events });
  assert.deepEqual(c.state.turns.map((t) => [t.id, t.source, independent(t)]), [["a", undefined, true], ["inner", undefined, false], ["own", "cron", true]]);
  await c.stop();
  assert.deepEqual(stops, ["a", "own"]);
  leave();
});
