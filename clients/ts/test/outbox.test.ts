import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, visibleText } from "../src/index.js";
import { Delivery } from "../src/delivery.js";
import type { OutboxStorage } from "../src/outbox.js";
import { queueLimit, Requests } from "../src/requests.js";
import type { Warn } from "../src/warn.js";
import type { ClientFrame } from "../src/wire.js";
import { Gateway } from "./gateway.js";
import { MemoryStorage } from "./storage.js";

let gateway: Gateway;
before(async () => void (gateway = await Gateway.start()));
after(() => gateway.stop());

const nowhere = "http://127.0.0.1:1";

test("a message survives a reload of the page, and arrives once", async (t) => {
  const storage = new MemoryStorage();
  const id = await gateway.create();
  const offline = new Client({ url: nowhere, storage });
  const c = offline.conversation(id);
  const rejection = assert.rejects(c.send("12 * 7"), { reason: "closed" });
  void c.send("and 3 * 3");
  assert.deepEqual(c.state.pending.map((p) => p.message.text), ["12 * 7", "and 3 * 3"]);
  offline.close();
  await rejection;
  assert.equal(storage.length, 2);

  // A page with another gateway's address or another account doesn't see the messages.
  const entries = [...storage.map.entries()].map(([k, v]): [string, string] => [k.replace(nowhere, gateway.url), v]);
  storage.map.clear();
  for (const [k, v] of entries) storage.setItem(k, v);
  storage.setItem(`leat:outbox:${gateway.url}:::broken`, "{");
  const other = new Client({ url: gateway.url, storage, account: "bob" });
  t.after(() => other.close());
  assert.equal(other.state, "idle");

  // Two pages find the messages, and both send them.
  const pages = [new Client({ url: gateway.url, storage }), new Client({ url: gateway.url, storage })];
  t.after(() => pages.forEach((p) => p.close()));
  for (const p of pages) {
    const s = await p.conversation(id).waitFor((s) => s.turns.length === 2 && s.turns.every((turn) => turn.state === "ended") && s.pending.length === 0);
    assert.deepEqual(s.messages.filter((m) => m.role === "user").map(visibleText), ["12 * 7", "and 3 * 3"]);
  }
  assert.deepEqual([...storage.map.keys()], [`leat:outbox:${gateway.url}:::broken`]);
});

