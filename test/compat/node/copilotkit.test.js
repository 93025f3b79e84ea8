// The core of CopilotKit 1.75, whose runtime is the gateway at LEAT_URL. ../agui_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { headers, open, textOf, url } from './agui-agent.js';

globalThis.window = globalThis; // without one, CopilotKit makes no connection
const { CopilotKitCore } = await import('@copilotkit/core');

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join(''); // up to the gate

// until resolves when a condition about an agent's messages holds.
const until = (agent, condition) => new Promise((resolve) => {
  const check = () => { if (condition()) { subscription.unsubscribe(); clearInterval(busy); resolve(); } };
  const busy = setInterval(() => {}, 60_000);
  const subscription = agent.subscribe({ onMessagesChanged: check });
  check();
});

// page returns a page's core that has asked for the agents, and one of them.
async function page(transport, name, thread = crypto.randomUUID(), options = {}) {
  const core = new CopilotKitCore({ runtimeUrl: `${url}/agui`, runtimeTransport: transport, headers, deferInitialConnection: true, ...options });
  const connected = new Promise((resolve, reject) => core.subscribe({
    onRuntimeConnectionStatusChanged: ({ status }) => { if (status === 'connected') resolve(); if (status === 'error') reject(new Error('no connection')); },
  }));
  core.connect();
  await connected;
  const errors = [];
  core.subscribe({ onError: ({ error }) => { errors.push(error.message); } });
  const agent = core.getAgent(name);
  assert.ok(agent, `agent ${name}`);
  agent.threadId = thread;
  const ask = (text) => {
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
    return core.runAgent({ agent });
  };
  return { core, agent, ask, errors };
}

for (const transport of ['rest', 'single']) {
  test(`${transport}: the agents, and a question to the default one`, async () => {
    const { core, agent, ask, errors } = await page(transport, 'default');
    assert.ok(Object.keys(core.agents).includes('long'));
    await ask('hello');
    assert.deepEqual(errors, []);
    assert.equal(textOf(agent.messages), 're: hello');
  });

  test(`${transport}: a page that is opened again, also while the answer is written`, async () => {
    const gate = crypto.randomUUID();
    const first = await page(transport, 'long');
    const sent = first.ask(gate);
    await until(first.agent, () => textOf(first.agent.messages) === longBefore);
    const second = await page(transport, 'long', first.agent.threadId);
    const joined = second.core.connectAgent({ agent: second.agent });
    await until(second.agent, () => textOf(second.agent.messages) === longBefore);
    await open(gate);
    await open(`${gate}-end`);
    await Promise.all([sent, joined]);
    assert.equal(textOf(first.agent.messages), long);
    assert.deepEqual(JSON.parse(JSON.stringify(second.agent.messages)), JSON.parse(JSON.stringify(first.agent.messages)));
    const third = await page(transport, 'long', first.agent.threadId);
    await third.core.connectAgent({ agent: third.agent });
    assert.deepEqual(JSON.parse(JSON.stringify(third.agent.messages)), JSON.parse(JSON.stringify(first.agent.messages)));
    assert.deepEqual([...first.errors, ...second.errors, ...third.errors], []);
  });

  test(`${transport}: a thread that doesn't exist yet`, async () => {
    const { core, agent, errors } = await page(transport, 'plain');
    await core.connectAgent({ agent });
    assert.deepEqual(errors, []);
    assert.deepEqual(agent.messages, []);
  });

  test(`${transport}: stop`, async () => {
    const gate = crypto.randomUUID();
    const { core, agent, ask, errors } = await page(transport, 'long');
    const sent = ask(gate);
    await until(agent, () => textOf(agent.messages) === longBefore);
    core.stopAgent({ agent });
    await sent;
    const late = await page(transport, 'long', agent.threadId);
    await late.core.connectAgent({ agent: late.agent }); // ends when the turn has ended
    assert.equal(textOf(late.agent.messages), longBefore);
    assert.deepEqual(errors, []);
  });

  test(`${transport}: a tool of the page`, async () => {
    const { core, agent, ask, errors } = await page(transport, 'client-tool');
    const calls = [];
    core.addTool({ name: 'getLocation', handler: async (args) => { calls.push(args); return 'Graz'; } });
    await ask('where am I?');
    assert.deepEqual(errors, []);
    assert.deepEqual(calls, [{ precise: true }]);
    assert.equal(textOf(agent.messages), 'Where are you? You are at Graz.');
  });

  test(`${transport}: tools of the page are offered to the agent`, async () => {
    const { core, agent, ask, errors } = await page(transport, 'offered');
    const calls = [];
    core.addTool({
      name: 'getLocation',
      description: 'Where the user is',
      parameters: z.object({ precise: z.boolean() }),
      handler: async (args) => { calls.push(args); return 'Graz'; },
    });
    await ask('where am I?');
    assert.deepEqual(errors, []);
    assert.deepEqual(calls, [{ precise: true }]);
    assert.match(textOf(agent.messages), /^getLocation, Where the user is, \{.*"precise":\{"type":"boolean"\}.*\}: Graz\.$/);
  });

  test(`${transport}: tools of the agent are not run by the page`, async () => {
    const { core, agent, ask, errors } = await page(transport, 'tools');
    core.addTool({ name: 'clock', handler: async () => assert.fail('the page runs the clock') });
    await ask('work');
    assert.deepEqual(errors, []);
    assert.equal(agent.messages.at(-1).content, 'Done.');
  });

  test(`${transport}: approval`, async () => {
    const { agent, ask, errors } = await page(transport, 'approval');
    await ask('files?');
    assert.deepEqual(agent.pendingInterrupts.map((i) => i.message), ['Run ls?']);
    await agent.runAgent({ resume: agent.pendingInterrupts.map((i) => ({ interruptId: i.id, status: 'resolved', payload: { approved: true } })) });
    assert.deepEqual(errors, []);
    assert.equal(textOf(agent.messages), 'I need to look. There is one file.');
  });

  test(`${transport}: an agent that fails`, async () => {
    const { agent, ask, errors } = await page(transport, 'failing');
    await ask('hello');
    assert.equal(textOf(agent.messages), 'so far');
    assert.deepEqual(errors, ['The model is busy.']);
  });
}
