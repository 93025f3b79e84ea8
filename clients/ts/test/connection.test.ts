import assert from "node:assert/strict";
import { beforeEach, mock, test, type TestContext } from "node:test";

import { Connection, stallLimit, type TokenSource } from "../src/connection.js";
import { LeatError } from "../src/errors.js";
import type { Dial, LinkEvents } from "../src/link.js";
import type { ClientFrame, ServerFrame } from "../src/wire.js";

/** The gateway's end of a connection. */
class Peer {
  readonly frames: ClientFrame[] = [];
  closed = false;
  constructor(readonly token: string, private readonly events: LinkEvents, readonly at: number) {}
  say(...frames: ServerFrame[]): void {
    for (const f of frames) this.events.frame(f);
  }
  hello(): void {
    this.say({ type: "hello", protocol: "leat/1" });
  }
  beat(): void {
    this.events.alive();
  }
  fail(reason = "network", retryAfter = 0): void {
    this.events.closed(new LeatError("cut", reason, 0, retryAfter));
  }
}

let peers: Peer[];
let states: string[];
const last = () => peers.at(-1)!;
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

function connect(t: TestContext, token?: TokenSource): Connection {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  t.mock.method(Math, "random", () => 0); // no jitter, except in tests about it
  peers = [];
  states = [];
  const dial: Dial = (tok, events) => {
    const p = new Peer(tok, events, Date.now());
    peers.push(p);
    return { send: (f) => p.frames.push(f), close: () => (p.closed = true) };
  };
  const c = new Connection(dial, token, { state: (s) => states.push(s), ready: () => states.push("ready"), frame: () => {} });
  t.after(() => c.close());
  c.connect();
  return c;
}

// pass advances the time in steps, so that the callback of one timer can start the next.
async function pass(t: TestContext, ms: number): Promise<void> {
  const step = 50;
  await settle();
  for (let remaining = ms; remaining > 0; remaining -= step) {
    t.mock.timers.tick(Math.min(step, remaining));
    await settle();
  }
}

beforeEach(() => mock.restoreAll());

test("the waits grow from 500 ms by half each time up to 10 s; after 15 attempts the client probes every 30 s", async (t) => {
  const c = connect(t);
  const waits: number[] = [];
  await settle();
  for (let i = 0; i < 18; i++) {
    const before = peers.length;
    const began = Date.now();
    last().fail();
    while (peers.length === before) await pass(t, 50);
    waits.push(last().at - began);
  }
  const want = [500, 750, 1125, 1688, 2532, 3797, 5696, 8543, ...Array<number>(7).fill(10_000), 30_000, 30_000, 30_000];
  for (const [i, w] of want.entries()) assert.ok(Math.abs(waits[i]! - w) <= 50, `wait ${i + 1} is ${waits[i]}, not ${w}`);
  assert.equal(c.state, "failed");
  last().hello();
  assert.equal(c.state, "connected");
});

test("waits are up to a half shorter at random, and longer only if the gateway asks for it", async (t) => {
  connect(t);
  await settle();
  (Math.random as unknown as { mock: { mockImplementation(f: () => number): void } }).mock.mockImplementation(() => 0.999);
  last().fail();
  await pass(t, 200);
  assert.equal(peers.length, 1);
  await pass(t, 100);
  assert.equal(peers.length, 2);
  last().fail("unavailable", 1000);
  await pass(t, 1450);
  assert.equal(peers.length, 2);
  await pass(t, 100);
  assert.equal(peers.length, 3);
});

const snapshot: ServerFrame = { type: "snapshot", conversation: "c", cursor: "1", epoch: "e", reset: true, transcript: { messages: [], turns: [] } };

test("the waits start again from the shortest after a connection has delivered a snapshot, or has lasted 10 s", async (t) => {
  const c = connect(t, "good");
  await pass(t, 0);
  const fail = async (n: number) => {
    for (let i = 0; i < n; i++) {
      last().beat(); // the connection stands, but is not authenticated
      last().fail();
      await pass(t, 2000);
    }
  };
  const expectQuickRetry = async () => {
    const before = peers.length;
    last().fail();
    await pass(t, 450);
    assert.equal(peers.length, before);
    await pass(t, 100);
    assert.equal(peers.length, before + 1);
  };
  await fail(4);
  assert.equal(peers.length, 5); // 500, 750, 1125, 1688
  last().hello();
  c.send({ type: "subscribe", id: "s1", conversation: "c" });
  last().say({ type: "subscribed", id: "s1", conversation: "c", turns: [] }, snapshot);
  await expectQuickRetry();
  await fail(3);
  last().hello();
  await pass(t, 10_050);
  await expectQuickRetry();
});

