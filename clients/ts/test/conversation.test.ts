import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Conversation, type Host } from "../src/conversation.js";
import type { Fault } from "../src/transcript.js";
import type { BatchFrame, ClientFrame, Event, Page, SnapshotFrame } from "../src/wire.js";

let frames: ClientFrame[];
let faults: Fault[];
let pages: (() => Page)[];
let c: Conversation;
let isUncreated: boolean;

beforeEach(() => {
  frames = [];
  faults = [];
  pages = [];
  isUncreated = false;
  const host: Host = {
    send: (f) => (frames.push(f), true),
    command: () => Promise.reject(new Error("none here")),
    deliver: () => Promise.reject(new Error("none here")),
    retry: () => Promise.reject(new Error("none here")),
    page: () => Promise.resolve(pages.shift()!()),
    pending: () => [],
    hold: () => false, release: () => {}, discard: () => false, isUncreated: () => isUncreated, advance: () => {}, use: () => {},
    refusal: () => undefined,
    mismatch: (_, f) => faults.push(f),
  };
  c = new Conversation("c", host);
});

const subscribes = () => frames.filter((f) => f.type === "subscribe");
const subscribed = () => c.take({ type: "subscribed", id: subscribes().at(-1)!.id });
const snapshot = (cursor: string, text: string, seq = 5): SnapshotFrame => ({
  type: "snapshot", conversation: "c", cursor, epoch: "e", reset: true, earlier: true,
  transcript: { seq, messages: [{ id: "m", role: "assistant", turn: "t", parts: [{ id: "p", kind: "text", text }] }], turns: [{ id: "t", state: "running" }] },
});
const batch = (cursor: string, seq: number, ...events: Event[]): BatchFrame => ({ type: "batch", conversation: "c", cursor, seq, events });
const append = (seq: number, offset: number, text: string): Event => ({ seq, type: "part.append", turn: "t", message: "m", part: "p", offset, text });
const text = () => c.state.messages[0]?.parts[0]?.text;

test("frames of an earlier subscription are dropped", () => {
  const leave = c.subscribe(() => {});
  c.take(snapshot("e.1", "early"));
  assert.equal(c.state.phase, "loading");
  subscribed();
  c.take(snapshot("e.5", "one"));
  assert.equal(text(), "one");
  leave();
  assert.deepEqual(frames.at(-1), { type: "unsubscribe", conversation: "c" });
  c.take(batch("e.6", 6, append(6, 3, " two")));
  assert.equal(text(), "one");
  c.subscribe(() => {});
  assert.equal(subscribes().at(-1)?.after, "e.5");
  c.take({ type: "subscribed", id: subscribes()[0]!.id });
  c.take(batch("e.6", 6, append(6, 3, " two")));
  assert.equal(text(), "one");
  subscribed();
  c.take(batch("e.6", 6, append(6, 3, " two")));
  assert.equal(text(), "one two");
});

test("a text that differs from the gateway's is reported, and corrected by a snapshot", () => {
  c.subscribe(() => {});
  subscribed();
  c.take(snapshot("e.5", "Hallo"));
  c.take(batch("e.6", 6, { seq: 6, type: "part.end", turn: "t", message: "m", part: "p", sums: { text: { length: 5, crc: 7 } } }));
  assert.deepEqual(faults, [{ kind: "mismatch", seq: 6, turn: "t", message: "m", part: "p", field: "text", have: { length: 5, crc: 0xfafb3fe8 }, want: { length: 5, crc: 7 } }]);
  assert.equal(subscribes().length, 2);
  assert.equal(subscribes().at(-1)?.after, undefined);
  c.take(batch("e.7", 7, append(7, 5, "!"))); // of the subscription before
  subscribed();
  c.take(snapshot("e.7", "Hello!", 7));
  assert.equal(text(), "Hello!");
  assert.equal(c.state.phase, "live");
});

