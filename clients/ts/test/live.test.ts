import assert from "node:assert/strict";
import { test } from "node:test";

import { LiveEvents, type LiveEvent } from "../src/live.js";
import { Gateway } from "./gateway.js";

const token = "sesame-and-more";

/** Resolves when the condition holds, which is looked at after each event. */
function watch(live: LiveEvents, ...types: LiveEvent["type"][]): { all: LiveEvent[]; until(holds: () => boolean): Promise<void> } {
  const all: LiveEvent[] = [];
  let look = () => {};
  for (const type of types) live.on(type, (e) => (all.push(e), look()));
  return {
    all,
    until: (holds) => new Promise((resolve) => {
      look = () => holds() && resolve();
      look();
    }),
  };
}

test("signals come once and in order, across a kill of the gateway", async (t) => {
  let gateway = await Gateway.start({ token });
  t.after(() => gateway.stop());
  const publish = (...n: number[]) => gateway.call("POST", "/api/signals", n.map((i) => JSON.stringify({ type: "training_event", payload: i })).join("\n"));
  await publish(1, 2, 3);
  const live = new LiveEvents({ url: gateway.url, token: () => token });
  t.after(() => live.close());
  const seen = watch(live, "training_event", "status");
  const ids = () => seen.all.flatMap((e) => (e.type === "training_event" ? [e.eventId] : []));
  await seen.until(() => ids().length === 3);
  const first = seen.all.find((e) => e.type === "status");
  assert.ok(first?.type === "status" && first.state === "running" && first.agentName === "demo" && first.uptime !== undefined);
  gateway = await gateway.restart();
  await publish(4, 5);
  await seen.until(() => ids().length >= 5);
  await publish(6);
  await seen.until(() => ids().length >= 6);
  assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6].map((i) => `evt-${i}`));
});

test("a pong is delivered to who asked", { timeout: 20_000 }, async (t) => {
  const gateway = await Gateway.start({ token });
  t.after(() => gateway.stop());
  const live = new LiveEvents({ url: gateway.url, token });
  t.after(() => live.close());
  const seen = watch(live, "pong");
  live.send({ type: "ping" });
  await seen.until(() => seen.all.length > 0);
  assert.deepEqual(seen.all[0], { type: "pong" });
});

test("a token that is refused is not tried for ever", async (t) => {
  const gateway = await Gateway.start({ token });
  t.after(() => gateway.stop());
  const live = new LiveEvents({ url: gateway.url, token: "wrong" });
  t.after(() => live.close());
  await new Promise<void>((resolve) => {
    live.onState((s) => s === "unauthorized" && resolve());
    live.connect();
  });
  assert.equal(live.error?.reason, "unauthorized");
});

/** A socket whose other end is the test. */
class FakeSocket {
  static all: FakeSocket[] = [];
  sent: string[] = [];
  onopen = () => {};
  onmessage = (_: { data: string }) => {};
  onclose = (_: { code: number; reason: string }) => {};
  onerror = () => {};
  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {}
  greet(): void {
    this.onopen();
    this.onmessage({ data: '{"type":"status","state":"running","agentName":"a"}' });
  }
}

test("32 control frames wait, the oldest make way; what is looked at is told once, and anew on each connection", async (t) => {
  const real = globalThis.WebSocket;
  globalThis.WebSocket = FakeSocket as unknown as typeof WebSocket;
  t.after(() => (globalThis.WebSocket = real));
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const warned: string[] = [];
  const consoled = t.mock.method(console, "warn", () => {});
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const live = new LiveEvents({ url: "http://gateway", token: "t", clientId: "ui-1", warn: (message) => warned.push(message) });
  t.after(() => live.close());
  for (let n = 0; n < 40; n++) {
    live.send({ type: "x", n });
    if (n === 20 || n === 30) live.look(`c${n + 11}`);
  }
  assert.equal(warned.length, 9);
  assert.match(warned[0]!, /a frame x was dropped/);
  assert.equal(consoled.mock.callCount(), 0);
  live.connect();
  await settle();
  const look = '{"type":"active-conversation","conversationId":"c41"}';
  const one = FakeSocket.all[0]!;
  assert.equal(one.url, "ws://gateway/ws?clientId=ui-1");
  one.onopen();
  assert.deepEqual(one.sent, ['{"type":"auth","token":"t"}'], "the queue waits until the token is taken");
  one.sent = [];
  one.onmessage({ data: '{"type":"auth-ok"}' });
  assert.deepEqual(one.sent, []);
  one.onmessage({ data: '{"type":"status","state":"running","agentName":"a"}' });
  assert.deepEqual(one.sent, [look, ...Array.from({ length: 31 }, (_, i) => `{"type":"x","n":${i + 9}}`)]);
  one.onmessage({ data: '{"type":"agent_event","version":1,"eventId":"evt-7","ts":1,"payload":{}}' });
  one.onclose({ code: 1006, reason: "" });
  await settle();
  t.mock.timers.tick(1000);
  await settle();
  const two = FakeSocket.all[1]!;
  assert.equal(two.url, "ws://gateway/ws?clientId=ui-1&lastEventId=evt-7");
  two.greet();
  assert.deepEqual(two.sent.slice(1), [look]);
  live.look(undefined);
  assert.equal(two.sent.at(-1), '{"type":"active-conversation","conversationId":null}');
});

test("a socket that ends with its token asks for another one at once", async (t) => {
  const real = globalThis.WebSocket;
  globalThis.WebSocket = FakeSocket as unknown as typeof WebSocket;
  FakeSocket.all = [];
  t.after(() => (globalThis.WebSocket = real));
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  let n = 0;
  const live = new LiveEvents({ url: "http://gateway", token: () => `t${++n}` });
  t.after(() => live.close());
  live.connect();
  await settle();
  FakeSocket.all[0]!.greet();
  t.mock.timers.tick(20_000);
  FakeSocket.all[0]!.onclose({ code: 1008, reason: "the token has expired" });
  await settle();
  FakeSocket.all[1]!.greet();
  assert.deepEqual(FakeSocket.all[1]!.sent, ['{"type":"auth","token":"t2"}']);
  assert.equal(live.state, "connected");
});
