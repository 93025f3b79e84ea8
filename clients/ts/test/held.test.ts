import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { Client } from "../src/client.js";
import { ConversationCache, maxIdle } from "../src/cache.js";
import { Conversation, type Host } from "../src/conversation.js";
import { Gateway } from "./gateway.js";
import { MemoryStorage } from "./storage.js";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

// Runs the garbage collector until isDone. A conversation that a step has used lives to the end of that step.
async function collect(isDone: () => boolean): Promise<void> {
  for (const limit = Date.now() + 60_000; !isDone() && Date.now() < limit;) {
    await new Promise((resolve) => setTimeout(resolve, 5)); // requests that still refer to it end meanwhile
    gc();
  }
  assert.ok(isDone(), "an unreferenced conversation is still in memory");
}

function hold(): { held: ConversationCache; open: (id: string) => Conversation } {
  const cache = new ConversationCache();
  const host = { send: () => true, pending: () => [], isUncreated: () => false, advance: () => {}, refusal: () => undefined, use: (c: Conversation) => cache.use(c) } as unknown as Host;
  const open = (id: string) => {
    const c = cache.get(id) ?? new Conversation(id, host);
    cache.use(c);
    return c;
  };
  return { held: cache, open };
}

test("conversations without subscribers are dropped, the least recently used first", () => {
  const { held, open } = hold();
  const leaves = ["watched", "also watched"].map((id) => open(id).subscribe(() => {}));
  const conversation = open("mine");
  for (let i = 0; i < 10 * maxIdle; i++) open(`${i}`).subscribe(() => {})();
  open(`${9 * maxIdle}`); // used again, so it is not the next to go
  open("one more");
  assert.deepEqual(held.strongIds, ["watched", "also watched", ...Array.from({ length: maxIdle - 2 }, (_, i) => `${9 * maxIdle + 2 + i}`), `${9 * maxIdle}`, "one more"]);
  assert.equal(open("mine"), conversation, "it is one object as long as it is referenced");
  for (const leave of leaves) leave();
  const last = Array.from({ length: maxIdle }, (_, i) => `last ${i}`);
  last.forEach(open);
  assert.deepEqual(held.strongIds, last);
  conversation.subscribe(() => {});
  assert.deepEqual(held.strongIds, [...last, "mine"]);
});

test("dropped conversations without references are collected", async () => {
  const { held, open } = hold();
  for (let i = 0; i < 10 * maxIdle; i++) open(`${i}`);
  await collect(() => held.size < 2 * maxIdle); // an engine may hold a few on its stack
  assert.equal([...held].length, held.size);
});

test("a dropped conversation loads again from a snapshot and follows its events", async (t) => {
  const gateway = await Gateway.start();
  t.after(() => gateway.stop());
  const client = new Client({ url: gateway.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const id = await gateway.create();
  const say = async (text: string) => {
    await gateway.call("POST", `/api/conversations/${id}/commands`, JSON.stringify({ type: "inject", message: { role: "user", text } }));
  };
  const texts = (c: Conversation) => c.state.messages.map((m) => m.parts[0]?.text);
  await say("one");
  const ref = await (async () => {
    const c = client.conversation(id);
    await c.waitFor((s) => s.messages.length === 1);
    return new WeakRef(c);
  })();
  assert.equal(client.conversation(id).state.phase, "stale");
  for (let i = 0; i < maxIdle; i++) client.conversation(`other ${i}`);
  await say("two");
  await collect(() => ref.deref() === undefined);
  const c = client.conversation(id);
  assert.deepEqual([c.state.phase, c.state.messages], ["loading", []]);
  t.after(c.subscribe(() => {}));
  await c.waitFor((s) => s.phase === "live" && s.messages.length === 2);
  await say("three");
  await c.waitFor((s) => s.messages.length === 3);
  assert.deepEqual(texts(c), ["one", "two", "three"]);
});
