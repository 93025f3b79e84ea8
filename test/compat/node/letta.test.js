// The client of Letta, @letta-ai/letta-client 1.12.1, against the gateway at LEAT_URL. ../letta_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Letta from '@letta-ai/letta-client';

const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;
const open = (gate) => fetch(`${gates}/${gate}`);
const client = new Letta({ apiKey: token, baseURL: `${url}/letta`, maxRetries: 0 });

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join(''); // up to the gate

// Run collects the frames of a run as a page does: by otid, and calls by their ids.
class Run {
  texts = new Map();
  calls = new Map();
  returns = new Map();
  approvals = [];
  kinds = [];
  seq = 0;

  take(m) {
    if (m.run_id) this.id = m.run_id;
    if (m.seq_id && m.message_type !== 'ping') {
      assert.ok(m.seq_id > this.seq, `seq_id ${m.seq_id} after ${this.seq}`);
      this.seq = m.seq_id;
    }
    if (this.kinds.at(-1) !== m.message_type) this.kinds.push(m.message_type);
    switch (m.message_type) {
      case 'assistant_message': this.texts.set(m.otid, (this.texts.get(m.otid) ?? '') + m.content); break;
      case 'reasoning_message': this.reasoning = (this.reasoning ?? '') + m.reasoning; break;
      case 'tool_call_message': {
        const c = this.calls.get(m.tool_call.tool_call_id) ?? { name: '', arguments: '' };
        this.calls.set(m.tool_call.tool_call_id, { name: m.tool_call.name ?? c.name, arguments: c.arguments + (m.tool_call.arguments ?? '') });
        break;
      }
      case 'tool_return_message': this.returns.set(m.tool_call_id, [m.status, m.tool_return]); break;
      case 'approval_request_message': this.approvals.push(m.tool_call); break;
      case 'stop_reason': this.stop = m.stop_reason; break;
      case 'usage_statistics': this.usage = m; break;
    }
  }

  async read(stream, until = () => false) {
    for await (const m of await stream) {
      this.take(m);
      if (until(this)) break;
    }
    return this;
  }

  get text() { return [...this.texts.values()].filter(Boolean).join('\n\n'); }
}

// begin makes a conversation with an agent and returns a function that sends to it.
async function begin(agent) {
  const conversation = await client.conversations.create({ agent_id: `agent-${agent}` });
  const send = (messages, options) => client.conversations.messages.create(conversation.id, { ...options, messages, streaming: true, stream_tokens: true, background: true, include_pings: true });
  const ask = (text, options) => send([{ role: 'user', content: text, otid: crypto.randomUUID() }], options);
  return { conversation, send, ask };
}

const list = async (conversation) => {
  const all = [];
  for await (const m of client.conversations.messages.list(conversation.id, { limit: 3, order: 'asc' })) all.push(m);
  return all;
};

test('agents and models', async () => {
  const names = [];
  for await (const a of client.agents.list({ limit: 2 })) names.push(a.name);
  assert.ok(names.includes('plain') && new Set(names).size === names.length);
  assert.equal((await client.agents.retrieve('agent-plain')).name, 'plain');
  await assert.rejects(client.agents.retrieve('agent-nobody'), /404/);
  assert.ok((await client.models.list()).some((m) => m.model === 'plain'));
});

test('plain, and the list of messages', async () => {
  const { conversation, ask } = await begin('plain');
  const run = await new Run().read(ask('hello'));
  assert.equal(run.text, 're: hello');
  assert.equal(run.stop, 'end_turn');
  assert.deepEqual(run.usage.run_ids, [run.id]);
  await new Run().read(ask('again'));
  const all = await list(conversation);
  assert.deepEqual(all.map((m) => [m.message_type, m.content]), [['user_message', 'hello'], ['assistant_message', 're: hello'], ['user_message', 'again'], ['assistant_message', 're: again']]);
  assert.deepEqual([...run.texts.keys()], [all[1].otid]);
  const state = await client.runs.retrieve(run.id);
  assert.equal(state.status, 'completed');
});

test('an agent without a conversation, as a whole', async () => {
  const response = await client.agents.messages.create('agent-plain', { messages: [{ role: 'user', content: 'hi' }] });
  assert.deepEqual(response.messages.map((m) => m.content), ['re: hi']);
  assert.equal(response.stop_reason.stop_reason, 'end_turn');
});

test('reasoning', async () => {
  const run = await new Run().read((await begin('thinker')).ask('the time?'));
  assert.equal(run.reasoning, 'hm, let me see');
  assert.equal(run.text, 'It is noon.');
});

test('tools in parallel', async () => {
  const { conversation, ask } = await begin('tools');
  const run = await new Run().read(ask('work'));
  assert.deepEqual([...run.calls.values()], [{ name: 'clock', arguments: '{"zone":"UTC"}' }, { name: 'shell', arguments: '{"command":"ls"}' }]);
  assert.deepEqual([...run.calls.keys()].map((id) => run.returns.get(id)), [['success', 'noon'], ['success', 'a\nb\n']]);
  assert.equal(run.text, 'Done.');
  assert.equal((await list(conversation)).filter((m) => m.message_type === 'tool_return_message').length, 2);
});

