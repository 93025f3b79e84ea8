import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import type { LeatError } from "../src/errors.js";
import { httpDial } from "../src/httplink.js";
import { EventReader } from "../src/sse.js";
import type { ServerFrame } from "../src/wire.js";

/** A gateway whose answers the test gives. */
function link(t: TestContext, answer: (path: string, init: RequestInit) => Response | Promise<Response>) {
  const asked: string[] = [];
  const frames: ServerFrame[] = [];
  const ends: LeatError[] = [];
  t.mock.method(globalThis, "fetch", async (url: string, init: RequestInit) => {
    const path = url.slice("http://gateway".length);
    asked.push(path);
    return answer(path, init);
  });
  const l = httpDial({ url: "http://gateway" })("token", { frame: (f) => frames.push(f), alive: () => {}, closed: (why) => ends.push(why) });
  t.after(() => l.close());
  return { l, asked, frames, ends };
}

const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};
const stream = (text: string): Response => new Response(new ReadableStream({
  start: (c) => c.enqueue(new TextEncoder().encode(text)), // and then nothing more, without an end
}), { headers: { "Content-Type": "text/event-stream" } });

test("without a stream it asks every 15 s; a stream that says nothing for 40 s is dead", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { l, asked, frames, ends } = link(t, (path) => (path.endsWith("/events") ? stream('data: {"type":"hello","turns":[]}\n\n') : Response.json({ agents: [] })));
  await settle();
  assert.deepEqual(frames, [{ type: "hello", protocol: "leat/1" }]);
  t.mock.timers.tick(15_000);
  await settle();
  assert.deepEqual(frames.at(-1), { type: "pong" });
  l.send({ type: "subscribe", id: "s1", conversation: "c" });
  await settle();
  assert.deepEqual(frames.at(-1), { type: "subscribed", id: "s1", conversation: "c", turns: [] });
  t.mock.timers.tick(39_000);
  await settle();
  assert.equal(asked.length, 3, "a stream has heartbeats of its own");
  assert.equal(ends.length, 0);
  t.mock.timers.tick(1000);
  assert.equal(ends[0]?.reason, "network");
});

test("a stream that does not even begin is dead after 40 s, however well the gateway answers else", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { l, ends } = link(t, (path, init) => (path.endsWith("/events") ? new Promise((_, reject) => init.signal!.addEventListener("abort", () => reject(init.signal!.reason as Error))) : Response.json({ agents: [] })));
  await settle();
  l.send({ type: "subscribe", id: "s1", conversation: "c" });
  await settle();
  t.mock.timers.tick(39_000);
  await settle();
  assert.equal(ends.length, 0);
  t.mock.timers.tick(1000);
  await settle();
  assert.deepEqual(ends.map((e) => e.message), ["a stream has fallen silent"]);
});

test("commands of a conversation keep their order; a stop overtakes", async (t) => {
  const bodies: string[] = [];
  const held: (() => void)[] = [];
  const { l, frames } = link(t, async (path, init) => {
    if (path === "/api/agents") return Response.json({ agents: [] });
    bodies.push((JSON.parse(init.body as string) as { type: string }).type);
    await new Promise<void>((resolve) => held.push(resolve));
    return Response.json({ seq: bodies.length });
  });
  await settle();
  l.send({ type: "command", id: "1", conversation: "c", command: { type: "update", title: "a" } });
  l.send({ type: "command", id: "2", conversation: "c", command: { type: "truncate" } });
  l.send({ type: "command", id: "3", conversation: "c", command: { type: "stop", turn: "t" } });
  l.send({ type: "command", id: "4", conversation: "d", command: { type: "delete" } });
  await settle();
  assert.deepEqual([...bodies].sort(), ["delete", "stop", "update"]);
  held.splice(0).forEach((go) => go());
  await settle();
  assert.equal(bodies.at(-1), "truncate");
  held.splice(0).forEach((go) => go());
  await settle();
  assert.deepEqual(frames.flatMap((f) => (f.type === "ack" ? [f.id] : [])).sort(), ["1", "2", "3", "4"]);
});

test("what something between here and the gateway answers is told as what it is", async (t) => {
  const { l, frames, ends } = link(t, (path) => {
    if (path === "/api/agents") return Response.json({ agents: [] });
    if (path.endsWith("/events")) return new Response("<html>", { headers: { "Content-Type": "text/html" } });
    return new Response("<html>bad gateway", { status: 502, headers: { "Retry-After": "3" } });
  });
  await settle();
  l.send({ type: "command", id: "1", conversation: "c", command: { type: "delete" } });
  await settle();
  assert.deepEqual(frames.slice(1), [
    { type: "rejected", id: "1", conversation: "c", error: "the server answered 502 ", reason: "unavailable", retryAfter: 3000 },
  ]);
  assert.equal(ends.length, 0);
  l.send({ type: "subscribe", id: "s1", conversation: "c" });
  await settle();
  assert.equal(ends[0]?.reason, "protocol");
  assert.equal(frames.length, 2, "such a page is no reason to give a conversation up");
});

test("server-sent events in any pieces", () => {
  const whole = 'id: e.1\ndata: {"a":1}\n\n: ping\n\ndata: one\r\ndata:two\r\n\r\ndata: rest';
  for (let size = 1; size <= whole.length; size++) {
    const r = new EventReader();
    const got: string[] = [];
    for (let i = 0; i < whole.length; i += size) r.feed(whole.slice(i, i + size), (d) => got.push(d));
    assert.deepEqual(got, ['{"a":1}', "one\ntwo"]);
  }
});
