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

// Collects what nobody has. A conversation that a step has looked at lives to the end of that step.
async function collect(until: () => boolean): Promise<void> {
  for (let i = 0; i < 100 && !until(); i++) {
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
  assert.ok(until(), "what nobody has is still held");
}

function hold(): { held: ConversationCache; open: (id: string) => Conversation } {
  const held = new ConversationCache();
  const host = { send: () => true, pending: () => [], unmade: () => false, seen: () => {}, refusal: () => undefined, use: (c: Conversation) => held.use(c) } as unknown as Host;
  const open = (id: string) => {
    const c = held.get(id) ?? new Conversation(id, host);
    held.use(c);
    return c;
  };
  return { held, open };
}

test("conversations that nobody watches are let go, the one used longest ago first", () => {
  const { held, open } = hold();
  const leaves = ["watched", "also watched"].map((id) => open(id).subscribe(() => {}));
  const mine = open("mine");
  for (let i = 0; i < 10 * maxIdle; i++) open(`${i}`).subscribe(() => {})();
  open(`${9 * maxIdle}`); // used again, so it is not the next to go
  open("one more");
  assert.deepEqual(held.strongIds, ["watched", "also watched", ...Array.from({ length: maxIdle - 2 }, (_, i) => `${9 * maxIdle + 2 + i}`), `${9 * maxIdle}`, "one more"]);
  assert.equal(open("mine"), mine, "it is one object for as long as somebody has it");
  for (const leave of leaves) leave();
  const last = Array.from({ length: maxIdle }, (_, i) => `last ${i}`);
  last.forEach(open);
  assert.deepEqual(held.strongIds, last);
  mine.subscribe(() => {});
  assert.deepEqual(held.strongIds, [...last, "mine"]);
});

test("what was let go, and nobody has, is gone", async () => {
  const { held, open } = hold();
  for (let i = 0; i < 10 * maxIdle; i++) open(`${i}`);
  await collect(() => held.size < 2 * maxIdle); // an engine may hold a few on its stack
  assert.equal([...held].length, held.size);
});

test("a conversation that was dropped opens again by a snapshot, and goes on", async (t) => {
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
    await c.until((s) => s.messages.length === 1);
    return new WeakRef(c);
  })();
  assert.equal(client.conversation(id).state.phase, "stale");
  for (let i = 0; i < maxIdle; i++) client.conversation(`other ${i}`);
  await say("two");
  await collect(() => ref.deref() === undefined);
  const c = client.conversation(id);
  assert.deepEqual([c.state.phase, c.state.messages], ["loading", []]);
  t.after(c.subscribe(() => {}));
  await c.until((s) => s.phase === "live" && s.messages.length === 2);
  await say("three");
  await c.until((s) => s.messages.length === 3);
  assert.deepEqual(texts(c), ["one", "two", "three"]);
});