test("frames that never fit don't cause a loop of snapshots", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  c.subscribe(() => {});
  for (let i = 0; i < 10; i++) {
    subscribed();
    c.take(snapshot("e.5", "one"));
    c.take(batch("e.6", 6, append(6, 99, "gap")));
    t.mock.timers.tick(1000);
  }
  assert.ok(subscribes().length < 8, `asked ${subscribes().length} times in 10 s`);
  assert.deepEqual(faults, []);
});

test("unchanged values stay the same objects", () => {
  let changes = 0;
  c.subscribe(() => changes++);
  subscribed();
  const two = snapshot("e.5", "one");
  two.transcript.messages.unshift({ id: "u", role: "user", ended: true, parts: [{ id: "p1", kind: "text", text: "hi" }] });
  c.take(two);
  const before = c.state;
  assert.equal(c.state, before);
  c.take(batch("e.6", 6, append(6, 3, " two")));
  assert.notEqual(c.state, before);
  assert.equal(c.state.messages[0], before.messages[0]);
  assert.notEqual(c.state.messages[1], before.messages[1]);
  assert.equal(c.state.turns[0], before.turns[0]);
  assert.equal(before.messages[1]?.parts[0]?.text, "one", "a state never changes");
  assert.equal(changes, 2);
});

test("a page that doesn't fit is requested again", async () => {
  c.subscribe(() => {});
  subscribed();
  c.take(snapshot("e.5", "one"));
  const page = (seq: number, epoch = "e"): Page => ({ conversation: "c", epoch, seq, earlier: false, transcript: { messages: [{ id: "old", role: "user", parts: [] }], turns: [] } });
  pages.push(() => page(4), () => page(5, "another"), () => {
    c.take(batch("e.6", 6, append(6, 3, " two"))); // it moves on while the page is under way
    return page(5);
  }, () => page(6));
  assert.equal(await c.loadEarlier(), false);
  assert.deepEqual(c.state.messages.map((m) => m.id), ["old", "m"]);
});

test("a temporary error of a subscription is retried; a permanent one ends it", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  c.subscribe(() => {});
  subscribed();
  c.take(snapshot("e.5", "one"));
  c.take({ type: "error", conversation: "c", error: "disk", reason: "unavailable", retryAfter: 1000 });
  assert.equal(c.state.phase, "stale");
  assert.equal(c.state.error?.message, "disk");
  t.mock.timers.tick(2000);
  assert.equal(subscribes().at(-1)?.after, "e.5");
  subscribed();
  assert.equal(c.state.phase, "live");
  assert.equal(c.state.error, undefined);
  c.take({ type: "error", conversation: "c", error: "it was deleted", reason: "deleted" });
  assert.equal(c.state.phase, "gone");
  const n = frames.length;
  c.follow();
  assert.equal(frames.length, n);
});

test("behind counts the missing events after a gap", () => {
  c.subscribe(() => {});
  c.take({ type: "subscribed", id: subscribes().at(-1)!.id, head: 5 });
  assert.equal(c.state.behind, 0, "nothing is held yet: it is loading");
  c.take(snapshot("e.5", "one"));
  assert.equal(c.state.behind, 0);
  c.handleDisconnect();
  c.follow();
  c.take({ type: "subscribed", id: subscribes().at(-1)!.id, head: 46 });
  assert.equal(c.state.behind, 41);
  c.take(batch("e.30", 30, append(30, 3, " two")));
  assert.equal(c.state.behind, 16);
  c.handleDisconnect();
  assert.equal(c.state.behind, 0, "unknown without a connection");
  c.follow();
  c.take({ type: "subscribed", id: subscribes().at(-1)!.id, head: 46 });
  c.take(batch("e.47", 47, append(47, 7, " three")));
  assert.equal(c.state.behind, 0);
  assert.equal(text(), "one two three");
});

test("a conversation that isn't created yet is not subscribed to", () => {
  isUncreated = true;
  c.subscribe(() => {});
  c.follow(); // a new connection
  assert.equal(subscribes().length, 0);
  isUncreated = false;
  c.follow();
  assert.equal(subscribes().length, 1);
});
