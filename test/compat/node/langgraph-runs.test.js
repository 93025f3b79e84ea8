// Runs of LangGraph's older generation, by the clients of the SDK 1.15.0 and 2.0.0, against the gateway at LEAT_URL. ../langgraph_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AIMessageChunk } from '@langchain/core/messages';
import { Client as Client15 } from 'langgraph-1';
import { Client as Client20 } from 'langgraph-2';
import { long, longBefore, open, token, url } from './langgraph-thread.js';

const clients = { '1.15.0': Client15, '2.0.0': Client20 };
const streamMode = ['values', 'messages-tuple', 'updates', 'custom'];
const ask = (text) => ({ messages: [{ type: 'human', id: crypto.randomUUID(), content: text }] });
const textOf = (content) => (typeof content === 'string' ? content : content.map((b) => b.text ?? '').join(''));
const short = (messages) => messages.map((m) => [m.type, textOf(m.content)]);
const answerOf = (messages) => messages.filter((m) => m.type === 'ai').map((m) => textOf(m.content)).filter(Boolean).join('\n\n');

// read folds a stream: the texts of the pieces by message, the last state, and what it ended with.
async function read(stream, onText = () => {}) {
  const result = { pieces: new Map(), values: undefined, updates: [], custom: [], ended: undefined, lastId: undefined };
  for await (const { id, event, data } of stream) {
    if (id) result.lastId = id;
    switch (event) {
      case 'values': result.values = data; break;
      case 'updates': result.updates.push(data); break;
      case 'custom': result.custom.push(data); break;
      case 'messages': {
        const [piece] = data;
        if (piece.type === 'remove') { result.pieces.delete(piece.id); break; }
        result.pieces.set(piece.id, (result.pieces.get(piece.id) ?? '') + textOf(piece.content));
        await onText(result);
        break;
      }
      case 'error': case 'end': result.ended = [event, data]; break;
      default:
    }
  }
  return result;
}
const streamed = (result) => [...result.pieces.values()].filter(Boolean).join('\n\n');