test("a message is sent until it is acknowledged, across a restart of the gateway", async (t) => {
  let server = await Gateway.start();
  t.after(() => server.stop());
  const client = new Client({ url: server.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const c = await client.create();
  t.after(c.subscribe(() => {}));
  await c.send("1 + 1");
  const restarted = server.restart();
  const ack = await c.send("2 + 2");
  server = await restarted;
  const s = await c.waitFor((s) => s.turns.some((turn) => turn.id === ack.turn && turn.state === "ended"));
  assert.deepEqual(s.messages.filter((m) => m.role === "user").map(visibleText), ["1 + 1", "2 + 2"]);
  assert.equal(s.turns.at(-1)?.outcome, "completed");
});

test("without a storage, or with a full one, messages are still delivered", async (t) => {
  const full = new (class extends MemoryStorage {
    override setItem(): void {
      throw new Error("quota exceeded");
    }
  })();
  const consoled = t.mock.method(console, "warn", () => {});
  const warnings: unknown[][] = [];
  const deliver = async (storage: OutboxStorage | null, warn?: Warn) => {
    const client = new Client({ url: gateway.url, storage, ...(warn && { warn }) });
    t.after(() => client.close());
    const c = await client.create();
    assert.ok((await c.send("5 + 5")).turn);
  };
  await deliver(null);
  assert.equal(consoled.mock.callCount(), 0, "memory isn't expected to survive a page");
  await deliver(full, (...args) => warnings.push(args));
  assert.equal(consoled.mock.callCount(), 0, "the option warn replaces the console");
  const lines = warnings.map((args) => args.map(String).join(" "));
  assert.deepEqual([...new Set(lines)], ["the message could not be stored and would be lost by a reload: Error: quota exceeded"]);
  await deliver(full);
  assert.deepEqual([...new Set(consoled.mock.calls.map((c) => c.arguments.map(String).join(" ")))], ["leat: the message could not be stored and would be lost by a reload: Error: quota exceeded"]);
  assert.equal(warnings.length, lines.length);
});

test("messages of one conversation are sent one at a time, in parallel with other conversations", () => {
  const frames: ClientFrame[] = [];
  let online = false;
  const d = new Delivery(undefined, "x", (f) => (online && frames.push(f), online), () => {});
  const texts = () => frames.map((f) => f.type === "command" && f.command.type === "send" && f.command.message.text);
  void d.add("a", { text: "1" });
  void d.add("a", { text: "2" });
  void d.add("b", { text: "3" });
  assert.equal(frames.length, 0);
  online = true;
  d.flush();
  assert.deepEqual(texts(), ["1", "3"]);
  const original = frames[0] as Extract<ClientFrame, { type: "command" }>;
  d.flush(); // a new connection: the answer of the old one is lost
  assert.deepEqual(texts(), ["1", "3", "1", "3"]);
  const repeat = frames[2] as typeof original;
  assert.equal(repeat.command.key, original.command.key);
  assert.ok(!d.answer({ type: "ack", id: original.id, conversation: "a", seq: 1 }), "an answer to what was given up");
  assert.ok(d.answer({ type: "ack", id: repeat.id, conversation: "a", seq: 1 }));
  assert.deepEqual(texts().slice(4), ["2"]);
  assert.deepEqual(d.of("a").map((p) => p.message.text), ["1", "2"], "what is acknowledged stays until the log is held that far");
  d.advance("b", 9);
  d.advance("a", 0);
  assert.deepEqual(d.of("a").map((p) => p.message.text), ["1", "2"]);
  d.advance("a", 1);
  assert.deepEqual(d.of("a").map((p) => p.message.text), ["2"]);
});

/** A delivery with a storage, whose connection the test controls. */
function delivery(storage = new MemoryStorage(), warn?: Warn) {
  const frames: ClientFrame[] = [];
  const created: string[] = [];
  const way = { online: false };
  const d = new Delivery(storage, "x", (f) => (way.online && frames.push(f), way.online), () => {}, (id) => created.push(id), warn);
  const texts = () => frames.map((f) => (f.type === "command" && f.command.type === "send" ? f.command.message.text : f.type));
  const ack = (seq = 1) => d.answer({ type: "ack", id: (frames.at(-1) as { id: string }).id, conversation: "a", seq });
  const go = () => { way.online = true; d.flush(); };
  return { d, sent: frames, made: created, texts, ack, go, storage };
}

test("a waiting message can be edited and discarded; one that may have been sent can't, also after a reload", async () => {
  const { d, texts, ack, go, storage } = delivery();
  const keys = ["one", "two", "three"].map((text) => { void d.add("a", { id: text, text }); return text; });
  const deleted = d.add("a", { id: "four", text: "four" });
  assert.deepEqual(d.of("a").map((p) => p.unsent), [true, true, true, true]);
  assert.equal(d.of("a")[0], d.of("a")[0], "the same object while nothing changes");
  assert.ok(d.hold("two"));
  assert.ok(d.discard("four"));
  await assert.rejects(deleted, { reason: "discarded" });
  assert.equal(d.unacknowledged, 3);
  go();
  assert.deepEqual(texts(), ["one"]);
  assert.equal(d.hold("one"), false);
  assert.equal(d.discard("one"), false);
  ack();
  assert.deepEqual(texts(), ["one"], "the order is kept: what follows a held message waits for it");
  d.release("two", { text: "two, better" });
  assert.deepEqual(texts(), ["one", "two, better"]);
  const reloaded = delivery(storage); // a reload, before the answer came
  assert.deepEqual(reloaded.d.of("a").map((p) => [p.message.text, p.unsent]), [["two, better", undefined], ["three", true]]);
  assert.equal(reloaded.d.discard("two"), false);
  assert.ok(reloaded.d.discard(keys[2]!));
  reloaded.go();
  reloaded.ack();
  assert.deepEqual(reloaded.texts(), ["two, better"]);
  assert.equal(storage.length, 0);
});

test("a message with stop waits for the stop of its turn, also after a reload; other messages don't", () => {
  const steps = (frames: ClientFrame[]) => frames.map((f) => f.type === "command" && (f.command.type === "send" ? f.command.message.text : `${f.command.type} ${(f.command as { turn?: string }).turn} ${f.command.key}`));
  const idOf = (f: ClientFrame) => (f as { id: string }).id;
  const before = delivery();
  void before.d.add("a", { id: "one", text: "one" });
  void before.d.add("a", { id: "two", text: "two" }, { queue: true, tools: [{ name: "map" }], stop: "t1" });
  const { d, sent: frames, go, ack, storage } = delivery(before.storage); // a reload
  const other = delivery(before.storage); // another tab
  go();
  assert.deepEqual(steps(frames), ["stop t1 two", "one"], "it waits for no other message");
  d.answer({ type: "ack", id: idOf(frames[1]!), conversation: "a", seq: 1 });
  assert.equal(frames.length, 2, "the message waits for its stop");
  assert.deepEqual(d.of("a").map((p) => p.unsent), [undefined, true]);
  go(); // a new connection: the answer of the old one is lost
  assert.deepEqual(steps(frames).slice(2), ["stop t1 two"]);
  assert.ok(!d.answer({ type: "ack", id: idOf(frames[0]!), conversation: "a", seq: 2 }), "an answer to what was given up");
  ack(2);
  assert.deepEqual(steps(frames).slice(3), ["two"]);
  const { command } = frames[3] as { command: { queue?: boolean; tools?: unknown } };
  assert.deepEqual([command.queue, command.tools], [true, [{ name: "map" }]]);
  // It isn't repeated by another tab or after another reload.
  const reloaded = delivery(storage);
  reloaded.go();
  other.go();
  for (const o of [reloaded, other]) {
    assert.deepEqual(o.texts(), ["two"]);
    o.ack(3);
    assert.equal(o.sent.length, 1);
  }
  ack(3);
  assert.equal(storage.length, 0);
});

test("a message is sent even if its turn can't be stopped; held and discarded messages stop nothing", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const warnings: unknown[] = [];
  const { d, sent: frames, texts, go, ack } = delivery(undefined, (...w) => warnings.push(w[1]));
  const reject = (reason: string) => d.answer({ type: "rejected", id: (frames.at(-1) as { id: string }).id, conversation: "a", error: "no", reason });
  const types = () => frames.map((f) => f.type === "command" && f.command.type);
  void d.add("a", { id: "one", text: "one" }, { stop: "t1" });
  void d.add("a", { id: "two", text: "two" }, { stop: "t2" });
  d.discard("two");
  d.hold("one");
  go();
  assert.deepEqual(types(), []);
  d.release("one", { text: "one, better" });
  assert.deepEqual(types(), ["stop"]);
  reject("busy");
  assert.deepEqual(types(), ["stop"]);
  t.mock.timers.tick(60_000);
  assert.deepEqual(types(), ["stop", "stop"]);
  reject("unknown");
  assert.equal((warnings[0] as Error).message, "no");
  assert.deepEqual(texts().slice(2), ["one, better"]);
  ack();
  assert.equal(d.unacknowledged, 0);
  // A message that is discarded before the answer arrives stays discarded.
  void d.add("a", { id: "three", text: "three" }, { stop: "t3" });
  assert.ok(d.discard("three"));
  ack();
  assert.deepEqual([types().slice(3), d.unacknowledged], [["stop"], 0]);
});

test("a page sends messages as another page of the same browser has last stored them", () => {
  const page1 = delivery();
  for (const id of ["x", "y", "z"]) void page1.d.add("a", { id, text: id });
  const page2 = delivery(page1.storage);
  page1.d.discard("x");
  page1.d.hold("y");
  page1.d.release("y", { text: "y, changed" });
  page2.go();
  assert.deepEqual(page2.texts(), ["y, changed"]);
  page2.ack();
  assert.deepEqual(page2.texts(), ["y, changed", "z"]);
});

test("a conversation is created by its first message, even if the original first one was discarded", () => {
  const { d, sent: frames, made: created, texts, ack, go, storage } = delivery();
  void d.add("a", { id: "m1", text: "one" }, undefined, undefined, { id: "a", key: "a" });
  void d.add("a", { id: "m2", text: "two" });
  assert.ok(d.isUncreated("a"));
  d.discard("m1");
  assert.ok(d.isUncreated("a"), "the next one makes it");
  const reloaded = delivery(storage);
  assert.ok(reloaded.d.isUncreated("a"));
  go();
  assert.deepEqual(frames.map((f) => f.type === "create" && f.create), [{ id: "a", key: "a" }]);
  d.flush(); // a new connection: the answer of the old one is lost
  assert.deepEqual(texts(), ["create", "create"]);
  assert.deepEqual(created, []);
  ack();
  assert.deepEqual(created, ["a"]);
  assert.ok(!d.isUncreated("a"));
  assert.deepEqual(texts().slice(2), ["two"]);
  ack();
  assert.equal(d.unacknowledged, 0);
  // If the creation is refused, the message is refused; a retry creates the conversation again.
  void d.add("b", { text: "x" }, undefined, undefined, { id: "b", agent: "none" });
  d.answer({ type: "rejected", id: (frames.at(-1) as { id: string }).id, error: "no agent", reason: "unknown_agent" });
  const [failed] = d.of("b");
  assert.equal(failed?.error?.reason, "unknown_agent");
  void d.retry(failed.key).catch(() => {});
  assert.equal(texts().at(-1), "create");
  d.answer({ type: "rejected", id: (frames.at(-1) as { id: string }).id, error: "no agent", reason: "unknown_agent" });
  assert.ok(d.discard(d.of("b")[0]!.key));
  assert.ok(!d.isUncreated("b"));
});

test("a refused message survives a reload, and is sent again only after retry", () => {
  const refuse = (o: ReturnType<typeof delivery>, reason: string) => o.d.answer({ type: "rejected", id: (o.sent.at(-1) as { id: string }).id, error: `no: ${reason}`, reason });
  const before = delivery();
  before.go();
  void before.d.add("a", { id: "one", text: "one" });
  void before.d.add("a", { id: "two", text: "two" });
  const third = delivery(before.storage); // one that was opened before the refusal
  refuse(before, "too_large");
  refuse(before, "deleted");
  assert.deepEqual(before.d.of("a").map((p) => p.error?.reason), ["too_large", "deleted"]);
  third.go();
  assert.deepEqual(third.texts(), [], "another tab does not send it either");
  assert.deepEqual(third.d.of("a").map((p) => p.error?.reason), ["too_large"]);
  const reloaded = delivery(before.storage);
  reloaded.go();
  assert.equal(reloaded.d.unacknowledged, 0);
  assert.deepEqual(reloaded.texts(), []);
  assert.deepEqual(reloaded.d.of("a").map((p) => [p.message.text, p.error?.reason, p.error?.message]), [["one", "too_large", "no: too_large"]], "the message of a deleted conversation is dropped");
  void reloaded.d.retry("one").catch(() => {});
  assert.deepEqual(reloaded.texts(), ["one"]);
  assert.equal(before.storage.length, 1);
  refuse(reloaded, "too_large");
  const last = delivery(before.storage);
  const [retry] = last.d.of("a");
  assert.notEqual(retry!.key, "one");
  assert.ok(last.d.discard(retry!.key));
  assert.equal(before.storage.length, 0);
  assert.deepEqual(delivery(before.storage).d.of("a"), []);
});

test("a first message may have a different agent than its conversation", () => {
  const { d, sent: frames, ack, go } = delivery();
  go();
  void d.add("a", { text: "one" }, { agent: "b" }, undefined, { id: "a", key: "a", agent: "c" });
  ack();
  assert.deepEqual(frames.map((f) => (f.type === "create" ? f.create.agent : f.type === "command" && f.command.type === "send" && f.command.agent)), ["c", "b"]);
});

test("a temporarily refused message is repeated later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const frames: ClientFrame[] = [];
  const d = new Delivery(undefined, "x", (f) => (frames.push(f), true), () => {});
  const outcome = d.add("a", { text: "1" });
  for (let i = 0; i < 20; i++) {
    const f = frames.at(-1) as Extract<ClientFrame, { type: "command" }>;
    assert.ok(d.answer({ type: "rejected", id: f.id, error: "full", reason: "queue_full", retryAfter: 1000 }));
    assert.equal(frames.length, i + 1);
    t.mock.timers.tick(60_000);
    assert.equal(frames.length, i + 2);
  }
  const f = frames.at(-1) as Extract<ClientFrame, { type: "command" }>;
  d.answer({ type: "ack", id: f.id, conversation: "a", seq: 5, turn: "t" });
  assert.deepEqual(await outcome, { seq: 5, turn: "t" });
});