test('an agent that fails', async () => {
  const run = new Run();
  await assert.rejects(run.read((await begin('failing')).ask('hello')), /The model is busy/);
  assert.equal(run.text, 'so far');
});

test('a status is sent when it is final', async () => {
  const run = await new Run().read((await begin('status')).ask('play'));
  assert.equal(run.text, 'On it.\n\nNow playing');
});

test('approval', async () => {
  for (const approve of [true, false]) {
    const { conversation, ask, send } = await begin('approval');
    const run = await new Run().read(ask('files?'));
    assert.equal(run.stop, 'requires_approval');
    assert.deepEqual(run.approvals.map((c) => [c.name, c.arguments]), [['shell', '{"command":"ls"}']]);
    await assert.rejects(ask('hello?'), (e) => e.status === 409 && /PENDING_APPROVAL/.test(e.message));
    await run.read(send([{ type: 'approval', approvals: [{ type: 'approval', tool_call_id: run.approvals[0].tool_call_id, approve }] }]));
    assert.equal(run.stop, 'end_turn');
    const text = `I need to look. ${approve ? 'There is one file.' : "Then I can't tell."}`;
    assert.equal([...run.texts.values()].join(''), text); // what follows the answer is a new message
    assert.deepEqual(run.returns.get(run.approvals[0].tool_call_id), approve ? ['success', 'file'] : ['error', 'The tool was not allowed to run.']);
    assert.deepEqual((await list(conversation)).filter((m) => m.message_type === 'assistant_message').map((m) => m.content), [text]);
  }
});

test('a tool of the client', async () => {
  const { ask, send } = await begin('client-tool');
  const run = await new Run().read(ask('hello'));
  assert.deepEqual(run.approvals.map((c) => [c.name, c.arguments]), [['getLocation', '{"precise":true}']]);
  await run.read(send([{ type: 'approval', approvals: [{ type: 'tool', tool_call_id: run.approvals[0].tool_call_id, tool_return: 'Graz', status: 'success' }] }]));
  assert.equal([...run.texts.values()].join(''), 'Where are you? You are at Graz.');
});

test('tools of the client are offered to the agent', async () => {
  const { ask, send } = await begin('offered');
  const tools = [{ name: 'getLocation', description: 'Where the user is', parameters: { type: 'object' } }];
  const run = await new Run().read(ask('hello', { client_tools: tools }));
  assert.deepEqual(run.approvals.map((c) => [c.name, c.arguments]), [['getLocation', '{"precise":true}']]);
  await run.read(send([{ type: 'approval', approvals: [{ type: 'tool', tool_call_id: run.approvals[0].tool_call_id, tool_return: 'Graz', status: 'success' }] }]));
  assert.equal([...run.texts.values()].join(''), 'getLocation, Where the user is, {"type":"object"}: Graz.');
});

test('long, resume in the middle, and two clients at once', async () => {
  const gate = crypto.randomUUID();
  const { conversation, ask } = await begin('long');
  const first = new Run();
  await first.read(ask(gate), (r) => r.text === longBefore);
  const second = new Run();
  const reading = second.read(client.conversations.messages.stream(conversation.id, {}));
  await open(gate);
  await open(`${gate}-end`);
  await first.read(client.runs.messages.stream(first.id, { starting_after: first.seq }));
  await reading;
  assert.equal(first.text, long);
  assert.equal(second.text, long);
  assert.equal(first.stop, 'end_turn');
});

test('stop', async () => {
  const gate = crypto.randomUUID();
  const { conversation, ask } = await begin('long');
  const run = new Run();
  const reading = run.read(ask(gate), (r) => { if (r.text === longBefore && !r.isStopped) { r.isStopped = true; void client.conversations.cancel(conversation.id); } return false; });
  await reading;
  assert.equal(run.stop, 'cancelled');
  assert.equal(run.text, longBefore);
});

test('20 random cuts', async () => {
  const gate = crypto.randomUUID();
  const { conversation, ask } = await begin('long');
  await open(gate);
  const run = new Run();
  let left = 1 + Math.floor(Math.random() * 20);
  await run.read(ask(gate), () => --left <= 0);
  for (let cuts = 1; cuts < 20; cuts++) {
    left = 1 + Math.floor(Math.random() * 20);
    await run.read(client.runs.messages.stream(run.id, { starting_after: run.seq }), () => --left <= 0);
  }
  await open(`${gate}-end`);
  await run.read(client.runs.messages.stream(run.id, { starting_after: run.seq }));
  assert.equal(run.text, long);
  assert.equal((await list(conversation))[1].content, long);
});
