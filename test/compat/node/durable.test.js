// The client of Durable Streams against the gateway at LEAT_URL. ../durable_test.go runs it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { DurableStream, IdempotentProducer, stream } from '@durable-streams/client';
import { cutting, follow, headers, textOf } from './durable-reader.js';

const { LEAT_URL: url, LEAT_GATES: gates } = process.env;
const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');

async function api(path, body, method = 'POST') {
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  assert.ok(response.ok, `${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
}

// ask sends a message in a new conversation with an agent.
async function ask(agent, text) {
  const { conversation } = await api('/api/conversations', { agent });
  const { turn } = await command(conversation.id, { type: 'send', message: { text } });
  return { id: conversation.id, turn, turnURL: `${url}/v1/stream/turns/${turn}`, conversationURL: `${url}/v1/stream/conversations/${conversation.id}` };
}

const command = (id, body) => api(`/api/conversations/${id}/commands`, body);
const open = async (gate) => { assert.equal((await fetch(`${gates}/${gate}`)).status, 204); };

// logged returns the text of the answer as the gateway has it.
async function logged(id) {
  const { transcript } = await api(`/api/conversations/${id}/transcript`, undefined, 'GET');
  return transcript.messages.filter((m) => m.role === 'assistant').flatMap((m) => m.parts).map((p) => p.text ?? '').join('|');
}

for (const live of ['sse', 'long-poll']) {
  test(`${live}: plain`, async () => {
    const asked = await ask('plain', 'hello');
    const got = await follow(asked.turnURL, { live });
    assert.equal(textOf(got.events), 're: hello');
    assert.equal(got.events.at(-1).outcome, 'completed');
    assert.equal(got.isClosed, true);
    assert.equal(await logged(asked.id), 're: hello');
  });

  test(`${live}: reasoning and tools at the same time`, async () => {
    const thinker = await follow((await ask('thinker', 'the time?')).turnURL, { live });
    assert.deepEqual(thinker.events.filter((e) => e.type === 'part.start').map((e) => e.kind), ['reasoning', 'text']);
    assert.equal(textOf(thinker.events), 'hm, let me see|It is noon.');
    const tools = await follow((await ask('tools', 'go')).turnURL, { live });
    const output = (part) => tools.events.filter((e) => e.part === part && e.field === 'output').map((e) => e.text).join('');
    const [clock, shell] = tools.events.filter((e) => e.kind === 'tool').map((e) => e.part);
    assert.deepEqual([output(clock), output(shell), textOf(tools.events)], ['noon', 'a\nb\n', 'Done.']);
  });

  test(`${live}: an approval, an error, a stop, text that is taken back`, async () => {
    const asked = await ask('approval', 'go');
    let request;
    const waiting = follow(asked.turnURL, { live, onEvent: (e) => { if (e.type === 'turn.wait') { request = e.request; command(asked.id, { type: 'answer', turn: asked.turn, request: e.request.id, decision: 'approve' }); } } });
    assert.match(textOf((await waiting).events), /There is one file\./);
    assert.equal(request.tool, 'shell');
    const failed = await follow((await ask('failing', 'go')).turnURL, { live });
    assert.equal(textOf(failed.events), 'so far');
    assert.equal(failed.events.at(-1).outcome, 'failed');
    assert.match(JSON.stringify(failed.events.at(-1).error), /The model is busy/);
    const gate = crypto.randomUUID();
    const stopped = await ask('long', gate);
    const end = await follow(stopped.turnURL, { live, onEvent: (e) => { if (e.type === 'part.append' && e.offset === 0) command(stopped.id, { type: 'stop', turn: stopped.turn }); } });
    assert.equal(end.events.at(-1).outcome, 'cancelled');
    const replaced = await follow((await ask('replacing', 'go')).turnURL, { live });
    assert.equal(textOf(replaced.events), 'It is ten.');
  });

  test(`${live}: two readers, of which one resumes from what it had stored, and twenty cuts`, async () => {
    const gate = crypto.randomUUID();
    const asked = await ask('long', gate);
    // The first reader leaves in the middle and comes back later, as a page that is loaded again.
    const before = await follow(asked.turnURL, { live, until: (events) => textOf(events).length > 100 });
    const lossy = cutting(20, 2000);
    const cut = follow(asked.turnURL, { live, fetch: lossy });
    const whole = follow(asked.conversationURL, { live, fetch: cutting(5, 3000), until: (events) => events.at(-1)?.type === 'turn.end' });
    await open(gate);
    await open(`${gate}-end`);
    const after = await follow(asked.turnURL, { live, offset: before.offset });
    assert.equal(textOf([...before.events, ...after.events]), long);
    assert.equal(textOf((await cut).events), long);
    // How often connections broke so far depends on how much came at once.
    while (lossy.count() < 20) assert.equal(textOf((await follow(asked.turnURL, { live, fetch: lossy })).events), long);
    assert.equal(await logged(asked.id), long);
    const conversation = await whole;
    assert.equal(textOf(conversation.events.filter((e) => e.turn === asked.turn)), long);
    // Late, in one piece, from every offset that a reader had.
    for (const offset of conversation.offsets.filter((_, i) => i % 10 === 0)) {
      const late = await follow(asked.conversationURL, { live: false, offset });
      const known = conversation.events.slice(0, conversation.counts[conversation.offsets.indexOf(offset)]);
      assert.equal(textOf([...known, ...late.events].filter((e) => e.turn === asked.turn)), long);
    }
  });
}

test('who may not read, and what nobody may do', async () => {
  const asked = await ask('plain', 'hello');
  await assert.rejects(stream({ url: asked.turnURL, headers: { ...headers, 'Leat-Subject': 'somebody' } }), { status: 404 });
  await assert.rejects(stream({ url: asked.turnURL, headers: {} }), { status: 401 });
  const handle = new DurableStream({ url: asked.conversationURL, headers, contentType: 'application/json' });
  await assert.rejects(handle.append('{}'), (e) => e.status === 405);
  assert.match((await handle.head()).contentType, /json/);
});

test('a stream of its own, with a producer', async () => {
  const at = `${url}/v1/stream/${crypto.randomUUID()}`;
  const handle = await DurableStream.create({ url: at, headers, contentType: 'application/json' });
  const reading = follow(at, { live: 'sse' });
  const producer = new IdempotentProducer(handle, 'numbers', { lingerMs: 1, maxBatchBytes: 64 });
  for (let n = 0; n < 200; n++) producer.append(JSON.stringify({ n }));
  await producer.close();
  assert.deepEqual((await reading).events.map((e) => e.n), Array.from({ length: 200 }, (_, n) => n));
  await handle.delete();
  await assert.rejects(stream({ url: at, headers }), { status: 404 });
});

test('the example of the documentation', async () => {
  const asked = await ask('plain', 'hello');
  const text = await readFile(new URL('../../../docs/outputs/durable-streams.md', import.meta.url), 'utf8');
  const [, imported, code] = text.match(/```js\n(import [^\n]*)\n(.*?)```/s);
  assert.equal(imported, "import { stream } from '@durable-streams/client';");
  const lines = [];
  const AsyncFunction = (async () => {}).constructor;
  const run = new AsyncFunction('stream', 'token', 'turn', 'console', code.replace('http://127.0.0.1:31337', url));
  await run(stream, process.env.LEAT_TOKEN, asked.turn, { log: (...line) => lines.push(line) });
  assert.equal(lines.filter(([type]) => type === 'part.append').map(([, piece]) => piece).join(''), 're: hello');
  assert.equal(lines.at(-1)[0], 'turn.end');
});
