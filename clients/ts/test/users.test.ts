import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";

import { Client, LeatError, visibleText } from "../src/index.js";
import { Gateway } from "./gateway.js";

const secret = "a secret of at least 32 bytes, not this one";
const admin = "an-admin-token";
let gateway: Gateway;
before(async () => void (gateway = await Gateway.start({ token: admin, env: { LEAT_USERS_SECRET: secret } })));
after(() => gateway.stop());

/** A token of a user that ends in so many seconds. */
function jwt(subject: string, seconds: number): string {
  const b64 = (o: object) => Buffer.from(JSON.stringify(o)).toString("base64url");
  const text = `${b64({ alg: "HS256", typ: "JWT" })}.${b64({ sub: subject, exp: Math.floor(Date.now() / 1000) + seconds })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

test("a socket goes on with another token before its own ends, and with it after that", async (t) => {
  const lives = [7, 8, 3600]; // the gateway warns of the first two at once
  let asked = 0;
  const client = new Client({ url: gateway.url, token: () => jwt("alice", lives[asked++] ?? 3600), transport: "websocket" });
  t.after(() => client.close());
  const states: string[] = [];
  client.onState((s) => states.push(s));
  const c = await client.create();
  t.after(c.subscribe(() => {}));
  await c.until((s) => s.phase === "live");
  while (asked < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 8500)); // until the short ones would have ended
  await c.inject({ text: "still here" }).catch(() => c.send("still here"));
  await c.until((s) => s.messages.some((m) => visibleText(m) === "still here"));
  assert.deepEqual(states, ["connecting", "connected"], "one socket all the while");
});

test("without another token it ends when the token does, and says why", async (t) => {
  const token = jwt("bob", 2);
  for (const transport of ["websocket", "http"] as const) {
    const client = new Client({ url: gateway.url, token, transport });
    t.after(() => client.close());
    const over = new Promise<void>((resolve) => client.onState((s) => s === "unauthorized" && resolve()));
    client.connect();
    // HTTP finds out by its streams alone; so there is one.
    client.create().then((c) => c.subscribe(() => {})).catch((err) => assert.ok(err instanceof LeatError));
    await over;
    assert.ok(["unauthorized", "expired"].includes(client.error!.reason), client.error!.reason);
  }
});

test("a mismatch is counted by the gateway, under the name of this client", async (t) => {
  for (const name of [undefined, "page"] as const) {
    const client = new Client({ url: gateway.url, token: admin, ...(name && { name }) });
    t.after(() => client.close());
    const c = await client.create();
    const series = new RegExp(`leat_client_mismatches_total\\{client="${name ?? "ts"}",field="text"\\} (\\d+)`);
    const count = async () => series.exec(await (await gateway.call("GET", "/metrics")).text())?.[1] ?? "0";
    const before = await count();
    client["host"].mismatch(c.id, { kind: "mismatch", message: "m", part: "p1", field: "text", seq: 7, have: { length: 2, crc: 1 }, want: { length: 3, crc: 2 } });
    while ((await count()) === before) await new Promise((resolve) => setTimeout(resolve, 10));
  }
});
