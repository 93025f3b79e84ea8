import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { Client } from "../src/client.js";
import { idleLimit } from "../src/patience.js";
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
  const nextRequest = async () => {
    while (answers.length === 0) await new Promise<void>((resolve) => (came = resolve));
    return answers.shift()!;
  };
  t.mock.timers.enable({ apis: ["setTimeout"] });
  return { client, asked: nextRequest };
}

/** Waits until data has arrived, which starts a new idle timer. */
function hears(t: TestContext): () => Promise<void> {
  const mockFetch = t.mock.method(globalThis, "setTimeout");
  return async () => {
    while (!mockFetch.mock.calls.some((c) => (c.arguments as unknown[])[1] === idleLimit)) await new Promise((resolve) => setImmediate(resolve));
    mockFetch.mock.restore();
  };
}

const silent = { reason: "network", message: "no data from the gateway for 30 s" };

test("a request without a response is aborted, and can be repeated", async (t) => {
  const { client, asked: nextRequest } = await line(t);
  for (const ask of [() => client.list(), () => client.markRead("c")]) {
    const failed = assert.rejects(ask(), silent);
    await nextRequest();
    t.mock.timers.tick(idleLimit);
    await failed;
  }
  const retry = client.agents();
  (await nextRequest()).end('{"agents":[]}');
  assert.deepEqual(await retry, []);
});

test("a response that stalls is aborted; a slow one isn't, however long it takes", async (t) => {
  const { client, asked: nextRequest } = await line(t);
  const list = client.list();
  const slow = await nextRequest();
  slow.write('{"conversations":[');
  const text = '{"id":"ä"},'.repeat(9) + '{"id":"end"}';
  const step = async (piece: Buffer) => {
    const received = hears(t);
    slow.write(piece);
    await received();
    t.mock.timers.tick(idleLimit - 1);
  };
  for (const byte of Buffer.from(text)) await step(Buffer.of(byte));
  slow.end("]}");
  assert.equal((await list).at(-1)?.id, "end");

  const failed = assert.rejects(client.list(), silent);
  const interrupted = await nextRequest();
  const received = hears(t);
  interrupted.write('{"conversations":[');
  await received();
  t.mock.timers.tick(idleLimit);
  await failed;
});
