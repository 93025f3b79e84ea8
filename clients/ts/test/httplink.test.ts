import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import type { LeatError } from "../src/errors.js";
import { httpDial } from "../src/httplink.js";
import { EventReader } from "../src/sse.js";
import type { ServerFrame } from "../src/wire.js";

/** A fake gateway whose answers the test chooses. */
function link(t: TestContext, answer: (path: string, init: RequestInit) => Response | Promise<Response>) {
  const paths: string[] = [];
  const frames: ServerFrame[] = [];
  const ends: LeatError[] = [];
  t.mock.method(globalThis, "fetch", async (url: string, init: RequestInit) => {
    const path = url.slice("http://gateway".length);
    paths.push(path);
    return answer(path, init);
  });
  const l = httpDial({ url: "http://gateway" })("token", { frame: (f) => frames.push(f), alive: () => {}, closed: (cause) => ends.push(cause) });
  t.after(() => l.close());
  return { l, asked: paths, frames, ends };
}

const settle = async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};
const stream = (text: string): Response => new Response(new ReadableStream({
  start: (c) => c.enqueue(new TextEncoder().encode(text)), // and then nothing more, without an end
}), { headers: { "Content-Type": "text/event-stream" } });

test("without a stream the link checks the gateway every 15 s; a stream without data for 40 s is dead", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { l, asked: paths, frames, ends } = link(t, (path) => (path.endsWith("/events") ? stream('data: {"type":"hello","turns":[]}\n\n') : Response.json({ agents: [] })));
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
  assert.equal(paths.length, 3, "a stream has its own heartbeats");
  assert.equal(ends.length, 0);
  t.mock.timers.tick(1000);
  assert.equal(ends[0]?.reason, "network");
});

test("a stream that doesn't begin is dead after 40 s, even if the gateway answers other requests", async (t) => {
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
  assert.deepEqual(ends.map((e) => e.message), ["no data on a stream"]);
});

test("commands of a conversation keep their order; a stop overtakes", async (t) => {
  const bodies: string[] = [];
  const pending: (() => void)[] = [];
  const { l, frames } = link(t, async (path, init) => {
    if (path === "/api/agents") return Response.json({ agents: [] });
    bodies.push((JSON.parse(init.body as string) as { type: string }).type);
    await new Promise<void>((resolve) => pending.push(resolve));
    return Response.json({ seq: bodies.length });
  });
  await settle();
  l.send({ type: "command", id: "1", conversation: "c", command: { type: "update", title: "a" } });
  l.send({ type: "command", id: "2", conversation: "c", command: { type: "truncate" } });
  l.send({ type: "command", id: "3", conversation: "c", command: { type: "stop", turn: "t" } });
  l.send({ type: "command", id: "4", conversation: "d", command: { type: "delete" } });
  await settle();
  assert.deepEqual([...bodies].sort(), ["delete", "stop", "update"]);
  pending.splice(0).forEach((go) => go());
  await settle();
  assert.equal(bodies.at(-1), "truncate");
  pending.splice(0).forEach((go) => go());
  await settle();
  assert.deepEqual(frames.flatMap((f) => (f.type === "ack" ? [f.id] : [])).sort(), ["1", "2", "3", "4"]);
});

test("answers of a proxy are reported as failures of the request", async (t) => {
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
  assert.equal(frames.length, 2, "such a page doesn't end a conversation");
});

test("server-sent events in any pieces", () => {
  const text = 'id: e.1\ndata: {"a":1}\n\n: ping\n\ndata: one\r\ndata:two\r\n\r\ndata: rest';
  for (let size = 1; size <= text.length; size++) {
    const r = new EventReader();
    const got: string[] = [];
    for (let i = 0; i < text.length; i += size) r.feed(text.slice(i, i + size), (d) => got.push(d));
    assert.deepEqual(got, ['{"a":1}', "one\ntwo"]);
  }
});
