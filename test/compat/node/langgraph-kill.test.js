// Clients of LangGraph while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client as Client15 } from 'langgraph-1';
import { Client as Client20 } from 'langgraph-2';
import { generations, newThread, shortOf, textOf, token } from './langgraph-thread.js';
import { ask, base, end, push, start } from './program.js';

const threads = [];
after(async () => {
  await Promise.all(threads.map((t) => t.controller.dispose()));
  await end('SIGTERM');
});
const open = (version, options) => {
  const thread = newThread(version, { base, agent: 'slow', ...options });
  threads.push(thread);
  return thread;
};

await start();

for (const version of Object.keys(generations)) {
  test(`${version}: a turn whose agent continues after a kill`, async () => {
    const { id, rest } = await push(['first ', 'zweites, größer ']);
    const thread = open(version, { id });
    await thread.until((s) => textOf(s.messages) === 'first zweites, größer ');
    await end('SIGKILL');
    await start();
    await rest('third'); // the client comes back by itself
    await thread.until((s) => !s.isLoading && textOf(s.messages) === 'first zweites, größer third');
    await thread.settle();
  });

  test(`${version}: a turn whose agent can't continue`, async () => {
    const thread = open(version);
    const sent = thread.submit({ content: 'hello' });
    await thread.until((s) => textOf(s.messages) === 'first');
    await end('SIGKILL');
    await start();
    await sent;
    await thread.until((s) => s.error && !s.isLoading);
    assert.match(String(thread.state().error.message ?? thread.state().error), /interrupted|restarted/);
    await thread.settle();
    assert.deepEqual(shortOf(thread.state().messages), [['human', 'hello'], ['ai', 'first']]);
  });
}

for (const [version, Client] of [['1.15.0', Client15], ['2.0.0', Client20]]) {
  test(`${version}: a run whose agent continues after a kill`, async () => {
    const { id, rest } = await push(['first ', 'zweites, größer ']);
    const client = new Client({ apiUrl: `${base}/langgraph`, apiKey: token });
    const [{ run_id: run }] = await client.runs.list(id);
    let text = '';
    let isKilled = false;
    const events = [];
    // The client reconnects by itself, with the last id that it has.
    for await (const { event, data } of client.runs.joinStream(id, run, { streamMode: ['messages-tuple', 'values'] })) {
      events.push(event);
      if (event === 'messages') text += data[0].content;
      if (text === 'first zweites, größer ' && !isKilled) {
        isKilled = true;
        await end('SIGKILL');
        await start();
        await rest('third');
      }
    }
    assert.equal(text, 'first zweites, größer third');
    assert.equal(events.at(-1), 'end');
  });
}

test('the switch of the output', async () => {
  assert.equal((await ask('/langgraph/ok')).status, 200);
  await end('SIGTERM');
  await start({ LEAT_OUTPUTS_LANGGRAPH: 'false' });
  assert.equal((await ask('/langgraph/ok')).status, 404);
});
