// The client of Durable Streams while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { DurableStream, IdempotentProducer } from '@durable-streams/client';
import { follow, headers, textOf } from './durable-reader.js';
import { ask, base, end, push, start } from './program.js';

const store = { LEAT_OUTPUTS_DURABLE_STREAMS_STORE: 'true' };
await start(store);
try {
  // Readers of a turn whose agent continues after a kill. They hold on to their connections, and resume by themselves.
  const { id, rest } = await push(['first ', 'zweites, größer ']);
  const url = `${base}/v1/stream/conversations/${id}`;
  const seen = [0, 1].map(() => Promise.withResolvers?.() ?? (() => { const p = {}; p.promise = new Promise((resolve) => { p.resolve = resolve; }); return p; })());
  const readers = ['sse', 'long-poll'].map((live, i) => follow(url, {
    live, until: (events) => {
      if (textOf(events) === 'first zweites, größer ') seen[i].resolve();
      return events.at(-1)?.type === 'turn.end';
    },
  }));
  await Promise.all(seen.map((s) => s.promise));
  await end('SIGKILL');
  await start(store);
  await rest('third');
  for (const { events } of await Promise.all(readers)) assert.equal(textOf(events), 'first zweites, größer third');

  // A producer whose appends are in flight at each kill, and which repeats those that got no answer. Each of its messages is stored once, in order.
  const handle = await DurableStream.create({ url: `${base}/v1/stream/numbers`, headers, contentType: 'application/json' });
  const persistent = async (...args) => {
    for (;;) {
      const response = await fetch(...args).catch(() => undefined);
      if (response && response.status !== 503) return response;
      await delay(20);
    }
  };
  let failure, stored = 0;
  const producer = new IdempotentProducer(handle, 'numbers', { lingerMs: 0, maxBatchBytes: 32, fetch: persistent, onError: (e) => { failure = e; } });
  const reading = follow(handle.url, { live: 'sse', onEvent: () => { stored++; } });
  const count = 600;
  for (let n = 0; n < count; n++) {
    producer.append(JSON.stringify({ n }));
    if (n % 150 !== 149) continue;
    while (stored < n - 100) await delay(1); // until some are stored; the others are on their way
    await end('SIGKILL');
    await start(store);
  }
  await producer.close();
  assert.equal(failure, undefined);
  const want = Array.from({ length: count }, (_, n) => n);
  assert.deepEqual((await reading).events.map((e) => e.n), want);
  await end('SIGTERM');
  await start(store);
  assert.deepEqual((await follow(handle.url, { live: false })).events.map((e) => e.n), want);

  // The switches of the output.
  await end('SIGTERM');
  await start();
  assert.equal((await ask('/v1/stream/numbers')).status, 404);
  assert.equal((await ask(`/v1/stream/conversations/${id}`)).status, 200);
  await end('SIGTERM');
  await start({ LEAT_OUTPUTS_DURABLE_STREAMS: 'false' });
  assert.equal((await ask(`/v1/stream/conversations/${id}`)).status, 404);
} finally {
  await end('SIGTERM');
}
