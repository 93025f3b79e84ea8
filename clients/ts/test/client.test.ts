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
    const s = await c.waitFor((s) => s.turns.some((turn) => turn.id === ack.turn && turn.state === "ended"));
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
    assert.deepEqual((await c.waitFor((s) => s.title === "Other sums")).metadata, { k: [1, "ä"] });
    await c.truncate(s.messages[0]!.id);
    await c.waitFor((s) => s.messages.length === 1);
    assert.ok((await client.list()).some((l) => l.id === c.id && l.title === "Other sums" && l.unread));
    await client.markRead(c.id);
    assert.ok((await client.list()).some((l) => l.id === c.id && !l.unread && l.read! > 0));
    assert.equal((await client.agents())[0]?.name, "demo");

    await c.delete();
    await assert.rejects(c.waitFor(() => false), (err) => err instanceof LeatError && ["deleted", "not_found"].includes(err.reason));
    assert.equal(c.state.phase, "gone");
  });

  test(`${transport}: a refused message has the reason, and can be retried or discarded`, async (t) => {
    const client = open(t, { storage: new MemoryStorage() });
    const c = await client.create();
    t.after(c.subscribe(() => {}));
    await assert.rejects(c.send("hi", { agent: "nobody" }), (err) => err instanceof LeatError && err.reason === "unknown_agent" && !err.temporary);
    const [failed] = c.state.pending;
    assert.equal(failed?.error?.reason, "unknown_agent");
    assert.equal(failed.message.text, "hi");
    await assert.rejects(c.retry(failed.key), { reason: "unknown_agent" });
    const [retry] = c.state.pending;
    assert.notEqual(retry?.key, failed.key);
    c.discard(retry!.key);
    assert.deepEqual(c.state.pending, []);
    await assert.rejects(c.answer("no-turn", "no-request", { decision: "approve" }), { reason: "unknown" });
    await assert.rejects(client.create({ id: "a/b" }), { reason: "invalid" });
  });

  test(`${transport}: two conversations at once, and one that doesn't exist`, async (t) => {
    const client = open(t);
    const [a, b] = await Promise.all([client.create(), client.create()]);
    await Promise.all([a, b].map(async (c, i) => {
      const ack = await c.send(`${i} + 1`);
      const s = await c.waitFor((s) => s.turns.some((turn) => turn.id === ack.turn && turn.state === "ended"));
      assert.match(turnText(s, ack.turn!), new RegExp(`${i} \\+ 1 = ${i + 1}`));
    }));
    await assert.rejects(client.conversation("nowhere").waitFor(() => true), { reason: "not_found" });
    assert.equal(client.state, "connected");
  });

  test(`${transport}: open gets a conversation, or creates it; its first message waits for that`, async (t) => {
    const client = open(t);
    const id = crypto.randomUUID();
    const c = client.open(id, { title: "Sums" });
    assert.equal(client.open(id), c);
    const { turn } = await c.send("12 * 7");
    await c.waitFor((s) => s.turns.some((other) => other.id === turn && other.state === "ended"));
    const s = await open(t).open(id, { title: "Other sums" }).waitFor((s) => s.messages.length === 2);
    assert.equal(s.title, "Sums");
    assert.match(turnText(s, turn!), /12 \* 7 = 84/);
    await assert.rejects(client.open("a/b").waitFor(() => true), { reason: "invalid" });
    assert.equal(client.conversation("a/b").state.phase, "gone");
  });

  test(`${transport}: a message is sent again with its file`, async (t) => {
    const client = open(t);
    const c = await client.create();
    const { turn, message } = await c.send({ parts: [{ kind: "text", text: "12 * 7" }, { kind: "media", media: { url: "data:text/plain;base64,aGVsbG8=", name: "a.txt" } }] });
    await c.waitFor((s) => s.turns.some((other) => other.id === turn && other.state === "ended"));
    const ack = await c.resend(message!);
    const s = await c.waitFor((s) => s.turns.some((other) => other.id === ack.turn && other.state === "ended"));
    assert.deepEqual(s.messages.map((m) => m.role), ["user", "assistant"]);
    const url = s.messages[0]!.parts.find((p) => p.kind === "media")!.media!.url!;
    assert.equal(await (await gateway.call("GET", url)).text(), "hello");
  });

  test(`${transport}: open succeeds after a login`, async (t) => {
    let current = "wrong";
    const client = open(t, { token: () => current });
    const c = client.open(crypto.randomUUID());
    await assert.rejects(c.waitFor(() => true), { reason: "unauthorized" });
    current = token;
    client.connect();
    await c.waitFor((s) => s.phase === "live");
  });

  test(`${transport}: older messages`, async (t) => {
    const client = open(t);
    const c = await client.create();
    for (let i = 0; i < 70; i++) await c.inject({ text: `note ${i}` });
    const s = await c.waitFor((s) => visibleText(s.messages.at(-1)!) === "note 69");
    assert.ok(s.earlier && s.messages.length < 70);
    while (await c.loadEarlier(8));
    assert.deepEqual(c.state.messages.map(visibleText), Array.from({ length: 70 }, (_, i) => `note ${i}`));
    assert.equal(await c.loadEarlier(), false);
  });

  test(`${transport}: an invalid token is not retried forever`, async (t) => {
    const client = open(t, { token: "wrong" });
    const states: string[] = [];
    client.onState((s) => states.push(s));
    client.connect();
    const rejection = assert.rejects(client.conversation("c").waitFor(() => true), { reason: "unauthorized" });
    await assert.rejects(client.create(), { reason: "unauthorized" });
    await rejection;
    await assert.rejects(client.create(), { reason: "unauthorized" });
    assert.deepEqual(states, ["connecting", "unauthorized"]);
    assert.equal(client.error?.reason, "unauthorized");
  });

  test(`${transport}: waitFor rejects at once if the token was refused before, and works after a login`, { timeout: 60_000 }, async (t) => {
    const { id } = await open(t).create();
    let current = "wrong";
    const client = open(t, { token: () => current });
    await assert.rejects(client.create(), { reason: "unauthorized" });
    const c = client.conversation(id);
    await assert.rejects(c.waitFor(() => true), { reason: "unauthorized" });
    t.after(c.subscribe(() => {}));
    assert.equal(c.state.error?.reason, "unauthorized");
    current = token;
    client.connect();
    const s = await c.waitFor((s) => s.phase === "live");
    assert.equal(s.error, undefined);
  });

  test(`${transport}: after its token has expired, the client asks for a new one`, async (t) => {
    const tokens: string[] = [];
    const client = open(t, { token: () => Promise.resolve((tokens.push(tokens.length === 0 ? "old" : token), tokens.at(-1))) });
    await client.create();
    assert.deepEqual(tokens, ["old", token]);
  });

  test(`${transport}: a closed client rejects calls`, async () => {
    const client = new Client({ url: gateway.url, token, transport });
    const c = await client.create();
    client.close();
    await assert.rejects(async () => c.stop("x"), { reason: "closed" });
    assert.throws(() => client.connect(), { reason: "closed" });
  });
}

