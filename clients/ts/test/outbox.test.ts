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

test("a message outlives a reload of the page, and arrives once", async (t) => {
  const storage = new MemoryStorage();
  const id = await gateway.create();
  const offline = new Client({ url: nowhere, storage });
  const c = offline.conversation(id);
  const waiting = assert.rejects(c.send("12 * 7"), { reason: "closed" });
  void c.send("and 3 * 3");
  assert.deepEqual(c.state.pending.map((p) => p.message.text), ["12 * 7", "and 3 * 3"]);
  offline.close();
  await waiting;
  assert.equal(storage.length, 2);

  // The same page with the address of another gateway has nothing to do with it; nor has another person.
  const moved = [...storage.map.entries()].map(([k, v]): [string, string] => [k.replace(nowhere, gateway.url), v]);
  storage.map.clear();
  for (const [k, v] of moved) storage.setItem(k, v);
  storage.setItem(`leat:outbox:${gateway.url}:::broken`, "{");
  const other = new Client({ url: gateway.url, storage, account: "bob" });
  t.after(() => other.close());
  assert.equal(other.state, "idle");

  // Two pages are opened: both find the messages, and both send them.
  const pages = [new Client({ url: gateway.url, storage }), new Client({ url: gateway.url, storage })];
  t.after(() => pages.forEach((p) => p.close()));
  for (const p of pages) {
    const s = await p.conversation(id).until((s) => s.turns.length === 2 && s.turns.every((turn) => turn.state === "ended") && s.pending.length === 0);
    assert.deepEqual(s.messages.filter((m) => m.role === "user").map(visibleText), ["12 * 7", "and 3 * 3"]);
  }
  assert.deepEqual([...storage.map.keys()], [`leat:outbox:${gateway.url}:::broken`]);
});

