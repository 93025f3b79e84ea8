// The AI SDK of Vercel, versions 5, 6 and 7, against the gateway at LEAT_URL. ../vercel_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { long, longBefore, lossy, newChat, open, request, sdks, stored, textOf, url } from './vercel-chat.js';

// types lists the types of a message's parts.
const types = (message) => message.parts.map((p) => p.type);
const part = (message, type) => message.parts.find((p) => p.type === type);

for (const version of [7, 6, 5]) {
  const name = `ai ${version}`;

  test(`${name}: plain`, async () => {
    const chat = newChat(version, { agent: 'plain' });
    await chat.sendMessage({ text: 'hello' });
    assert.deepEqual(chat.errors, []);
    assert.equal(chat.status, 'ready');
    assert.equal(textOf(chat.lastMessage), 're: hello');
    assert.equal(part(chat.lastMessage, 'text').state, 'done');
    await chat.sendMessage({ text: 'again' });
    const list = await stored(chat);
    assert.deepEqual(list.map((m) => m.id), chat.messages.map((m) => m.id));
    assert.deepEqual(list.map(textOf), ['hello', 're: hello', 'again', 're: again']);
    assert.deepEqual(list.map(textOf), chat.messages.map(textOf));
  });

  test(`${name}: the set of version 5 by default, and without a query`, async () => {
    for (const agent of ['plain', 'thinker', 'tools', 'status', 'approval']) {
      const chat = newChat(version, { agent, api: `${url}/api/chat` });
      await chat.sendMessage({ text: 'hello' });
      assert.deepEqual(chat.errors, [], agent);
      await chat.resumeStream();
      assert.deepEqual(chat.errors, [], agent);
    }
  });

  test(`${name}: reasoning`, async () => {
    const chat = newChat(version, { agent: 'thinker' });
    await chat.sendMessage({ text: 'the time?' });
    assert.deepEqual(types(chat.lastMessage), ['step-start', 'reasoning', 'text']);
    assert.equal(part(chat.lastMessage, 'reasoning').text, 'hm, let me see');
    assert.equal(part(chat.lastMessage, 'reasoning').state, 'done');
    assert.equal(textOf(chat.lastMessage), 'It is noon.');
  });

  test(`${name}: tools in parallel, and none is run by the page`, async () => {
    const chat = newChat(version, { agent: 'tools', onToolCall: ({ toolCall }) => assert.fail(`the page runs ${toolCall.toolName}`) });
    await chat.sendMessage({ text: 'work' });
    assert.deepEqual(chat.errors, []);
    const calls = chat.lastMessage.parts.filter((p) => p.type === 'dynamic-tool');
    assert.deepEqual(calls.map((p) => [p.toolName, p.state, p.input, p.output]), [
      ['clock', 'output-available', { zone: 'UTC' }, 'noon'], ['shell', 'output-available', { command: 'ls' }, 'a\nb\n'],
    ]);
    assert.deepEqual(calls.map((p) => p.preliminary ?? false), [false, false]);
    assert.equal(textOf(chat.lastMessage), 'Done.');
    const list = await stored(chat);
    assert.deepEqual(list[1].parts.map((p) => [p.type, p.toolCallId, p.output]), chat.lastMessage.parts.map((p) => [p.type, p.toolCallId, p.output]));
  });

  test(`${name}: a status is replaced in place`, async () => {
    const seen = new Set();
    const chat = newChat(version, { agent: 'status', onData: (p) => seen.add(p.data.text) });
    await chat.sendMessage({ text: 'play' });
    assert.deepEqual(chat.errors, []);
    assert.equal(chat.lastMessage.parts.filter((p) => p.type === 'data-status').length, 1);
    assert.equal(textOf(chat.lastMessage), 'On it.\n\nNow playing');
    assert.deepEqual(part(chat.lastMessage, 'data-status').data, { text: 'Now playing', state: 'done' });
    assert.ok(seen.has('Now playing'));
  });

  test(`${name}: files and data`, async () => {
    const chat = newChat(version, { agent: 'files' });
    const file = { type: 'file', mediaType: 'text/plain', filename: 'a.txt', url: 'data:text/plain;base64,aGk=' };
    await chat.sendMessage({ text: 'look', files: [file] });
    assert.deepEqual(chat.errors, []);
    assert.deepEqual(types(chat.lastMessage), ['step-start', 'file', 'data-part']);
    assert.deepEqual({ ...part(chat.lastMessage, 'file') }, { type: 'file', mediaType: file.mediaType, url: file.url });
    assert.deepEqual(part(chat.lastMessage, 'data-part').data, { chart: [1, 2] });
    const [sent] = await stored(chat);
    assert.deepEqual(part(sent, 'file'), file);
    await chat.regenerate(); // with the stored file
    assert.deepEqual(types(chat.lastMessage), ['step-start', 'file', 'data-part']);
    assert.deepEqual((await stored(chat)).map((m) => m.id), chat.messages.map((m) => m.id));
  });

  test(`${name}: an agent that fails`, async () => {
    const chat = newChat(version, { agent: 'failing' });
    await chat.sendMessage({ text: 'hello' });
    assert.equal(chat.status, 'error');
    assert.deepEqual(chat.errors.map((e) => e.message), ['The model is busy.']);
    assert.equal(textOf(chat.lastMessage), 'so far');
  });

  test(`${name}: refusals are sentences`, async () => {
    const chat = newChat(version, { agent: 'nobody' });
    await chat.sendMessage({ text: 'hello' });
    assert.deepEqual(chat.errors.map((e) => e.message), ['No agent is named "nobody".']);
  });

  test(`${name}: text that was taken back`, async () => {
    const chat = newChat(version, { agent: 'replacing' });
    await chat.sendMessage({ text: 'the time?' });
    const list = await stored(chat);
    assert.equal(textOf(list[1]), 'It is ten.');
    if (version === 7 || chat.status === 'ready') assert.equal(textOf(chat.lastMessage), 'It is ten.'); // or nobody has seen the first text
    else assert.match(chat.error.message, /changed text that was already sent/);
    if (version === 7) assert.deepEqual(chat.errors, []);
  });

  test(`${name}: regenerate, edit, and a repeated request`, async () => {
    const chat = newChat(version, { agent: 'plain' });
    await chat.sendMessage({ text: 'one' });
    await chat.sendMessage({ text: 'two' });
    const [user1, answer1, user2, answer2] = chat.messages.map((m) => m.id);
    await chat.regenerate();
    assert.deepEqual(chat.errors, []);
    assert.deepEqual(chat.messages.slice(0, 3).map((m) => m.id), [user1, answer1, user2]);
    assert.notEqual(chat.lastMessage.id, answer2);
    assert.deepEqual((await stored(chat)).map((m) => m.id), chat.messages.map((m) => m.id));
    await chat.regenerate({ messageId: answer1 });
    assert.deepEqual(chat.messages.map(textOf), ['one', 're: one']);
    assert.deepEqual((await stored(chat)).map((m) => m.id), chat.messages.map((m) => m.id));
    await chat.sendMessage({ text: 'three', messageId: user1 });
    assert.deepEqual(chat.errors, []);
    assert.deepEqual(chat.messages.map(textOf), ['three', 're: three']);
    assert.deepEqual((await stored(chat)).map((m) => [m.id, textOf(m)]), chat.messages.map((m) => [m.id, textOf(m)]));
    // The same message again gets the same answer.
    const body = JSON.stringify({ id: chat.id, messages: chat.messages.slice(0, 1), trigger: 'submit-message' });
    const repeated = await request('/api/chat', { method: 'POST', body });
    assert.ok((await repeated.text()).includes(chat.lastMessage.id));
    assert.equal((await stored(chat)).length, 2);
  });

  test(`${name}: approval`, async () => {
    for (const approved of [true, false]) {
      const chat = newChat(version, {
        agent: 'approval',
        sendAutomaticallyWhen: sdks[version].lastAssistantMessageIsCompleteWithApprovalResponses ?? sdks[version].lastAssistantMessageIsCompleteWithToolCalls,
      });
      await chat.sendMessage({ text: 'files?' });
      assert.deepEqual(chat.errors, []);
      assert.equal(chat.status, 'ready');
      const { id } = chat.lastMessage;
      const text = approved ? 'There is one file.' : "Then I can't tell.";
      if (version === 5) {
        const call = part(chat.lastMessage, 'tool-approval');
        assert.equal(call.state, 'input-available');
        assert.deepEqual(call.input, { tool: 'shell', prompt: 'Run ls?', options: ['approve', 'deny'] });
        await chat.addToolResult({ tool: 'approval', toolCallId: call.toolCallId, output: approved ? 'approve' : 'deny' });
      } else {
        const call = part(chat.lastMessage, 'dynamic-tool');
        assert.equal(call.state, 'approval-requested');
        await chat.addToolApprovalResponse({ id: call.approval.id, approved });
      }
      await chat.until((c) => c.status === 'ready' && textOf(c.lastMessage).includes(text));
      assert.deepEqual(chat.errors, []);
      assert.equal(chat.messages.length, 2);
      assert.equal(chat.lastMessage.id, id);
      assert.equal(textOf(chat.lastMessage), `I need to look. \n\n${text}`); // a wait divides a text
      const call = part(chat.lastMessage, 'dynamic-tool');
      assert.equal(call.state, approved ? 'output-available' : version === 5 ? 'output-error' : 'output-denied');
      assert.equal(textOf((await stored(chat))[1]), `I need to look. ${text}`);
    }
  });

  test(`${name}: approvals in parallel, one of them given by another device`, async () => {
    let posts = 0;
    const counting = (resource, options) => { posts += options?.method === 'POST' ? 1 : 0; return fetch(resource, options); };
    const chat = newChat(version, {
      agent: 'approvals', fetch: counting,
      sendAutomaticallyWhen: sdks[version].lastAssistantMessageIsCompleteWithApprovalResponses ?? sdks[version].lastAssistantMessageIsCompleteWithToolCalls,
    });
    await chat.sendMessage({ text: 'go' });
    // The response may have ended before the second request. Then it is in the next one.
    const isOpen = (p) => p.state === 'approval-requested' || p.type === 'tool-approval' && p.state === 'input-available';
    const answer = (p) => (version === 5 ? chat.addToolResult({ tool: 'approval', toolCallId: p.toolCallId, output: 'approve' }) : chat.addToolApprovalResponse({ id: p.approval.id, approved: true }));
    const first = chat.lastMessage.parts.find(isOpen);
    const turn = chat.lastMessage.id;
    const other = first.toolCallId === 'one' ? 'two' : 'one';
    for (let status = 0; status !== 200;) { // until the agent has asked
      ({ status } = await request(`/api/conversations/${(await request(`/api/chat/${chat.id}/stream`, { method: 'HEAD' })).headers.get('leat-conversation')}/commands`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ type: 'answer', turn, request: other, decision: 'deny' }),
      }));
    }
    for (const p of chat.lastMessage.parts.filter(isOpen)) await answer(p);
    await chat.until((c) => c.status === 'ready' && textOf(c.lastMessage).includes('approve'));
    assert.deepEqual(chat.errors, []);
    assert.equal(textOf(chat.lastMessage), `Two things. \n\none ${first.toolCallId === 'one' ? 'approve' : 'deny'}, two ${first.toolCallId === 'two' ? 'approve' : 'deny'}`);
    assert.equal(chat.messages.length, 2);
    assert.equal(posts, 2);
  });

  test(`${name}: a tool of the client`, async () => {
    const calls = [];
    const options = {
      agent: 'client-tool', sendAutomaticallyWhen: sdks[version].lastAssistantMessageIsCompleteWithToolCalls,
    };
    const chat = newChat(version, { ...options, onToolCall: ({ toolCall }) => {
      calls.push([toolCall.toolName, toolCall.input]);
      const answer = { tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { city: 'Graz' } };
      void (chat.addToolOutput ?? chat.addToolResult)(answer);
    } });
    void chat.sendMessage({ text: 'hello' });
    await chat.until((c) => c.status === 'ready' && textOf(c.lastMessage).includes('You are at'));
    assert.deepEqual(chat.errors, []);
    assert.deepEqual(calls, [['getLocation', { precise: true }]]);
    assert.equal(textOf(chat.lastMessage), 'Where are you? \n\nYou are at {"city":"Graz"}.');
    assert.equal(chat.messages.length, 2);
  });

  test(`${name}: a page that is reloaded while its tool is wanted`, async () => {
    const first = newChat(version, { agent: 'client-tool' });
    await first.sendMessage({ text: 'hello' });
    assert.equal(part(first.lastMessage, 'tool-getLocation').state, 'input-available');
    const chat = newChat(version, { id: first.id, messages: await stored(first), sendAutomaticallyWhen: sdks[version].lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall }) => void (chat.addToolOutput ?? chat.addToolResult)({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: 'home' }) });
    await chat.resumeStream();
    await chat.until((c) => c.status === 'ready' && textOf(c.lastMessage).includes('You are at'));
    assert.deepEqual(chat.errors, []);
    assert.equal(textOf(chat.lastMessage), 'Where are you? \n\nYou are at home.');
    assert.equal(chat.messages.length, 2);
  });

  test(`${name}: long, reload in the middle, and two clients at once`, async () => {
    const gate = crypto.randomUUID();
    const first = newChat(version, { agent: 'long' });
    const sent = first.sendMessage({ text: gate });
    await first.until((c) => textOf(c.lastMessage) === longBefore);
    const second = newChat(version, { id: first.id, messages: await stored(first) });
    const resumed = second.resumeStream();
    await second.until((c) => c.status === 'streaming' && textOf(c.lastMessage) === longBefore);
    await open(gate);
    await Promise.all([first, second].map((c) => c.until((chat) => textOf(chat.lastMessage) === long)));
    await open(`${gate}-end`);
    await Promise.all([sent, resumed]);
    for (const chat of [first, second]) {
      assert.deepEqual(chat.errors, []);
      assert.equal(chat.messages.length, 2);
      assert.equal(textOf(chat.lastMessage), long);
    }
    assert.equal(first.lastMessage.id, second.lastMessage.id);
    assert.equal(textOf((await stored(first))[1]), long);
    await second.resumeStream(); // 204
    assert.equal(second.status, 'ready');
    assert.equal(second.messages.length, 2);
  });

  test(`${name}: stop`, async () => {
    const gate = crypto.randomUUID();
    const chat = newChat(version, { agent: 'long' });
    const sent = chat.sendMessage({ text: gate });
    await chat.until((c) => textOf(c.lastMessage) === longBefore);
    // The SDK's own stop only disconnects.
    await chat.stop();
    await sent;
    const again = chat.resumeStream();
    await chat.until((c) => c.status === 'streaming' && textOf(c.lastMessage) === longBefore);
    const r = await request(`/api/chat/${chat.id}/stream`, { method: 'DELETE' });
    assert.equal(r.status, 204);
    await again;
    assert.deepEqual(chat.errors, []);
    assert.equal(chat.messages.length, 2);
    assert.equal((await request(`/api/chat/${chat.id}/stream`)).status, 204);
  });

  test(`${name}: regenerate while the answer is still written`, async () => {
    const gate = crypto.randomUUID();
    const chat = newChat(version, { agent: 'long' });
    const sent = chat.sendMessage({ text: gate });
    await chat.until((c) => textOf(c.lastMessage) === longBefore);
    const { id } = chat.lastMessage;
    await chat.stop(); // only disconnects
    await sent;
    const repeated = chat.regenerate();
    await chat.until((c) => c.status === 'streaming' && c.lastMessage.id !== id && textOf(c.lastMessage) === longBefore);
    await open(gate);
    await open(`${gate}-end`);
    await repeated;
    assert.deepEqual(chat.errors, []);
    assert.equal(textOf(chat.lastMessage), long);
    assert.deepEqual((await stored(chat)).map((m) => [m.id, textOf(m)]), chat.messages.map((m) => [m.id, textOf(m)]));
  });

  test(`${name}: stop on disconnect, if the page asks for it`, async () => {
    const gate = crypto.randomUUID();
    const chat = newChat(version, { agent: 'long', api: `${url}/api/chat?on_disconnect=stop` });
    const sent = chat.sendMessage({ text: gate });
    await chat.until((c) => textOf(c.lastMessage) === longBefore);
    const watcher = newChat(version, { id: chat.id });
    const watching = watcher.resumeStream();
    await watcher.until((c) => textOf(c.lastMessage) === longBefore);
    await chat.stop();
    await Promise.all([sent, watching]); // the turn ends
    assert.deepEqual(watcher.errors, []);
  });

  test(`${name}: 20 random cuts`, async () => {
    const gate = crypto.randomUUID();
    const network = lossy();
    let chat = newChat(version, { agent: 'long', fetch: network.fetch });
    await open(gate); // the agent writes more than any budget, and then waits
    network.budget = 1 + Math.floor(Math.random() * 1500);
    await chat.sendMessage({ text: gate });
    for (let cuts = 1; cuts < 20; cuts++) {
      if (version === 5) chat = await reloaded(chat, network); // see the test below
      network.budget = 1 + Math.floor(Math.random() * 1500); // the replay alone has more in the end
      await chat.resumeStream();
      assert.equal(chat.status, 'error', `cut ${cuts}`);
    }
    if (version === 5) chat = await reloaded(chat, network);
    network.budget = Infinity;
    const resumed = chat.resumeStream();
    await chat.until((c) => textOf(c.lastMessage) === long);
    await open(`${gate}-end`);
    await resumed;
    assert.equal(chat.status, 'ready');
    assert.equal(chat.messages.length, 2);
    assert.equal(textOf(chat.lastMessage), textOf((await stored(chat))[1]));
  });
}

