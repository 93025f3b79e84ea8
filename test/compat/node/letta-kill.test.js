// The client of Letta while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Letta from '@letta-ai/letta-client';
import { base, end, push, start } from './program.js';

const client = new Letta({ apiKey: process.env.LEAT_TOKEN, baseURL: `${base}/letta`, maxRetries: 0 });

await start();
after(() => end('SIGTERM'));

// read reads a stream until it ends or breaks, and returns its error.
async function read(run, stream, then = () => {}) {
  try {
    for await (const m of await stream) {
      run.id = m.run_id ?? run.id;
      if (m.seq_id && m.message_type !== 'ping') run.seq = m.seq_id;
      if (m.message_type === 'assistant_message') run.text += m.content;
      if (m.message_type === 'stop_reason') run.stop = m.stop_reason;
      then(run);
    }
  } catch (e) {
    return e;
  }
  return undefined;
}

test('a run whose agent continues after a kill', async () => {
  const { id, rest } = await push(['first ', 'zweites, größer ']);
  const run = { text: '', seq: 0 };
  let killed;
  const error = await read(run, client.conversations.messages.stream(`conv-${id}`, {}), () => { if (run.text === 'first zweites, größer ') killed ??= end('SIGKILL'); });
  await killed;
  assert.ok(error, 'the stream broke');
  await start();
  const reading = read(run, client.runs.messages.stream(run.id, { starting_after: run.seq }));
  await rest('third');
  assert.equal(await reading, undefined);
  assert.equal(run.text, 'first zweites, größer third');
  assert.equal(run.stop, 'end_turn');
});

test("a run whose agent can't continue", async () => {
  const conversation = await client.conversations.create({ agent_id: 'agent-slow' });
  const run = { text: '', seq: 0 };
  let killed;
  const sent = client.conversations.messages.create(conversation.id, { messages: [{ role: 'user', content: 'hello' }], streaming: true });
  assert.ok(await read(run, sent, () => { if (run.text === 'first') killed ??= end('SIGKILL'); }));
  await killed;
  await start();
  const error = await read(run, client.runs.messages.stream(run.id, { starting_after: run.seq }));
  assert.match(String(error), /restart/);
  assert.equal(run.text, 'first');
  assert.equal(run.stop, 'error');
  assert.equal((await client.runs.retrieve(run.id)).status, 'failed');
});