test("a message is sent until it has an answer, across a restart of the gateway", async (t) => {
  let own = await Gateway.start();
  t.after(() => own.stop());
  const client = new Client({ url: own.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const c = await client.create();
  t.after(c.subscribe(() => {}));
  await c.send("1 + 1");
  const restarted = own.restart();
  const ack = await c.send("2 + 2");
  own = await restarted;
  const s = await c.until((s) => s.turns.some((turn) => turn.id === ack.turn && turn.state === "ended"));
  assert.deepEqual(s.messages.filter((m) => m.role === "user").map(visibleText), ["1 + 1", "2 + 2"]);
  assert.equal(s.turns.at(-1)?.outcome, "completed");
});

test("without a storage, or with a full one, messages are delivered all the same", async (t) => {
  const full = new (class extends MemoryStorage {
    override setItem(): void {
      throw new Error("quota exceeded");
    }
  })();
  const consoled = t.mock.method(console, "warn", () => {});
  const told: unknown[][] = [];
  const deliver = async (storage: OutboxStorage | null, warn?: Warn) => {
    const client = new Client({ url: gateway.url, storage, ...(warn && { warn }) });
    t.after(() => client.close());
    const c = await client.create();
    assert.ok((await c.send("5 + 5")).turn);
  };
  await deliver(null);
  assert.equal(consoled.mock.callCount(), 0, "nobody expects memory to outlive a page");
  await deliver(full, (...all) => told.push(all));
  assert.equal(consoled.mock.callCount(), 0, "whoever takes the warnings has them alone");
  const said = told.map((all) => all.map(String).join(" "));
  assert.deepEqual([...new Set(said)], ["the message is not kept across a reload: Error: quota exceeded"]);
  await deliver(full);
  assert.deepEqual([...new Set(consoled.mock.calls.map((c) => c.arguments.map(String).join(" ")))], ["leat: the message is not kept across a reload: Error: quota exceeded"]);
  assert.equal(told.length, said.length);
});

test("messages of one conversation go one after the other, those of others beside them", () => {
  const sent: ClientFrame[] = [];
  let online = false;
  const d = new Delivery(undefined, "x", (f) => (online && sent.push(f), online), () => {});
  const texts = () => sent.map((f) => f.type === "command" && f.command.type === "send" && f.command.message.text);
  void d.add("a", { text: "1" });
  void d.add("a", { text: "2" });
  void d.add("b", { text: "3" });
  assert.equal(sent.length, 0);
  online = true;
  d.flush();
  assert.deepEqual(texts(), ["1", "3"]);
  const first = sent[0] as Extract<ClientFrame, { type: "command" }>;
  d.flush(); // a new connection: the answer of the old one is lost
  assert.deepEqual(texts(), ["1", "3", "1", "3"]);
  const again = sent[2] as typeof first;
  assert.equal(again.command.key, first.command.key);
  assert.ok(!d.answer({ type: "ack", id: first.id, conversation: "a", seq: 1 }), "an answer to what was given up");
  assert.ok(d.answer({ type: "ack", id: again.id, conversation: "a", seq: 1 }));
  assert.deepEqual(texts().slice(4), ["2"]);
  assert.deepEqual(d.of("a").map((p) => p.message.text), ["1", "2"], "what is acknowledged stays until the log is held that far");
  d.seen("b", 9);
  d.seen("a", 0);
  assert.deepEqual(d.of("a").map((p) => p.message.text), ["1", "2"]);
  d.seen("a", 1);
  assert.deepEqual(d.of("a").map((p) => p.message.text), ["2"]);
});

/** A delivery whose connection a test makes and cuts, over a storage. */
function delivery(storage = new MemoryStorage(), warn?: Warn) {
  const sent: ClientFrame[] = [];
  const made: string[] = [];
  const way = { online: false };
  const d = new Delivery(storage, "x", (f) => (way.online && sent.push(f), way.online), () => {}, (id) => made.push(id), warn);
  const texts = () => sent.map((f) => (f.type === "command" && f.command.type === "send" ? f.command.message.text : f.type));
  const ack = (seq = 1) => d.answer({ type: "ack", id: (sent.at(-1) as { id: string }).id, conversation: "a", seq });
  const go = () => { way.online = true; d.flush(); };
  return { d, sent, made, texts, ack, go, storage };
}

test("what waits can be changed in its place and taken back; what a connection may have taken can't, also after a reload", async () => {
  const { d, texts, ack, go, storage } = delivery();
  const keys = ["one", "two", "three"].map((text) => { void d.add("a", { id: text, text }); return text; });
  const gone = d.add("a", { id: "four", text: "four" });
  assert.deepEqual(d.of("a").map((p) => p.unsent), [true, true, true, true]);
  assert.equal(d.of("a")[0], d.of("a")[0], "the same object while nothing changes");
  assert.ok(d.hold("two"));
  assert.ok(d.discard("four"));
  await assert.rejects(gone, { reason: "discarded" });
  assert.equal(d.waiting, 3);
  go();
  assert.deepEqual(texts(), ["one"]);
  assert.equal(d.hold("one"), false);
  assert.equal(d.discard("one"), false);
  ack();
  assert.deepEqual(texts(), ["one"], "the order is kept: what follows a held message waits for it");
  d.release("two", { text: "two, better" });
  assert.deepEqual(texts(), ["one", "two, better"]);
  const later = delivery(storage); // a reload, before the answer came
  assert.deepEqual(later.d.of("a").map((p) => [p.message.text, p.unsent]), [["two, better", undefined], ["three", true]]);
  assert.equal(later.d.discard("two"), false);
  assert.ok(later.d.discard(keys[2]!));
  later.go();
  later.ack();
  assert.deepEqual(later.texts(), ["two, better"]);
  assert.equal(storage.length, 0);
});

test("a turn is stopped for a message, before it and no other, and also after a reload", () => {
  const steps = (sent: ClientFrame[]) => sent.map((f) => f.type === "command" && (f.command.type === "send" ? f.command.message.text : `${f.command.type} ${(f.command as { turn?: string }).turn} ${f.command.key}`));
  const idOf = (f: ClientFrame) => (f as { id: string }).id;
  const before = delivery();
  void before.d.add("a", { id: "one", text: "one" });
  void before.d.add("a", { id: "two", text: "two" }, { queue: true, stop: "t1" });
  const { d, sent, go, ack, storage } = delivery(before.storage); // a reload
  const other = delivery(before.storage); // another tab
  go();
  assert.deepEqual(steps(sent), ["stop t1 two", "one"], "it waits for no other message");
  d.answer({ type: "ack", id: idOf(sent[1]!), conversation: "a", seq: 1 });
  assert.equal(sent.length, 2, "the message waits for its stop");
  assert.deepEqual(d.of("a").map((p) => p.unsent), [undefined, true]);
  go(); // a new connection: the answer of the old one is lost
  assert.deepEqual(steps(sent).slice(2), ["stop t1 two"]);
  assert.ok(!d.answer({ type: "ack", id: idOf(sent[0]!), conversation: "a", seq: 2 }), "an answer to what was given up");
  ack(2);
  assert.deepEqual(steps(sent).slice(3), ["two"]);
  assert.equal((sent[3] as { command: { queue?: boolean } }).command.queue, true);
  // It has been done, and is not done again: not by another tab, nor after another reload.
  const later = delivery(storage);
  later.go();
  other.go();
  for (const o of [later, other]) {
    assert.deepEqual(o.texts(), ["two"]);
    o.ack(3);
    assert.equal(o.sent.length, 1);
  }
  ack(3);
  assert.equal(storage.length, 0);
});

test("a message goes also where its turn can't be stopped; what is changed or taken back stops nothing", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const warned: unknown[] = [];
  const { d, sent, texts, go, ack } = delivery(undefined, (...w) => warned.push(w[1]));
  const reject = (reason: string) => d.answer({ type: "rejected", id: (sent.at(-1) as { id: string }).id, conversation: "a", error: "no", reason });
  const types = () => sent.map((f) => f.type === "command" && f.command.type);
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
  assert.equal((warned[0] as Error).message, "no");
  assert.deepEqual(texts().slice(2), ["one, better"]);
  ack();
  assert.equal(d.waiting, 0);
  // Taken back while the answer is on its way, it stays so.
  void d.add("a", { id: "three", text: "three" }, { stop: "t3" });
  assert.ok(d.discard("three"));
  ack();
  assert.deepEqual([types().slice(3), d.waiting], [["stop"], 0]);
});

test("a page sends what another page of the same browser has left as that left it", () => {
  const one = delivery();
  for (const id of ["x", "y", "z"]) void one.d.add("a", { id, text: id });
  const two = delivery(one.storage);
  one.d.discard("x");
  one.d.hold("y");
  one.d.release("y", { text: "y, changed" });
  two.go();
  assert.deepEqual(two.texts(), ["y, changed"]);
  two.ack();
  assert.deepEqual(two.texts(), ["y, changed", "z"]);
});

test("a conversation is made with its first message, whichever that is by then", () => {
  const { d, sent, made, texts, ack, go, storage } = delivery();
  void d.add("a", { id: "m1", text: "one" }, undefined, undefined, { id: "a", key: "a" });
  void d.add("a", { id: "m2", text: "two" });
  assert.ok(d.unmade("a"));
  d.discard("m1");
  assert.ok(d.unmade("a"), "the next one makes it");
  const later = delivery(storage);
  assert.ok(later.d.unmade("a"));
  go();
  assert.deepEqual(sent.map((f) => f.type === "create" && f.create), [{ id: "a", key: "a" }]);
  d.flush(); // a new connection: the answer of the old one is lost
  assert.deepEqual(texts(), ["create", "create"]);
  assert.deepEqual(made, []);
  ack();
  assert.deepEqual(made, ["a"]);
  assert.ok(!d.unmade("a"));
  assert.deepEqual(texts().slice(2), ["two"]);
  ack();
  assert.equal(d.waiting, 0);
  // Refused, it is the message that was; a new try makes it again.
  void d.add("b", { text: "x" }, undefined, undefined, { id: "b", agent: "none" });
  d.answer({ type: "rejected", id: (sent.at(-1) as { id: string }).id, error: "no agent", reason: "unknown_agent" });
  const [refused] = d.of("b");
  assert.equal(refused?.error?.reason, "unknown_agent");
  void d.retry(refused.key).catch(() => {});
  assert.equal(texts().at(-1), "create");
  d.answer({ type: "rejected", id: (sent.at(-1) as { id: string }).id, error: "no agent", reason: "unknown_agent" });
  assert.ok(d.discard(d.of("b")[0]!.key));
  assert.ok(!d.unmade("b"));
});

test("what was refused outlives its page, and goes out again only if a person says so", () => {
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
  const later = delivery(before.storage);
  later.go();
  assert.equal(later.d.waiting, 0);
  assert.deepEqual(later.texts(), []);
  assert.deepEqual(later.d.of("a").map((p) => [p.message.text, p.error?.reason, p.error?.message]), [["one", "too_large", "no: too_large"]], "for one that is gone nobody looks");
  void later.d.retry("one").catch(() => {});
  assert.deepEqual(later.texts(), ["one"]);
  assert.equal(before.storage.length, 1);
  refuse(later, "too_large");
  const last = delivery(before.storage);
  const [again] = last.d.of("a");
  assert.notEqual(again!.key, "one");
  assert.ok(last.d.discard(again!.key));
  assert.equal(before.storage.length, 0);
  assert.deepEqual(delivery(before.storage).d.of("a"), []);
});

test("a first message may be for another agent than its conversation", () => {
  const { d, sent, ack, go } = delivery();
  go();
  void d.add("a", { text: "one" }, { agent: "b" }, undefined, { id: "a", key: "a", agent: "c" });
  ack();
  assert.deepEqual(sent.map((f) => (f.type === "create" ? f.create.agent : f.type === "command" && f.command.type === "send" && f.command.agent)), ["c", "b"]);
});

test("a refusal that may pass is repeated, later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: ClientFrame[] = [];
  const d = new Delivery(undefined, "x", (f) => (sent.push(f), true), () => {});
  const done = d.add("a", { text: "1" });
  for (let i = 0; i < 20; i++) {
    const f = sent.at(-1) as Extract<ClientFrame, { type: "command" }>;
    assert.ok(d.answer({ type: "rejected", id: f.id, error: "full", reason: "queue_full", retryAfter: 1000 }));
    assert.equal(sent.length, i + 1);
    t.mock.timers.tick(60_000);
    assert.equal(sent.length, i + 2);
  }
  const f = sent.at(-1) as Extract<ClientFrame, { type: "command" }>;
  d.answer({ type: "ack", id: f.id, conversation: "a", seq: 5, turn: "t" });
  assert.deepEqual(await done, { seq: 5, turn: "t" });
});

