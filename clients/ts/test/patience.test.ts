import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { Client } from "../src/client.js";
import { patience } from "../src/patience.js";
import { MemoryStorage } from "./storage.js";

/** A client of a gateway that answers as the test says, or not at all: a line of which the other end is gone. */
async function line(t: TestContext): Promise<{ client: Client; asked: () => Promise<ServerResponse> }> {
  const answers: ServerResponse[] = [];
  let came: () => void = () => {};
  const server = createServer((_, res) => (answers.push(res), came()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, storage: new MemoryStorage(), warn: () => {} });
  t.after(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  const asked = async () => {
    while (answers.length === 0) await new Promise<void>((resolve) => (came = resolve));
    return answers.shift()!;
  };
  t.mock.timers.enable({ apis: ["setTimeout"] });
  return { client, asked };
}

/** Waits until something is heard: there is a new time to wait for. */
function hears(t: TestContext): () => Promise<void> {
  const set = t.mock.method(globalThis, "setTimeout");
  return async () => {
    while (!set.mock.calls.some((c) => (c.arguments as unknown[])[1] === patience)) await new Promise((resolve) => setImmediate(resolve));
    set.mock.restore();
  };
}

const silent = { reason: "network", message: "no data from the gateway for 30 s" };

test("a question that is not answered ends, and can be asked again", async (t) => {
  const { client, asked } = await line(t);
  for (const ask of [() => client.list(), () => client.markRead("c")]) {
    const failed = assert.rejects(ask(), silent);
    await asked();
    t.mock.timers.tick(patience);
    await failed;
  }
  const again = client.agents();
  (await asked()).end('{"agents":[]}');
  assert.deepEqual(await again, []);
});

test("an answer that stops in the middle ends; one that is slow does not, however long it takes", async (t) => {
  const { client, asked } = await line(t);
  const list = client.list();
  const slow = await asked();
  slow.write('{"conversations":[');
  const text = '{"id":"ä"},'.repeat(9) + '{"id":"end"}';
  const step = async (piece: Buffer) => {
    const heard = hears(t);
    slow.write(piece);
    await heard();
    t.mock.timers.tick(patience - 1);
  };
  for (const byte of Buffer.from(text)) await step(Buffer.of(byte));
  slow.end("]}");
  assert.equal((await list).at(-1)?.id, "end");

  const failed = assert.rejects(client.list(), silent);
  const cut = await asked();
  const heard = hears(t);
  cut.write('{"conversations":[');
  await heard();
  t.mock.timers.tick(patience);
  await failed;
});
