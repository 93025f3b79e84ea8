// The client of the Model Context Protocol with `leat mcp`, against the gateway at LEAT_URL. ../mcp_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cuttingProxy } from './cutting-proxy.js';
import { using } from './mcp-client.js';

const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;
const open = (gate) => fetch(`${gates}/${gate}`);
const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join(''); // up to the gate

test('the tools', () => using(async (call, client, tools) => {
  assert.deepEqual(tools.map((t) => t.name), ['ask', 'answer', 'conversations', 'read', 'stop']);
  assert.match(client.getInstructions(), /gateway for AI agents/);
  await client.ping();
}));

test('ask, continue, list and read', () => using(async (call) => {
  const first = await call('ask', { text: 'hello' });
  assert.deepEqual([first.state, first.text, first.shown, first.isError], ['completed', 're: hello', 're: hello', false]);
  const again = await call('ask', { text: 'again', conversation: first.conversation });
  assert.deepEqual([again.conversation, again.text], [first.conversation, 're: again']);
  const { conversations } = await call('conversations', { limit: 200 });
  assert.equal(conversations.find((c) => c.id === first.conversation).title, 'hello');
  const { messages, earlier } = await call('read', { conversation: first.conversation, limit: 3 });
  assert.deepEqual([messages.map((m) => [m.role, m.text]), earlier], [[['assistant', 're: hello'], ['user', 'again'], ['assistant', 're: again']], true]);
  const before = await call('read', { conversation: first.conversation, before: messages[0].id });
  assert.deepEqual(before.messages.map((m) => m.text), ['hello']);
}));

test('tools, reasoning, a status and replaced text', () => using(async (call) => {
  for (const [agent, text] of [['tools', 'Done.'], ['thinker', 'It is noon.'], ['status', 'On it.\n\nNow playing'], ['replacing', 'It is ten.']]) {
    assert.equal((await call('ask', { text: 'x', agent })).text, text);
  }
}));

test('an approval and a text', () => using(async (call) => {
  const asked = await call('ask', { text: 'x', agent: 'approval' });
  assert.deepEqual([asked.state, asked.question], ['waiting', { request: 'ask-1', prompt: 'Run ls?', options: ['approve', 'deny'] }]);
  assert.match(asked.shown, /The agent waits for an answer: Run ls\? \(approve, deny\)/);
  const done = await call('answer', { conversation: asked.conversation, decision: 'approve' });
  assert.deepEqual([done.state, done.turn, done.text], ['completed', asked.turn, 'I need to look. There is one file.']);
  assert.match((await call('answer', { conversation: asked.conversation, decision: 'approve' })).shown, /no agent waits/);
  const two = await call('ask', { text: 'x', agent: 'approvals' });
  const left = await call('answer', { conversation: two.conversation, decision: 'deny', request: 'one' });
  assert.deepEqual([left.state, left.question.request], ['waiting', 'two']);
  assert.equal((await call('answer', { conversation: two.conversation, decision: 'approve' })).text, 'Two things. one deny, two approve');
  const where = await call('ask', { text: 'x', agent: 'client-tool' });
  assert.equal((await call('answer', { conversation: where.conversation, text: 'home' })).text, 'Where are you? You are at home.');
}));

test('errors are results', () => using(async (call, client) => {
  const failed = await call('ask', { text: 'x', agent: 'failing' });
  assert.deepEqual([failed.isError, failed.state, failed.text, failed.error], [true, 'failed', 'so far', 'The model is busy.']);
  for (const [name, a, message] of [
    ['ask', { text: ' ' }, /text is empty/], ['ask', { text: 'x', agent: 'nobody' }, /nobody/], ['ask', { text: 'x', conversation: 'nowhere' }, /not found/], ['read', { conversation: 'nowhere' }, /not found/],
    ['conversations', { limit: 1000 }, /limit must be 1 to 200/], ['answer', { conversation: 'c' }, /needs a decision or a text/],
  ]) {
    const r = await client.callTool({ name, arguments: a });
    assert.equal(r.isError, true);
    assert.match(r.content[0].text, message);
  }
  await assert.rejects(call('nothing'), /unknown tool/);
}));

test('a long answer with progress, a limit, and a cancel that stops', () => using(async (call) => {
  const gate = crypto.randomUUID();
  let seen;
  const progress = new Promise((resolve) => { seen = resolve; });
  const asked = call('ask', { text: gate, agent: 'long' }, { onprogress: seen });
  assert.match((await progress).message, /^word/);
  await open(gate);
  await open(`${gate}-end`);
  assert.equal((await asked).text, long);

  const slow = await call('ask', { text: crypto.randomUUID(), agent: 'long', wait_seconds: 1 });
  assert.deepEqual([slow.state, slow.isError], ['running', false]);
  assert.deepEqual((await call('stop', { conversation: slow.conversation })).stopped, [slow.turn]);
  assert.deepEqual((await call('stop', { conversation: slow.conversation })).stopped, []);

  const { conversation } = await call('ask', { text: 'x' });
  for (const [stops, state] of [[true, 'cancelled'], [false, undefined]]) {
    const cancel = new AbortController();
    let begun;
    const reported = new Promise((resolve) => { begun = resolve; });
    const given = call('ask', { text: crypto.randomUUID(), agent: 'long', conversation, stop_on_cancel: stops }, { signal: cancel.signal, onprogress: begun });
    await reported;
    cancel.abort();
    await assert.rejects(given);
    let turn;
    do {
      const response = await fetch(`${url}/api/conversations/${conversation}/transcript`, { headers: { Authorization: `Bearer ${token}` } });
      turn = (await response.json()).transcript.turns.at(-1);
    } while (turn.outcome !== state);
    if (!stops) await call('stop', { conversation });
  }
}));

test('20 cuts', async () => {
  const proxy = await cuttingProxy(url);
  try {
    await using(async (call) => {
      const gate = crypto.randomUUID();
      // What arrives at once is one frame, which must fit through some of the connections.
      proxy.budget = () => 300 + Math.floor(Math.random() * 9000);
      proxy.reset();
      const asked = Promise.all(Array.from({ length: 4 }, () => call('ask', { text: gate, agent: 'long' })));
      await open(gate);
      await open(`${gate}-end`);
      const answers = await asked;
      for (const a of answers) assert.deepEqual([a.state, a.text], ['completed', long]);
      while (proxy.cuts < 20) {
        const { conversation } = answers[proxy.cuts % answers.length];
        const { messages, isError } = await call('read', { conversation });
        if (!isError) assert.deepEqual(messages.map((m) => m.text), [gate, long]); // each question was sent once
      }
    }, { base: proxy.base });
  } finally {
    proxy.close();
  }
});

test('two hosts at once', () => using((one) => using(async (two) => {
  const gate = crypto.randomUUID();
  const first = one('ask', { text: gate, agent: 'long', wait_seconds: 1 });
  const { conversation, turn } = await first;
  // The other one asks in the same conversation, and its answer comes after that of the first.
  const second = two('ask', { text: 'x', conversation, agent: 'tools' });
  await open(gate);
  await open(`${gate}-end`);
  assert.deepEqual((({ state, text }) => [state, text])(await second), ['completed', 'Done.']);
  const { messages } = await one('read', { conversation });
  assert.deepEqual(messages.filter((m) => m.role === 'assistant').map((m) => m.text), [long, 'Done.']);
  assert.ok(turn);
})));

test('a wrong token', () => using(async (call) => {
  assert.match((await call('conversations')).shown, /rejected the token/);
}, { secret: 'wrong' }));
