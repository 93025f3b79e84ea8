import assert from "node:assert/strict";
import { test } from "node:test";

import { LiveEvents, type LiveEvent } from "../src/live.js";
import { Gateway } from "./gateway.js";

const token = "sesame-and-more";

/** Records events; until resolves when the condition is true, which is checked after each event. */
function watch(events: LiveEvents, ...types: LiveEvent["type"][]): { all: LiveEvent[]; until(holds: () => boolean): Promise<void> } {
  const received: LiveEvent[] = [];
  let check = () => {};
  for (const type of types) events.on(type, (e) => (received.push(e), check()));
  return {
    all: received,
    until: (holds) => new Promise((resolve) => {
      check = () => holds() && resolve();
      check();
    }),
  };
}

test("signals come once and in order, across a kill of the gateway", async (t) => {
  let gateway = await Gateway.start({ token });
  t.after(() => gateway.stop());
  const publish = (...n: number[]) => gateway.call("POST", "/api/signals", n.map((i) => JSON.stringify({ type: "training_event", payload: i })).join("\n"));
  await publish(1, 2, 3);
  const events = new LiveEvents({ url: gateway.url, token: () => token });
  t.after(() => events.close());
  const log = watch(events, "training_event", "status");
  const ids = () => log.all.flatMap((e) => (e.type === "training_event" ? [e.eventId] : []));
  await log.until(() => ids().length === 3);
  const status = log.all.find((e) => e.type === "status");
  assert.ok(status?.type === "status" && status.state === "running" && status.agentName === "demo" && status.uptime !== undefined);
  gateway = await gateway.restart();
  await publish(4, 5);
  await log.until(() => ids().length >= 5);
  await publish(6);
  await log.until(() => ids().length >= 6);
  assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6].map((i) => `evt-${i}`));
});

test("a pong is delivered to the listener", { timeout: 60_000 }, async (t) => {
  const gateway = await Gateway.start({ token });
  t.after(() => gateway.stop());
  const events = new LiveEvents({ url: gateway.url, token });
  t.after(() => events.close());
  const log = watch(events, "pong");
  events.send({ type: "ping" });
  await log.until(() => log.all.length > 0);
  assert.deepEqual(log.all[0], { type: "pong" });
});

test("a refused token is not retried forever", async (t) => {
  const gateway = await Gateway.start({ token });
  t.after(() => gateway.stop());
  const events = new LiveEvents({ url: gateway.url, token: "wrong" });
  t.after(() => events.close());
  await new Promise<void>((resolve) => {
    events.onState((s) => s === "unauthorized" && resolve());
    events.connect();
  });
  assert.equal(events.error?.reason, "unauthorized");
});

/** A socket whose other end is the test. */
class FakeSocket {
  static sockets: FakeSocket[] = [];
  frames: string[] = [];
  onopen = () => {};
  onmessage = (_: { data: string }) => {};
  onclose = (_: { code: number; reason: string }) => {};
  onerror = () => {};
  constructor(readonly url: string) {
    FakeSocket.sockets.push(this);
  }
  send(text: string): void {
    this.frames.push(text);
  }
  close(): void {}
  greet(): void {
    this.onopen();
    this.onmessage({ data: '{"type":"status","state":"running","agentName":"a"}' });
  }
}

test("32 control frames wait and the oldest is dropped; the active conversation is sent once on each connection", async (t) => {
  const real = globalThis.WebSocket;
  globalThis.WebSocket = FakeSocket as unknown as typeof WebSocket;
  t.after(() => (globalThis.WebSocket = real));
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const warnings: string[] = [];
  const consoled = t.mock.method(console, "warn", () => {});
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const events = new LiveEvents({ url: "http://gateway", token: "t", clientId: "ui-1", warn: (message) => warnings.push(message) });
  t.after(() => events.close());
  for (let n = 0; n < 40; n++) {
    events.send({ type: "x", n });
    if (n === 20 || n === 30) events.setActiveConversation(`c${n + 11}`);
  }
  assert.equal(warnings.length, 9);
  assert.match(warnings[0]!, /dropped a x frame/);
  assert.equal(consoled.mock.callCount(), 0);
  events.connect();
  await settle();
  const frame = '{"type":"active-conversation","conversationId":"c41"}';
  const firstSocket = FakeSocket.sockets[0]!;
  assert.equal(firstSocket.url, "ws://gateway/ws?clientId=ui-1");
  firstSocket.onopen();
  assert.deepEqual(firstSocket.frames, ['{"type":"auth","token":"t"}'], "the queue waits until the token is taken");
  firstSocket.frames = [];
  firstSocket.onmessage({ data: '{"type":"auth-ok"}' });
  assert.deepEqual(firstSocket.frames, []);
  firstSocket.onmessage({ data: '{"type":"status","state":"running","agentName":"a"}' });
  assert.deepEqual(firstSocket.frames, [frame, ...Array.from({ length: 31 }, (_, i) => `{"type":"x","n":${i + 9}}`)]);
  firstSocket.onmessage({ data: '{"type":"agent_event","version":1,"eventId":"evt-7","ts":1,"payload":{}}' });
  firstSocket.onclose({ code: 1006, reason: "" });
  await settle();
  t.mock.timers.tick(1000);
  await settle();
  const secondSocket = FakeSocket.sockets[1]!;
  assert.equal(secondSocket.url, "ws://gateway/ws?clientId=ui-1&lastEventId=evt-7");
  secondSocket.greet();
  assert.deepEqual(secondSocket.frames.slice(1), [frame]);
  events.setActiveConversation(undefined);
  assert.equal(secondSocket.frames.at(-1), '{"type":"active-conversation","conversationId":null}');
});

test("a socket that ends with its token asks for a new one at once", async (t) => {
  const real = globalThis.WebSocket;
  globalThis.WebSocket = FakeSocket as unknown as typeof WebSocket;
  FakeSocket.sockets = [];
  t.after(() => (globalThis.WebSocket = real));
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  let n = 0;
  const events = new LiveEvents({ url: "http://gateway", token: () => `t${++n}` });
  t.after(() => events.close());
  events.connect();
  await settle();
  FakeSocket.sockets[0]!.greet();
  t.mock.timers.tick(20_000);
  FakeSocket.sockets[0]!.onclose({ code: 1008, reason: "the token has expired" });
  await settle();
  FakeSocket.sockets[1]!.greet();
  assert.deepEqual(FakeSocket.sockets[1]!.frames, ['{"type":"auth","token":"t2"}']);
  assert.equal(events.state, "connected");
});
