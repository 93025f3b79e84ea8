import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, type ClientOptions, LeatError, turnText, visibleText, type Event } from "../src/index.js";
import { Gateway } from "./gateway.js";
import { MemoryStorage } from "./storage.js";

const token = "a-token-of-the-tests";
let gateway: Gateway;
before(async () => void (gateway = await Gateway.start({ token })));
after(() => gateway.stop());

for (const transport of ["websocket", "http"] as const) {
  const open = (t: { after(fn: () => void): void }, options: ClientOptions = {}): Client => {
    const c = new Client({ url: gateway.url, token, transport, ...options });
    t.after(() => c.close());
    return c;
  };

  test(`${transport}: a conversation from its beginning to its end`, async (t) => {
    const client = open(t);
    const c = await client.create({ title: "Sums" });
    const events: Event[] = [];
    t.after(c.onEvents((e) => events.push(...e)));
    const ack = await c.send("12 * 7");
    assert.ok(ack.turn);
    const s = await c.until((s) => s.turns.some((turn) => turn.id === ack.turn && turn.state === "ended"));
    assert.equal(client.state, "connected");
    assert.equal(s.phase, "live");
    assert.equal(s.title, "Sums");
    assert.match(turnText(s, ack.turn), /12 \* 7 = 84/);
    assert.equal(visibleText(s.messages[0]!), "12 * 7");
    assert.deepEqual(s.pending, []);
    assert.equal(s.turns[0]?.outcome, "completed");
    assert.ok(events.some((e) => e.type === "turn.end" && e.outcome === "completed"));
    assert.ok(s.messages.every((m) => m.ended));

    await c.update({ title: "Other sums", metadata: { k: [1, "ä"] } });
    assert.deepEqual((await c.until((s) => s.title === "Other sums")).metadata, { k: [1, "ä"] });
    await c.truncate(s.messages[0]!.id);
    await c.until((s) => s.messages.length === 1);
    assert.ok((await client.list()).some((l) => l.id === c.id && l.title === "Other sums" && l.unread));
    await client.markRead(c.id);
    assert.ok((await client.list()).some((l) => l.id === c.id && !l.unread && l.read! > 0));
    assert.equal((await client.agents())[0]?.name, "demo");

    await c.delete();
    await assert.rejects(c.until(() => false), (err) => err instanceof LeatError && ["deleted", "not_found"].includes(err.reason));
    assert.equal(c.state.phase, "gone");
  });

  test(`${transport}: what is refused says why, and can be sent again or forgotten`, async (t) => {
    const client = open(t, { storage: new MemoryStorage() });
    const c = await client.create();
    t.after(c.subscribe(() => {}));
    await assert.rejects(c.send("hi", { agent: "nobody" }), (err) => err instanceof LeatError && err.reason === "unknown_agent" && !err.temporary);
    const [refused] = c.state.pending;
    assert.equal(refused?.error?.reason, "unknown_agent");
    assert.equal(refused.message.text, "hi");
    await assert.rejects(c.retry(refused.key), { reason: "unknown_agent" });
    const [again] = c.state.pending;
    assert.notEqual(again?.key, refused.key);
    c.discard(again!.key);
    assert.deepEqual(c.state.pending, []);
    await assert.rejects(c.answer("no-turn", "no-request", { decision: "approve" }), { reason: "unknown" });
    await assert.rejects(client.create({ id: "a/b" }), { reason: "invalid" });
  });

  test(`${transport}: two conversations at once, and one that is not there`, async (t) => {
    const client = open(t);
    const [a, b] = await Promise.all([client.create(), client.create()]);
    await Promise.all([a, b].map(async (c, i) => {
      const ack = await c.send(`${i} + 1`);
      const s = await c.until((s) => s.turns.some((turn) => turn.id === ack.turn && turn.state === "ended"));
      assert.match(turnText(s, ack.turn!), new RegExp(`${i} \\+ 1 = ${i + 1}`));
    }));
    await assert.rejects(client.conversation("nowhere").until(() => true), { reason: "not_found" });
    assert.equal(client.state, "connected");
  });

  test(`${transport}: older messages`, async (t) => {
    const client = open(t);
    const c = await client.create();
    for (let i = 0; i < 70; i++) await c.inject({ text: `note ${i}` });
    const s = await c.until((s) => visibleText(s.messages.at(-1)!) === "note 69");
    assert.ok(s.earlier && s.messages.length < 70);
    while (await c.loadEarlier(8));
    assert.deepEqual(c.state.messages.map(visibleText), Array.from({ length: 70 }, (_, i) => `note ${i}`));
    assert.equal(await c.loadEarlier(), false);
  });

  test(`${transport}: a wrong token is not tried for ever`, async (t) => {
    const client = open(t, { token: "wrong" });
    const states: string[] = [];
    client.onState((s) => states.push(s));
    client.connect();
    const until = assert.rejects(client.conversation("c").until(() => true), { reason: "unauthorized" });
    await assert.rejects(client.create(), { reason: "unauthorized" });
    await until;
    await assert.rejects(client.create(), { reason: "unauthorized" });
    assert.deepEqual(states, ["connecting", "unauthorized"]);
    assert.equal(client.error?.reason, "unauthorized");
  });

  test(`${transport}: until fails at once where the token was refused before, and works after a login`, { timeout: 20_000 }, async (t) => {
    const { id } = await open(t).create();
    let now = "wrong";
    const client = open(t, { token: () => now });
    await assert.rejects(client.create(), { reason: "unauthorized" });
    const c = client.conversation(id);
    await assert.rejects(c.until(() => true), { reason: "unauthorized" });
    t.after(c.subscribe(() => {}));
    assert.equal(c.state.error?.reason, "unauthorized");
    now = token;
    client.connect();
    const s = await c.until((s) => s.phase === "live");
    assert.equal(s.error, undefined);
  });

  test(`${transport}: a token that has run out is asked for anew`, async (t) => {
    const given: string[] = [];
    const client = open(t, { token: () => Promise.resolve((given.push(given.length === 0 ? "old" : token), given.at(-1))) });
    await client.create();
    assert.deepEqual(given, ["old", token]);
  });

  test(`${transport}: a closed client says so`, async () => {
    const client = new Client({ url: gateway.url, token, transport });
    const c = await client.create();
    client.close();
    await assert.rejects(async () => c.stop("x"), { reason: "closed" });
    assert.throws(() => client.connect(), { reason: "closed" });
  });
}