test("connections that break in each snapshot don't cause a loop", async (t) => {
  const c = connect(t, "good");
  await settle();
  const began = Date.now();
  while (Date.now() - began < 100_000) {
    const n = peers.length;
    last().hello();
    c.send({ type: "subscribe", id: `s${n}`, conversation: "big" });
    c.send({ type: "subscribe", id: `t${n}`, conversation: "small", after: "9" });
    last().say({ type: "subscribed", id: `s${n}`, conversation: "big", turns: [] }, { type: "subscribed", id: `t${n}`, conversation: "small", turns: [] });
    // The other conversation gets events, which doesn't prove that the failing one works.
    last().say({ type: "batch", conversation: "small", cursor: "10", seq: 10, events: [] });
    last().fail();
    while (peers.length === n) await pass(t, 50);
  }
  assert.ok(peers.length <= 20, `${peers.length} connections in 100 s`);
});

test("a page whose origin is refused knows it, and retries when it becomes visible or connect is called", async (t) => {
  const p = page(t);
  const c = connect(t, "good");
  await settle();
  last().fail("forbidden");
  await pass(t, 120_000);
  assert.equal(peers.length, 1);
  assert.deepEqual(states, ["connecting", "forbidden"]);
  assert.equal(c.error?.reason, "forbidden");
  p.visible(true);
  await settle();
  assert.equal(peers.length, 2);
  last().fail("forbidden");
  c.connect();
  await settle();
  last().hello();
  assert.equal(c.state, "connected");
});

test("it waits at least as long as the gateway asks", async (t) => {
  connect(t);
  await settle();
  last().fail("unavailable", 3000);
  await pass(t, 2900);
  assert.equal(peers.length, 1);
  await pass(t, 150);
  assert.equal(peers.length, 2);
});

test("a connection without a hello within 15 s is dropped", async (t) => {
  const c = connect(t);
  await pass(t, 15_000);
  assert.ok(last().closed);
  assert.equal(c.state, "reconnecting");
  last().hello(); // of a connection that was left
  assert.equal(c.state, "reconnecting");
});

test("a silent connection is probed, and dropped after 22 s without data; later retries wait as usual", async (t) => {
  const c = connect(t);
  await settle();
  last().hello();
  await pass(t, 16_000);
  last().say({ type: "ping" });
  assert.deepEqual(last().frames.at(-1), { type: "pong" });
  await pass(t, 16_000);
  last().beat(); // a comment of a stream counts, too
  await pass(t, 17_050);
  assert.deepEqual(last().frames.at(-1), { type: "ping" });
  last().say({ type: "pong" });
  assert.equal(stallLimit, 22_000);
  await pass(t, stallLimit - 100);
  assert.equal(peers.length, 1);
  await pass(t, 150);
  assert.equal(peers.length, 2);
  assert.ok(peers[0]!.closed);
  assert.equal(c.state, "reconnecting");
  last().fail();
  await pass(t, 450);
  assert.equal(peers.length, 2);
});

test("on a link too slow for one frame, later connections get more time", async (t) => {
  connect(t);
  await settle();
  const lives: number[] = [];
  for (let i = 0; i < 6; i++) {
    const began = Date.now();
    const n = peers.length;
    last().hello();
    while (peers.length === n) await pass(t, 1000);
    lives.push(Math.round((Date.now() - began) / stallLimit));
  }
  assert.deepEqual(lives, [1, 2, 4, 8, 16, 16]);
  last().hello();
  await pass(t, 15 * stallLimit);
  last().beat();
  await pass(t, 2 * stallLimit);
  last().beat(); // it has lived longer than the patience
  await pass(t, stallLimit + 100);
  assert.equal(peers.length, 8);
});

test("using a connection without recent data probes it", async (t) => {
  const c = connect(t);
  await settle();
  last().hello();
  c.ensureAlive();
  assert.deepEqual(last().frames, []);
  await pass(t, 6000);
  c.ensureAlive();
  c.ensureAlive(); // the answer is awaited already
  assert.deepEqual(last().frames, [{ type: "ping" }]);
  await pass(t, 4000);
  c.ensureAlive();
  await pass(t, 1100);
  assert.equal(peers.length, 2);
});

