import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { Client, LeatError } from "../src/index.js";
import { Gateway } from "./gateway.js";

const token = "a-token-of-the-tests";
const origin = "https://app.example.org";

/** Makes this process behave like a page of another origin, with the answers that a browser shows to it. */
function foreignPage(t: TestContext): void {
  const real = { fetch: globalThis.fetch, WebSocket: globalThis.WebSocket };
  const g = globalThis as Record<string, unknown>;
  g["location"] = { origin };
  g["fetch"] = async (url: string, init: RequestInit = {}) => {
    const res = await real.fetch(url, { ...init, headers: { ...(init.headers as Record<string, string>), Origin: origin, "Sec-Fetch-Site": "cross-site" } });
    const readable = res.headers.get("Access-Control-Allow-Origin");
    if (readable !== "*" && readable !== origin) throw new TypeError("Failed to fetch");
    return res;
  };
  // A refused handshake looks like one without an answer.
  g["WebSocket"] = class {
    onerror = () => {};
    constructor() {
      setImmediate(() => this.onerror());
    }
    send(): void {}
    close(): void {}
  };
  t.after(() => {
    Object.assign(globalThis, real);
    delete g["location"];
  });
}

for (const transport of ["websocket", "http"] as const) {
  test(`${transport}: a page whose origin is refused gets the setting that would allow it`, { timeout: 60_000 }, async (t) => {
    const gateway = await Gateway.start({ token });
    t.after(() => gateway.stop());
    foreignPage(t);
    const client = new Client({ url: gateway.url, token, transport });
    t.after(() => client.close());
    const namesSetting = (err: unknown) => err instanceof LeatError && err.reason === "forbidden" && !err.temporary && /allowed_origins/.test(err.message) && err.message.includes(origin);
    await assert.rejects(client.create(), namesSetting);
    assert.equal(client.state, "forbidden");
    assert.ok(namesSetting(client.error));
    await assert.rejects(client.conversation("c").waitFor(() => true), namesSetting);
    await assert.rejects(client.create(), namesSetting);
  });

  test(`${transport}: an unreachable gateway is not reported as a refusal`, { timeout: 60_000 }, async (t) => {
    const gateway = await Gateway.start({ token });
    await gateway.stop();
    foreignPage(t);
    const client = new Client({ url: gateway.url, token, transport });
    t.after(() => client.close());
    const states: string[] = [];
    await new Promise<void>((resolve) => {
      client.onState((s) => {
        states.push(s);
        if (s !== "connecting") resolve();
      });
      client.connect();
    });
    assert.deepEqual(states, ["connecting", "reconnecting"]);
    assert.equal(client.error?.reason, "network");
  });
}