test("a conversation begins with its first message, also while there is no gateway; one that stops says so", async (t) => {
  const own = await Gateway.start();
  const client = new Client({ url: own.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const first = await client.create();
  await first.until(() => true);
  const stopped = new Promise<LeatError | undefined>((resolve) => client.onState((s, err) => s === "reconnecting" && resolve(err)));
  await own.stop();
  const why = await stopped;
  assert.equal(why?.reason, "restarting");
  assert.ok(why.temporary);
  assert.ok(client.heard > 0 && client.retryAt > client.heard);
  const counts: number[] = [];
  t.after(client.onWaiting((n) => counts.push(n)));
  const c = client.begin("12 * 7", { title: "Sums" });
  const leave = c.subscribe(() => {});
  assert.deepEqual(c.state.pending.map((p) => [p.message.text, p.unsent]), [["12 * 7", true]]);
  assert.equal(client.waiting, 1);
  const back = await Gateway.start({ ...own.options, port: Number(new URL(own.url).port) });
  t.after(() => back.stop());
  client.connect();
  const s = await c.until((s) => s.turns[0]?.state === "ended");
  assert.match(turnText(s, s.turns[0]!.id), /84/);
  assert.equal(s.title, "Sums");
  assert.equal(client.waiting, 0);
  assert.equal(counts.at(-1), 0);
  leave();
});

test("the holder of an admin token acts for somebody, over HTTP", async (t) => {
  const alice = new Client({ url: gateway.url, token, subject: "alice" });
  const bob = new Client({ url: gateway.url, token, subject: "bob" });
  t.after(() => (alice.close(), bob.close()));
  const c = await alice.create();
  await assert.rejects(bob.conversation(c.id).until(() => true), { reason: "not_found" });
  await c.share("bob", "read");
  await bob.conversation(c.id).until((s) => s.phase === "live");
  assert.deepEqual((await bob.list()).map((s) => [s.id, s.owner, s.access]), [[c.id, "alice", "read"]]);
  await assert.rejects(bob.conversation(c.id).send("hi"), { reason: "forbidden" });
  await c.unshare("bob");
  await assert.rejects(bob.conversation(c.id).until((s) => s.phase === "live"), { reason: "not_found" });
  assert.throws(() => new Client({ url: gateway.url, subject: "x", transport: "websocket" }), TypeError);
});