test("retryAt and lastHeard are correct", async (t) => {
  const c = connect(t);
  await settle();
  assert.deepEqual([c.retryAt, c.lastHeard], [0, 0]);
  last().hello();
  const activity = Date.now();
  assert.deepEqual([c.retryAt, c.lastHeard], [0, activity]);
  await pass(t, 1000);
  last().fail();
  assert.deepEqual([c.retryAt, c.lastHeard], [Date.now() + 500, activity]);
  await pass(t, 550);
  assert.equal(peers.length, 2);
  assert.equal(c.retryAt, 0);
});

/** A page, with its events. */
function page(t: TestContext): { fire(event: string): void; visible(v: boolean): void } {
  const target = new EventTarget();
  const doc = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const g = globalThis as Record<string, unknown>;
  g["addEventListener"] = target.addEventListener.bind(target);
  g["removeEventListener"] = target.removeEventListener.bind(target);
  g["document"] = doc;
  t.after(() => {
    for (const k of ["addEventListener", "removeEventListener", "document"]) delete g[k];
  });
  return {
    fire: (e) => target.dispatchEvent(new Event(e)),
    visible: (v) => {
      doc.visibilityState = v ? "visible" : "hidden";
      doc.dispatchEvent(new Event("visibilitychange"));
    },
  };
}

test("it retries at once when the network is back or the page becomes visible", async (t) => {
  const p = page(t);
  const c = connect(t);
  await settle();
  for (let i = 0; i < 20; i++) {
    last().fail();
    await pass(t, 60); // far from the next try
    if (i % 2) p.fire("online");
    else {
      p.visible(false);
      p.visible(true);
    }
    await settle();
    assert.equal(peers.length, i + 2);
  }
  c.close();
  p.fire("online");
  await pass(t, 60_000);
  assert.equal(peers.length, 21);
});

test("a connection that died while the page slept is detected", async (t) => {
  const p = page(t);
  connect(t);
  await settle();
  last().hello();
  p.visible(true);
  assert.deepEqual(last().frames, [{ type: "ping" }]);
  last().say({ type: "pong" });
  await pass(t, 6000);
  assert.equal(peers.length, 1);
  p.fire("online");
  await pass(t, 5100);
  assert.equal(peers.length, 2);
  last().hello();
  p.fire("offline"); // a socket may not notice for long
  assert.deepEqual(last().frames, [{ type: "ping" }]);
});

test("a refused token is not retried until connect is called", async (t) => {
  const p = page(t);
  const c = connect(t, "bad");
  await settle();
  last().fail("unauthorized");
  p.fire("online");
  await pass(t, 120_000);
  assert.equal(peers.length, 1);
  assert.deepEqual(states, ["connecting", "unauthorized"]);
  c.connect();
  await settle();
  assert.equal(peers.length, 2);
});

test("a token source is asked for another token, at most three times", async (t) => {
  const p = page(t);
  let n = 0;
  const c = connect(t, () => `bad${++n}`);
  for (let i = 0; i < 5; i++) {
    await settle();
    if (peers.length > i) last().fail("unauthorized");
  }
  assert.equal(peers.length, 3);
  assert.equal(c.state, "unauthorized");
  await pass(t, 60_000);
  assert.equal(peers.length, 3);
  p.fire("online"); // the person is back, and perhaps logged in again
  await settle();
  last().hello();
  assert.equal(c.state, "connected");
});

test("a failed token source is asked again later", async (t) => {
  let fail = true;
  const c = connect(t, () => {
    if (fail) return Promise.reject(new Error("no network"));
    return Promise.resolve("good");
  });
  await settle();
  assert.equal(c.state, "reconnecting");
  assert.equal(c.error?.message, "no network");
  fail = false;
  await pass(t, 600);
  assert.equal(last().token, "good");
});

test("a token is renewed before it expires, and after", async (t) => {
  let n = 0;
  connect(t, () => `t${++n}`);
  await settle();
  last().hello();
  last().say({ type: "expiring" });
  await settle();
  assert.deepEqual(last().frames, [{ type: "auth", token: "t2" }]);
  last().say({ type: "authenticated" });
  await pass(t, 11_000);
  last().fail("expired"); // it was too late
  await settle();
  assert.equal(peers.length, 2);
  assert.equal(last().token, "t3");
  last().hello();
  last().fail("expired"); // and this one was dead already
  await settle();
  assert.equal(peers.length, 2, "a source of expired tokens must not cause a loop");
  await pass(t, 600);
  assert.equal(peers.length, 3);
});

test("an expired fixed token is not retried", async (t) => {
  const c = connect(t, "fixed");
  await settle();
  last().hello();
  await pass(t, 11_000);
  last().fail("expired");
  await settle();
  assert.equal(peers.length, 1);
  assert.equal(c.state, "unauthorized");
  assert.equal(c.error?.reason, "expired");
});
