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

/** A user's token that expires after that many seconds. */
function jwt(subject: string, seconds: number): string {
  const b64 = (o: object) => Buffer.from(JSON.stringify(o)).toString("base64url");
  const text = `${b64({ alg: "HS256", typ: "JWT" })}.${b64({ sub: subject, exp: Math.floor(Date.now() / 1000) + seconds })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

test("a socket continues with a new token before the old one expires", async (t) => {
  const lives = [20, 21, 3600]; // the gateway warns of the first two at once
  let requests = 0;
  const client = new Client({ url: gateway.url, token: () => jwt("alice", lives[requests++] ?? 3600), transport: "websocket" });
  t.after(() => client.close());
  const states: string[] = [];
  client.onState((s) => states.push(s));
  const c = await client.create();
  t.after(c.subscribe(() => {}));
  await c.waitFor((s) => s.phase === "live");
  while (requests < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 21_500)); // until the short ones would have ended
  await c.inject({ text: "still here" }).catch(() => c.send("still here"));
  await c.waitFor((s) => s.messages.some((m) => visibleText(m) === "still here"));
  assert.deepEqual(states, ["connecting", "connected"], "one socket all the while");
});

test("without a new token the connection ends with the old one, with the reason", async (t) => {
  const token = jwt("bob", 2);
  for (const transport of ["websocket", "http"] as const) {
    const client = new Client({ url: gateway.url, token, transport });
    t.after(() => client.close());
    const refusal = new Promise<void>((resolve) => client.onState((s) => s === "unauthorized" && resolve()));
    client.connect();
    // Over HTTP only streams report it, so the test opens one.
    client.create().then((c) => c.subscribe(() => {})).catch((err) => assert.ok(err instanceof LeatError));
    await refusal;
    assert.ok(["unauthorized", "expired"].includes(client.error!.reason), client.error!.reason);
  }
});

test("the gateway counts a mismatch under this client's name", async (t) => {
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
