// A client of the Responses API while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import OpenAI from 'openai-7';
import { ask, base, end, push, start } from './program.js';

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: process.env.LEAT_TOKEN, maxRetries: 0 });
let last = -1, text = '';

// read reads a response after what was received, until its end or until the text is there.
async function read(id, until) {
  const stream = await client.responses.retrieve(id, { stream: true, ...(last >= 0 && { starting_after: last }) });
  let type;
  for await (const e of stream) {
    assert.ok(e.sequence_number > last);
    last = e.sequence_number;
    type = e.type;
    if (type === 'response.output_text.delta') text += e.delta;
    if (text === until) return type;
  }
  return type;
}

await start();
try {
  // A turn whose agent continues after a kill.
  const { id: conversation, rest } = await push(['first ', 'zweites, größer ']);
  const { messages } = JSON.parse((await ask(`/api/conversations/${conversation}/transcript`)).text).transcript;
  const id = `resp_${messages.at(-1).turn}`;
  await read(id, 'first zweites, größer ');
  const broken = assert.rejects(read(id));
  await end('SIGKILL');
  await broken;
  await start();
  const resumed = read(id);
  await rest('third');
  assert.equal(await resumed, 'response.completed');
  assert.equal(text, 'first zweites, größer third');
  assert.equal((await client.responses.retrieve(id)).output_text, text);

  // A turn whose agent can't continue fails, with the text so far.
  const other = await client.responses.create({ model: 'slow', input: 'hello', background: true });
  last = -1; text = '';
  await read(other.id, 'first');
  await end('SIGKILL');
  await start({ LEAT_DRAIN: '1s' });
  assert.equal(await read(other.id), 'response.failed'); // a started gateway may still be ending what it can't continue
  const failed = await client.responses.retrieve(other.id);
  assert.equal(failed.status, 'failed');
  assert.equal(failed.output_text, 'first');

  // The gateway is stopped in order. The client gets the failure of the turn or an error, and not the end of a stream, which would look like an
  // answer.
  const stream = await client.responses.create({ model: 'slow', input: 'hello', stream: true });
  let stopped, type;
  try {
    for await (const e of stream) {
      type = e.type;
      if (type === 'response.output_text.delta') stopped = end('SIGTERM');
    }
    assert.equal(type, 'response.failed');
  } catch (e) {
    assert.match(e.message, /stopping/);
  }
  assert.ok(stopped);
  await stopped;

  // The switch of the output.
  await start({ LEAT_OUTPUTS_RESPONSES: 'false' });
  assert.equal((await ask('/v1/responses', { method: 'POST', body: '{}' })).status, 404);
} finally {
  await end('SIGTERM');
}
