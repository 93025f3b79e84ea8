// What the tests of Durable Streams share: a reader that resumes after lost connections, as an application does, and connections that are lost.
import { stream } from '@durable-streams/client';

export const headers = { Authorization: `Bearer ${process.env.LEAT_TOKEN}` };

// follow reads a stream until it is closed, until a condition holds or, if it isn't live, to its end. It continues after lost connections at its
// last offset.
export async function follow(url, { live, offset = '-1', fetch: fetcher = fetch, until = () => false, onEvent = () => {} }) {
  const got = { events: [], offset, offsets: [offset], counts: [0], isClosed: false };
  for (;;) {
    try {
      const response = await stream({
        url, headers, live, offset: got.offset, fetch: fetcher, warnOnHttp: false,
        backoffOptions: { initialDelay: 10, maxDelay: 200, multiplier: 1.5 }, sseResilience: { logWarnings: false, maxShortConnections: 1000 },
      });
      await new Promise((resolve, reject) => {
        let hasLeft = false; // batches of a connection that was given up come again
        const leave = (end) => { hasLeft = true; response.cancel(); end(); };
        response.subscribeJson((batch) => {
          if (hasLeft) return;
          got.events.push(...batch.items);
          got.offset = batch.offset;
          got.offsets.push(batch.offset);
          got.counts.push(got.events.length);
          got.isClosed = batch.streamClosed;
          for (const e of batch.items) onEvent(e);
          if (batch.streamClosed || (live === false && batch.upToDate) || until(got.events)) leave(resolve);
        });
        // The client reports the end before it has delivered the last batch, also if that is broken.
        response.closed.then(() => setTimeout(() => leave(() => reject(new Error('the last batch is missing'))), 100), (e) => leave(() => reject(e)));
      });
      return got;
    } catch (e) {
      if (e.status >= 400 && e.status < 500) throw e;
    }
  }
}

// textOf folds the texts of parts: an append begins at an offset in bytes.
export function textOf(events) {
  const parts = new Map();
  for (const e of events) {
    if (e.type === 'snapshot') throw new Error('a snapshot in the place of events');
    if (e.field || (e.type !== 'part.append' && e.type !== 'part.replace')) continue;
    const key = `${e.message} ${e.part}`;
    const before = e.type === 'part.replace' ? Buffer.alloc(0) : (parts.get(key) ?? Buffer.alloc(0)).subarray(0, e.offset);
    parts.set(key, Buffer.concat([before, Buffer.from(e.text)]));
  }
  return [...parts.values()].map(String).join('|');
}

// cutting returns a fetch whose first responses break after some bytes.
export function cutting(times, most) {
  let count = 0;
  const lossy = async (...args) => {
    const response = await fetch(...args);
    if (response.status !== 200 || count >= times) return response;
    let left = 1 + Math.floor(Math.random() * most);
    const reader = response.body.getReader();
    const body = new ReadableStream({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) { controller.close(); return; }
        if (value.length > left && count < times) {
          count++;
          controller.enqueue(value.subarray(0, left));
          await reader.cancel();
          controller.error(new TypeError('network error'));
          return;
        }
        left -= value.length;
        controller.enqueue(value);
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
  lossy.count = () => count;
  return lossy;
}