test("a conversation begins with its first message, even while the gateway is stopped; the client knows that it is restarting", async (t) => {
  const server = await Gateway.start();
  const client = new Client({ url: server.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const initial = await client.create();
  await initial.waitFor(() => true);
  const stop = new Promise<LeatError | undefined>((resolve) => client.onState((s, err) => s === "reconnecting" && resolve(err)));
  await server.stop();
  const cause = await stop;
  assert.equal(cause?.reason, "restarting");
  assert.ok(cause.temporary);
  assert.ok(client.lastHeard > 0 && client.retryAt > client.lastHeard);
  const counts: number[] = [];
  t.after(client.onUnacknowledged((n) => counts.push(n)));
  const c = client.begin("12 * 7", { title: "Sums" });
  const leave = c.subscribe(() => {});
  assert.deepEqual(c.state.pending.map((p) => [p.message.text, p.unsent]), [["12 * 7", true]]);
  assert.equal(client.unacknowledged, 1);
  const openedConversation = client.open("opened-without-a-connection");
  void openedConversation.send("3 * 3");
  const restarted = await Gateway.start({ ...server.options, port: Number(new URL(server.url).port) });
  t.after(() => restarted.stop());
  client.connect();
  const s = await c.waitFor((s) => s.turns[0]?.state === "ended");
  assert.match(turnText(s, s.turns[0]!.id), /84/);
  assert.equal(s.title, "Sums");
  const other = await openedConversation.waitFor((s) => s.turns[0]?.state === "ended");
  assert.match(turnText(other, other.turns[0]!.id), /9/);
  assert.equal(client.unacknowledged, 0);
  assert.equal(counts.at(-1), 0);
  leave();
});

test("the holder of an admin token acts for a user, over HTTP", async (t) => {
  const alice = new Client({ url: gateway.url, token, subject: "alice" });
  const bob = new Client({ url: gateway.url, token, subject: "bob" });
  t.after(() => (alice.close(), bob.close()));
  const c = await alice.create();
  await assert.rejects(bob.conversation(c.id).waitFor(() => true), { reason: "not_found" });
  await assert.rejects(bob.open(c.id).waitFor(() => true), { reason: "not_found" });
  await c.share("bob", "read");
  await bob.conversation(c.id).waitFor((s) => s.phase === "live");
  assert.deepEqual((await bob.list()).map((s) => [s.id, s.owner, s.access]), [[c.id, "alice", "read"]]);
  await assert.rejects(bob.conversation(c.id).send("hi"), { reason: "forbidden" });
  await c.unshare("bob");
  await assert.rejects(bob.conversation(c.id).waitFor((s) => s.phase === "live"), { reason: "not_found" });
  assert.throws(() => new Client({ url: gateway.url, subject: "x", transport: "websocket" }), TypeError);
});