test("32 control frames wait for a connection; the oldest is dropped", async () => {
  const frames: ClientFrame[] = [];
  let online = false;
  const r = new Requests((f) => (online && frames.push(f), online));
  const outcomes = Array.from({ length: 40 }, (_, i) => r.add({ type: "command", conversation: "c", command: { type: "stop", turn: `t${i}`, key: `k${i}` } }).then(() => "done", (e: Error & { reason: string }) => e.reason));
  assert.equal(queueLimit, 32);
  online = true;
  r.flush();
  assert.deepEqual(frames.map((f) => f.type === "command" && f.command.key), Array.from({ length: 32 }, (_, i) => `k${i + 8}`));
  for (const f of frames) r.take({ type: "ack", id: (f as { id: string }).id, conversation: "c" });
  assert.deepEqual(await Promise.all(outcomes), [...Array<string>(8).fill("dropped"), ...Array<string>(32).fill("done")]);
});

test("a control frame whose answer is lost is repeated with its key, but not forever", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const frames: ClientFrame[] = [];
  const r = new Requests((f) => (frames.push(f), true));
  const outcome = r.add({ type: "create", create: { key: "k" } });
  r.flush();
  assert.deepEqual(frames[0], frames[1]);
  const { id } = frames[0] as { id: string };
  for (let i = 0; i < 6; i++) {
    r.take({ type: "rejected", id, error: "busy", reason: "busy" });
    t.mock.timers.tick(60_000);
  }
  await assert.rejects(outcome, { reason: "busy" });
  assert.equal(frames.length, 7);
  assert.ok(!r.take({ type: "ack", id, conversation: "c" }));
});
