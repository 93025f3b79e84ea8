// The clients of AG-UI, 0.0.59 and 1.0.0, against the gateway at LEAT_URL. ../agui_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generations, headers, newAgent, open, stored, textOf, url } from './agui-agent.js';

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join(''); // up to the gate

// plain removes what the client adds to messages.
const plain = (messages) => JSON.parse(JSON.stringify(messages));
const same = async (agent) => assert.deepEqual(plain(agent.messages), plain(await stored(agent)));
const roles = (agent) => agent.messages.map((m) => m.role);

for (const version of Object.keys(generations)) {
  const finished = 'success';

  test(`${version}: plain`, async () => {
    const agent = newAgent(version);
    await agent.ask('hello');
    assert.deepEqual(agent.ends, [finished]);
    assert.deepEqual(agent.messages.map((m) => [m.role, m.content]), [['user', 'hello'], ['assistant', 're: hello']]);
    await agent.ask('again');
    assert.deepEqual(agent.messages.map((m) => m.content), ['hello', 're: hello', 'again', 're: again']);
    await same(agent);
  });

  test(`${version}: reasoning`, async () => {
    const agent = newAgent(version, { agent: 'thinker' });
    await agent.ask('the time?');
    assert.deepEqual(agent.ends, [finished]);
    assert.deepEqual(agent.messages.map((m) => [m.role, m.content]), [['user', 'the time?'], ['reasoning', 'hm, let me see'], ['assistant', 'It is noon.']]);
    await same(agent);
  });

  test(`${version}: tools in parallel`, async () => {
    const agent = newAgent(version, { agent: 'tools' });
    await agent.ask('work');
    assert.deepEqual(agent.ends, [finished]);
    const calls = agent.messages.flatMap((m) => m.toolCalls ?? []);
    assert.deepEqual(calls.map((c) => [c.function.name, c.function.arguments]), [['clock', '{"zone":"UTC"}'], ['shell', '{"command":"ls"}']]);
    const results = agent.messages.filter((m) => m.role === 'tool');
    assert.deepEqual(results.map((m) => [m.toolCallId, m.content]).sort(), calls.map((c, i) => [c.id, ['noon', 'a\nb\n'][i]]).sort());
    assert.equal(agent.messages.at(-1).content, 'Done.');
    await same(agent);
  });

  test(`${version}: a status is replaced in place`, async () => {
    const agent = newAgent(version, { agent: 'status' });
    await agent.ask('play');
    assert.deepEqual(agent.ends, [finished]);
    assert.equal(textOf(agent.messages), 'On it.\n\nNow playing');
    assert.deepEqual(plain(agent.messages.at(-1).content), { text: 'Now playing', state: 'done' });
    await same(agent);
  });

  test(`${version}: files and data`, async () => {
    const agent = newAgent(version, { agent: 'files' });
    agent.addMessage({ id: 'u', role: 'user', content: [{ type: 'text', text: 'look' }, { type: 'image', source: { type: 'data', value: 'aGk=', mimeType: 'image/png' } }] });
    await agent.go();
    assert.deepEqual(agent.ends, [finished]);
    assert.deepEqual(roles(agent), ['user', 'activity', 'activity']);
    assert.equal(agent.messages[1].activityType, 'file');
    assert.equal(agent.messages[1].content.mimeType, 'image/png');
    assert.deepEqual(plain(agent.messages[2].content), { chart: [1, 2] });
    const list = await stored(agent);
    assert.equal(list[0].content[1].type, 'image');
    assert.deepEqual(plain(list.slice(1)), plain(agent.messages.slice(1)));
  });

  test(`${version}: an agent that fails`, async () => {
    const agent = newAgent(version, { agent: 'failing' });
    await agent.ask('hello');
    assert.deepEqual(agent.ends, ['error: The model is busy.']);
    assert.equal(textOf(agent.messages), 'so far');
  });

  test(`${version}: refusals are sentences`, async () => {
    const agent = newAgent(version, { agent: 'nobody' });
    await agent.ask('hello');
    assert.deepEqual(agent.ends, ['broken: HTTP 404: There is no agent "nobody".']);
  });

  test(`${version}: text that was taken back`, async () => {
    const agent = newAgent(version, { agent: 'replacing', messages: [{ id: 's', role: 'system', content: 'Be brief.' }] });
    await agent.ask('the time?');
    assert.deepEqual(agent.ends, [finished]);
    assert.equal(textOf(agent.messages), 'It is ten.');
    assert.equal(agent.messages[0].content, 'Be brief.', 'the page keeps its own message');
  });

  test(`${version}: a message that was answered is answered anew`, async () => {
    const agent = newAgent(version);
    await agent.ask('one');
    await agent.ask('two');
    const [user1, answer1, user2, answer2] = agent.messages.map((m) => m.id);
    agent.setMessages(agent.messages.slice(0, 3));
    await agent.go();
    assert.deepEqual(agent.messages.slice(0, 3).map((m) => m.id), [user1, answer1, user2]);
    assert.notEqual(agent.messages[3].id, answer2);
    await same(agent);
    agent.setMessages([{ ...agent.messages[0], content: 'three' }]); // an edit
    await agent.go();
    assert.deepEqual(agent.messages.map((m) => m.content), ['three', 're: three']);
    await same(agent);
  });

  test(`${version}: approval`, async () => {
    for (const approved of [true, false]) {
      const agent = newAgent(version, { agent: 'approval' });
      await agent.ask('files?');
      assert.deepEqual(agent.ends, ['interrupt']);
      assert.equal(agent.pendingInterrupts.length, 1);
      const [interrupt] = agent.pendingInterrupts;
      const call = agent.messages.flatMap((m) => m.toolCalls ?? [])[0];
      assert.deepEqual([interrupt.message, interrupt.reason, interrupt.toolCallId, interrupt.metadata.tool], ['Run ls?', 'confirmation', call.id, 'shell']);
      await agent.go({ resume: [approved ? { interruptId: interrupt.id, status: 'resolved', payload: { approved } } : { interruptId: interrupt.id, status: 'cancelled' }] });
      assert.deepEqual(agent.ends, ['interrupt', finished]);
      assert.equal(textOf(agent.messages), `I need to look. ${approved ? 'There is one file.' : "Then I can't tell."}`);
      const result = agent.messages.find((m) => m.role === 'tool');
      assert.equal(result.content, approved ? 'file' : 'The tool was not allowed to run.');
      await same(agent);
    }
  });

  test(`${version}: approvals in parallel`, async () => {
    const agent = newAgent(version, { agent: 'approvals' });
    await agent.ask('go');
    // The run may have ended before the second request. Then it is in the next one.
    for (let i = 0; agent.ends.at(-1) === 'interrupt'; i++) {
      assert.ok(i < 3);
      await agent.go({ resume: agent.pendingInterrupts.map((p) => ({ interruptId: p.id, status: 'resolved', payload: p.id === 'one' })) });
    }
    assert.equal(agent.ends.at(-1), finished);
    assert.equal(textOf(agent.messages), 'Two things. one approve, two deny');
    await same(agent);
  });

  test(`${version}: a tool of the page`, async () => {
    const agent = newAgent(version, { agent: 'client-tool' });
    await agent.ask('hello');
    assert.deepEqual(agent.ends, [finished]);
    const call = agent.messages.at(-1).toolCalls[0];
    assert.deepEqual([call.function.name, call.function.arguments], ['getLocation', '{"precise":true}']);
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: call.id, content: '{"city":"Graz"}' });
    await agent.go();
    assert.equal(agent.ends.at(-1), finished);
    assert.equal(textOf(agent.messages), 'Where are you? You are at {"city":"Graz"}.');
    assert.equal(agent.messages.filter((m) => m.toolCalls).length, 1);
    assert.equal(agent.messages.filter((m) => m.role === 'tool').length, 1);
  });

  test(`${version}: tools of the page are offered to the agent`, async () => {
    const agent = newAgent(version, { agent: 'offered' });
    const tools = [{ name: 'getLocation', description: 'Where the user is', parameters: { type: 'object' } }];
    await agent.ask('hello', { tools });
    const call = agent.messages.at(-1).toolCalls[0];
    assert.deepEqual([call.function.name, call.function.arguments], ['getLocation', '{"precise":true}']);
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: call.id, content: 'Graz' });
    await agent.go({ tools });
    assert.equal(textOf(agent.messages), 'getLocation, Where the user is, {"type":"object"}: Graz.');
    assert.deepEqual(agent.ends, [finished, finished]);
  });

  test(`${version}: a page that is reloaded while its tool is wanted`, async () => {
    const first = newAgent(version, { agent: 'client-tool' });
    await first.ask('hello');
    const agent = newAgent(version, { agent: 'client-tool', thread: first.threadId });
    await agent.go(); // a run without a new message catches up
    const call = agent.messages.at(-1).toolCalls[0];
    assert.equal(call.function.arguments, '{"precise":true}');
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: call.id, content: 'home' });
    await agent.go();
    assert.equal(textOf(agent.messages), 'Where are you? You are at home.');
    assert.deepEqual(agent.ends, [finished, finished]);
  });

  test(`${version}: long, reload in the middle, and two clients at once`, async () => {
    const gate = crypto.randomUUID();
    const first = newAgent(version, { agent: 'long' });
    const sent = first.ask(gate);
    await first.until((a) => textOf(a.messages) === longBefore);
    const second = newAgent(version, { agent: 'long', thread: first.threadId });
    const joined = second.go();
    await second.until((a) => textOf(a.messages) === longBefore);
    await open(gate);
    await Promise.all([first, second].map((a) => a.until(() => textOf(a.messages) === long)));
    await open(`${gate}-end`);
    await Promise.all([sent, joined]);
    assert.deepEqual([...first.ends, ...second.ends], [finished, finished]);
    assert.deepEqual(plain(first.messages), plain(second.messages));
    await same(first);
    await second.go(); // nothing runs
    assert.deepEqual(plain(first.messages), plain(second.messages));
  });

  test(`${version}: stop`, async () => {
    const gate = crypto.randomUUID();
    const agent = newAgent(version, { agent: 'long' });
    const sent = agent.ask(gate);
    await agent.until((a) => textOf(a.messages) === longBefore);
    const stop = () => fetch(`${url}/agui/agent/long/stop/${agent.threadId}`, { method: 'POST', headers }).then((r) => r.json());
    assert.deepEqual(await stop(), { stopped: true });
    await sent;
    assert.deepEqual(agent.ends, [version === '0.0.59' ? 'finished' : 'cancelled']);
    assert.equal(textOf(agent.messages), longBefore);
    assert.deepEqual(await stop(), { stopped: false });
  });

  test(`${version}: a client that goes stops nothing, unless the page asks for it`, async () => {
    for (const [query, isStopped] of [['', false], ['?on_disconnect=stop', true]]) {
      const gate = crypto.randomUUID();
      const agent = newAgent(version, { agent: 'long', query });
      const sent = agent.ask(gate);
      await agent.until((a) => textOf(a.messages) === longBefore);
      const watcher = newAgent(version, { agent: 'long', thread: agent.threadId });
      const watching = watcher.go();
      await watcher.until((a) => textOf(a.messages) === longBefore);
      agent.abortRun();
      await sent;
      if (!isStopped) {
        await open(gate);
        await open(`${gate}-end`);
      }
      await watching;
      assert.equal(textOf(watcher.messages), isStopped ? longBefore : long);
    }
  });
}