for (const [version, Client] of Object.entries(clients)) {
  const newClient = (options) => new Client({ apiUrl: `${url}/langgraph`, apiKey: token, ...options });
  const client = newClient();
  const begin = async (agent, text, options) => {
    const { thread_id: thread } = await client.threads.create();
    return { thread, stream: client.runs.stream(thread, agent, { input: ask(text), streamMode, ...options }) };
  };
  // same checks that a stream ended with the state that the gateway has.
  const same = async (thread, result) => assert.deepEqual(result.values.messages, (await client.threads.getState(thread)).values.messages);

  test(`${version}: plain`, async () => {
    const { thread, stream } = await begin('plain', 'hello');
    const result = await read(stream);
    assert.equal(streamed(result), 're: hello');
    assert.deepEqual(short(result.values.messages), [['human', 'hello'], ['ai', 're: hello']]);
    assert.deepEqual(short(result.updates.at(-1).agent.messages), [['ai', 're: hello']]);
    await same(thread, result);
    assert.deepEqual((await client.runs.list(thread)).map((r) => r.status), ['success']);
  });

  test(`${version}: reasoning, tools in parallel, a status, text that was taken back, files and data`, async () => {
    for (const [agent, want] of Object.entries({ thinker: 'It is noon.', tools: 'noon\n\na\nb\n\n\nDone.', status: 'On it.\n\nNow playing', replacing: 'It is ten.', files: '' })) {
      const { thread, stream } = await begin(agent, 'go');
      const result = await read(stream);
      assert.equal(result.ended?.[0] ?? 'end', 'end');
      assert.equal(streamed(result), want, agent);
      if (agent === 'status') assert.deepEqual(result.custom.at(-1), { name: 'status', payload: { text: 'Now playing', state: 'done' } });
      if (agent === 'files') assert.deepEqual(result.custom, [{ name: 'data', payload: { chart: [1, 2] } }]);
      await same(thread, result);
    }
  });

  test(`${version}: the pieces are chunks of LangChain`, async () => {
    const { stream } = await begin('tools', 'work');
    let call;
    for await (const { event, data } of stream) {
      if (event !== 'messages' || data[0].type !== 'AIMessageChunk') continue;
      const chunk = new AIMessageChunk(data[0]);
      if (chunk.tool_call_chunks?.length) call = call ? call.concat(chunk) : chunk;
    }
    assert.deepEqual(call.tool_calls.map((c) => [c.name, c.args]), [['clock', { zone: 'UTC' }], ['shell', { command: 'ls' }]]);
  });

  test(`${version}: an agent that fails`, async () => {
    const { thread, stream } = await begin('failing', 'hello');
    const result = await read(stream);
    assert.equal(result.ended[0], 'error');
    assert.equal(result.ended[1].message, 'The model is busy.');
    assert.equal(streamed(result), 'so far');
    await same(thread, result);
    await assert.rejects(client.runs.wait(thread, 'failing', { input: ask('again') }), /The model is busy\./);
  });

  test(`${version}: refusals`, async () => {
    const { thread } = await begin('plain', 'hello');
    await assert.rejects(read(client.runs.stream(thread, 'nobody', { input: ask('hello') })), /There is no assistant/);
    await assert.rejects(read(client.runs.stream(thread, 'plain', { input: ask('hello'), streamMode: 'debug' })), /stream mode/);
    await assert.rejects(client.threads.updateState(thread, { values: {} }), /405/);
    await assert.rejects(client.threads.get(crypto.randomUUID()), /404/);
  });

  test(`${version}: interrupts`, async () => {
    for (const [resume, text] of [[{ decisions: [{ type: 'approve' }] }, 'There is one file.'], [false, "Then I can't tell."]]) {
      const { thread, stream } = await begin('approval', 'files?');
      const asked = await read(stream);
      assert.equal(asked.values.__interrupt__.length, 1);
      assert.equal(asked.values.__interrupt__[0].value.action_requests[0].description, 'Run ls?');
      assert.equal(streamed(asked), 'I need to look. ');
      assert.equal((await client.threads.get(thread)).status, 'interrupted');
      const answered = await read(client.runs.stream(thread, 'approval', { command: { resume }, streamMode }));
      assert.ok(streamed(answered).endsWith(text));
      assert.equal(answerOf(answered.values.messages), `I need to look. ${text}`);
      await same(thread, answered);
    }
    const { thread, stream } = await begin('client-tool', 'where?');
    const [interrupt] = (await read(stream)).values.__interrupt__;
    const located = await client.runs.wait(thread, 'client-tool', { command: { resume: { [interrupt.id]: 'the harbour' } } });
    assert.ok(answerOf(located.messages).endsWith('You are at the harbour.'));
  });

  test(`${version}: wait, join, and a run without a thread`, async () => {
    assert.deepEqual(short((await client.runs.wait(null, 'plain', { input: ask('hello') })).messages), [['human', 'hello'], ['ai', 're: hello']]);
    const alone = await client.runs.create(null, 'plain', { input: ask('hello') });
    assert.equal(streamed(await read(client.runs.joinStream(null, alone.run_id, { streamMode }))), 're: hello');
    const gate = crypto.randomUUID();
    const { thread_id: thread } = await client.threads.create();
    const run = await client.runs.create(thread, 'long', { input: ask(gate) });
    const joined = client.runs.join(thread, run.run_id);
    await open(gate);
    await open(`${gate}-end`);
    assert.equal(answerOf((await joined).messages), long);
    assert.equal((await client.runs.get(thread, run.run_id)).status, 'success');
  });

  test(`${version}: two clients at once, one of them in the middle, and a stop`, async () => {
    const gate = crypto.randomUUID();
    let run;
    const { thread, stream } = await begin('long', gate, { onRunCreated: (r) => { run = r.run_id; } });
    let second;
    const first = await read(stream, async (result) => {
      if (streamed(result) !== longBefore) return;
      second = read(client.runs.joinStream(thread, run, { lastEventId: '-1' }), async (late) => {
        if (streamed(late) === longBefore) await client.runs.cancel(thread, run);
      });
    });
    for (const result of [first, await second]) {
      assert.equal(streamed(result), longBefore);
      await same(thread, result);
    }
    assert.equal((await client.runs.get(thread, run)).status, 'interrupted');
  });

  test(`${version}: connections are cut 20 times`, async (t) => {
    // The client joins a run again by itself, after 1 to 6 s, and gives up after five attempts in which it got nothing. It has no option for the wait.
    const wait = globalThis.setTimeout;
    t.mock.method(globalThis, 'setTimeout', (f, ms, ...args) => wait(f, ms >= 1000 && ms < 6000 ? 1 : ms, ...args));
    let cuts = 0;
    let hasProgress = true; // since the last cut
    let left;
    const cutting = async (...args) => {
      const response = await fetch(...args);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
      // A connection that follows one without an event gets through with any event: the longest has the whole text twice.
      left = cuts >= 20 ? Infinity : hasProgress ? Math.floor(Math.random() * 6_000) : 20_000;
      hasProgress = false;
      const reader = response.body.getReader();
      const body = new ReadableStream({
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) { controller.close(); return; }
          if (value.length <= left) {
            left -= value.length;
            controller.enqueue(value);
            return;
          }
          cuts += 1;
          controller.enqueue(value.subarray(0, left));
          await reader.cancel();
          controller.error(new TypeError('network error'));
        },
        cancel: (reason) => reader.cancel(reason),
      });
      return new Response(body, { status: response.status, headers: response.headers });
    };
    const cut = newClient({ callerOptions: { fetch: cutting } });
    while (cuts < 20) {
      const gate = crypto.randomUUID();
      await open(gate);
      await open(`${gate}-end`);
      const { thread_id: thread } = await client.threads.create();
      const stream = cut.runs.stream(thread, 'long', { input: ask(gate), streamMode });
      const result = await read((async function* () {
        for await (const part of stream) {
          hasProgress = true;
          yield part;
        }
      })());
      assert.equal(result.ended[0], 'end');
      assert.equal(streamed(result), long);
      await same(thread, result);
    }
  });
}