// reloaded returns a chat of version 5 as it is after a reload of its page.
async function reloaded(chat, network) {
  return newChat(5, { id: chat.id, messages: await stored(chat), fetch: network.fetch });
}

// If this test fails, version 5 can resume like the others, and docs/outputs/vercel.md has to be changed.
test('ai 5: a resume after a lost connection adds to the message, until the page is reloaded', async () => {
  const gate = crypto.randomUUID();
  const network = lossy();
  const chat = newChat(5, { agent: 'long', fetch: network.fetch });
  const sent = chat.sendMessage({ text: gate });
  await chat.until((c) => textOf(c.lastMessage) === longBefore);
  network.lose();
  await sent;
  assert.equal(chat.status, 'error');
  const resumed = chat.resumeStream();
  await chat.until((c) => textOf(c.lastMessage) === `${longBefore}\n\n${longBefore}`);
  await open(gate);
  await open(`${gate}-end`);
  await resumed;
  assert.equal(textOf((await stored(chat))[1]), long);
});

test('requests above 1 MiB', async () => {
  const chat = newChat(7, { agent: 'plain', messages: [
    { id: 'u0', role: 'user', parts: [{ type: 'text', text: 'x'.repeat(3 << 20) }] }, { id: 'a0', role: 'assistant', parts: [{ type: 'text', text: 'y' }] },
  ] });
  await chat.sendMessage({ text: 'hello' });
  assert.deepEqual(chat.errors, []);
  assert.equal(textOf(chat.lastMessage), 're: hello');
});