test("32 control frames wait for a connection; the oldest is dropped", async () => {
  const sent: ClientFrame[] = [];
  let online = false;
  const r = new Requests((f) => (online && sent.push(f), online));
  const outcomes = Array.from({ length: 40 }, (_, i) => r.add({ type: "command", conversation: "c", command: { type: "stop", turn: `t${i}`, key: `k${i}` } }).then(() => "done", (e: Error & { reason: string }) => e.reason));
  assert.equal(queueLimit, 32);
  online = true;
  r.flush();
  assert.deepEqual(sent.map((f) => f.type === "command" && f.command.key), Array.from({ length: 32 }, (_, i) => `k${i + 8}`));
  for (const f of sent) r.take({ type: "ack", id: (f as { id: string }).id, conversation: "c" });
  assert.deepEqual(await Promise.all(outcomes), [...Array<string>(8).fill("dropped"), ...Array<string>(32).fill("done")]);
});

test("a control frame whose answer is lost is sent again with its key, and not for ever", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: ClientFrame[] = [];
  const r = new Requests((f) => (sent.push(f), true));
  const done = r.add({ type: "create", create: { key: "k" } });
  r.flush();
  assert.deepEqual(sent[0], sent[1]);
  const { id } = sent[0] as { id: string };
  for (let i = 0; i < 6; i++) {
    r.take({ type: "rejected", id, error: "busy", reason: "busy" });
    t.mock.timers.tick(60_000);
  }
  await assert.rejects(done, { reason: "busy" });
  assert.equal(sent.length, 7);
  assert.ok(!r.take({ type: "ack", id, conversation: "c" }));
});
