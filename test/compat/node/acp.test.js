// Editors on the SDKs of the Agent Client Protocol with `leat acp`, against the gateway at LEAT_URL. ../acp_editor_test.go runs it.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { start, textOf, versions, visible } from './acp-editor.js';
import { cuttingProxy } from './cutting-proxy.js';

const { LEAT_URL: url, LEAT_TOKEN: token, LEAT_GATES: gates } = process.env;
const open = (gate) => fetch(`${gates}/${gate}`);
const api = async (path, body) => (await fetch(url + path, { method: body ? 'POST' : 'GET', headers: { Authorization: `Bearer ${token}` }, ...(body && { body: JSON.stringify(body) }) })).json();

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join(''); // up to the gate

const selected = (optionId) => ({ outcome: { outcome: 'selected', optionId } });
// same waits until an editor has a value. The SDKs may handle updates after the response that follows them.
async function same(editor, get, want) {
  const late = delay(60_000, undefined, { ref: false });
  await Promise.race([editor.until(() => isDeepStrictEqual(get(), want)), late]);
  assert.deepEqual(get(), want);
}
const shows = (editor, session, text) => same(editor, () => textOf(session), text);
const kindsOf = (session) => session.items.map((i) => i.kind);

// editing runs a test with an editor, and ends its program.
async function editing(version, options, run) {
  const editor = await start(version, options);
  try {
    await run(editor);
  } finally {
    assert.equal(await editor.end(), 0, editor.log);
  }
}

// ask opens a session with an agent and prompts it.
async function ask(editor, agent, text = 'hello') {
  const session = await editor.open();
  await editor.connection.setMode({ sessionId: session.id, modeId: agent });
  return { session, result: await editor.prompt(session, text) };
}

for (const version of versions) {
  const isNew = version !== '0.4.5';

  test(`${version}: plain`, () => editing(version, {}, async (editor) => {
    assert.equal(editor.hello.protocolVersion, 1);
    assert.equal(editor.hello.agentCapabilities.loadSession, true);
    const session = await editor.open();
    assert.equal(session.opened.modes.currentModeId, 'plain');
    assert.deepEqual(await editor.prompt(session, 'hello'), { stopReason: 'end_turn' });
    assert.deepEqual(await editor.prompt(session, 'again'), { stopReason: 'end_turn' });
    await same(editor, () => session.items, [{ kind: 'agent', text: 're: hellore: again' }]); // the editor has its own messages between them
    assert.equal(await visible(session.id), 're: hello\n\nre: again');
    if (isNew) await editor.until(() => session.titles.includes('hello'));
    const loaded = await editor.load(session.id);
    await same(editor, () => loaded.items, [{ kind: 'user', text: 'hello' }, { kind: 'agent', text: 're: hello' }, { kind: 'user', text: 'again' }, { kind: 'agent', text: 're: again' }]);
    assert.deepEqual(await editor.prompt(loaded, 'third'), { stopReason: 'end_turn' });
    await editor.until(() => loaded.items.at(-1).text === 're: againre: third');
  }));

  test(`${version}: reasoning`, () => editing(version, {}, async (editor) => {
    const { session, result } = await ask(editor, 'thinker');
    assert.deepEqual(result, { stopReason: 'end_turn' });
    await same(editor, () => session.items, [{ kind: 'thought', text: 'hm, let me see' }, { kind: 'agent', text: 'It is noon.' }]);
  }));

  test(`${version}: tools in parallel`, () => editing(version, {}, async (editor) => {
    const { session } = await ask(editor, 'tools');
    await same(editor, () => kindsOf(session), ['tool', 'tool', 'agent']);
    const tools = [...session.tools.values()].map((t) => [t.title, t.kind, t.status, t.rawInput, t.content[0].content.text]);
    assert.deepEqual(tools, [['clock', 'other', 'completed', { zone: 'UTC' }, 'noon'], ['shell: ls', 'execute', 'completed', { command: 'ls' }, 'a\nb\n']]);
    await shows(editor, session, 'Done.');
    const loaded = await editor.load(session.id);
    await same(editor, () => kindsOf(loaded), ['user', 'tool', 'tool', 'agent']);
  }));

  test(`${version}: a status and a replaced text arrive when they are final`, () => editing(version, {}, async (editor) => {
    const status = await ask(editor, 'status');
    await shows(editor, status.session, 'On it.\n\nNow playing');
    const { session } = await ask(editor, 'replacing');
    await editor.until(() => textOf(session).endsWith('It is ten.'));
    await shows(editor, await editor.load(session.id), 'It is ten.');
  }));

  test(`${version}: approvals`, async () => {
    const asked = [];
    let choose = () => 'approve';
    await editing(version, { permission: async (p) => { asked.push(p); return selected(choose(p)); } }, async (editor) => {
      const { session, result } = await ask(editor, 'approval');
      assert.deepEqual(result, { stopReason: 'end_turn' });
      await shows(editor, session, 'I need to look. There is one file.');
      const [request] = asked;
      assert.deepEqual(request.options.map((o) => [o.optionId, o.kind]), [['approve', 'allow_once'], ['deny', 'reject_once']]);
      assert.deepEqual([...session.tools.keys()], [request.toolCall.toolCallId]);
      assert.equal(request.toolCall.title, 'shell: ls');
      choose = () => 'deny';
      const denied = await ask(editor, 'approval');
      await shows(editor, denied.session, "I need to look. Then I can't tell.");
      await same(editor, () => [...denied.session.tools.values()][0].status, 'failed');
      choose = (p) => (p.toolCall.title === 'one?' ? 'approve' : 'deny');
      const two = await ask(editor, 'approvals');
      await shows(editor, two.session, 'Two things. one approve, two deny');
      assert.equal(asked.length, 4);
    });
  });

  test(`${version}: an approval that another device gives`, async () => {
    let withdrawn;
    const waits = new Promise((resolve) => { withdrawn = resolve; });
    const asks = { asked: 0 };
    await editing(version, {
      permission: (p, signal) => {
        asks.asked++;
        asks.editor.changed();
        return new Promise((_, reject) => { signal?.addEventListener('abort', () => { withdrawn(); reject(new Error('withdrawn')); }); });
      },
    }, async (editor) => {
      asks.editor = editor;
      const session = await editor.open();
      await editor.connection.setMode({ sessionId: session.id, modeId: 'approval' });
      const prompted = editor.prompt(session, 'hello');
      await editor.until(() => asks.asked === 1);
      const { transcript } = await api(`/api/conversations/${session.id}/transcript`);
      const turn = transcript.turns.at(-1);
      await api(`/api/conversations/${session.id}/commands`, { type: 'answer', turn: turn.id, request: turn.requests[0].id, decision: 'approve' });
      assert.deepEqual(await prompted, { stopReason: 'end_turn' });
      if (isNew) await waits;
      await shows(editor, session, 'I need to look. There is one file.');
    });
  });

  test(`${version}: an agent that fails, and what is refused`, () => editing(version, {}, async (editor) => {
    const session = await editor.open();
    await editor.connection.setMode({ sessionId: session.id, modeId: 'failing' });
    await assert.rejects(editor.prompt(session, 'hello'), (e) => e.message === 'The model is busy.' && e.code === -32603);
    await shows(editor, session, 'so far');
    await assert.rejects(editor.connection.setMode({ sessionId: session.id, modeId: 'nobody' }), (e) => e.message === 'unknown agent "nobody"');
    await assert.rejects(editor.prompt({ id: 'nowhere' }, 'hello'), (e) => e.code === -32002);
    await assert.rejects(editor.load('nowhere'), (e) => e.code === -32002);
    await assert.rejects(editor.prompt(session, []), (e) => e.message === 'the prompt is empty');
  }));

  test(`${version}: stop`, () => editing(version, {}, async (editor) => {
    const session = await editor.open();
    await editor.connection.setMode({ sessionId: session.id, modeId: 'long' });
    const gate = crypto.randomUUID();
    const prompted = editor.prompt(session, gate);
    await editor.until(() => textOf(session) === longBefore);
    await editor.connection.cancel({ sessionId: session.id });
    assert.deepEqual(await prompted, { stopReason: 'cancelled' });
    await shows(editor, session, longBefore);
    const { transcript } = await api(`/api/conversations/${session.id}/transcript`);
    assert.equal(transcript.turns.at(-1).outcome, 'cancelled');
    await editor.connection.setMode({ sessionId: session.id, modeId: 'plain' });
    assert.deepEqual(await editor.prompt(session, 'again'), { stopReason: 'end_turn' });
  }));

  test(`${version}: a reload in the middle, in another editor`, async () => {
    const gate = crypto.randomUUID();
    let id;
    await editing(version, {}, async (editor) => {
      const session = await editor.open();
      id = session.id;
      await editor.connection.setMode({ sessionId: id, modeId: 'long' });
      editor.prompt(session, gate).catch(() => {}); // the program ends before its answer
      await editor.until(() => textOf(session) === longBefore);
    });
    await editing(version, {}, async (editor) => {
      const session = await editor.load(id);
      await editor.until(() => session.items[0]?.text === gate);
      await shows(editor, session, longBefore);
      await open(gate);
      await editor.until(() => textOf(session) === long);
      await open(`${gate}-end`);
      assert.equal(await visible(id), long);
    });
  });

  test(`${version}: two editors at once`, () => editing(version, {}, (one) => editing(version, {}, async (two) => {
    const session = await one.open();
    const other = await two.load(session.id);
    await one.connection.setMode({ sessionId: session.id, modeId: 'long' });
    const gate = crypto.randomUUID();
    const prompted = one.prompt(session, gate);
    await two.until(() => textOf(other) === longBefore);
    await open(gate);
    await open(`${gate}-end`);
    assert.deepEqual(await prompted, { stopReason: 'end_turn' });
    await two.until(() => textOf(other) === long);
    await shows(one, session, long);
    assert.deepEqual(kindsOf(other), ['user', 'agent']);
    assert.deepEqual(await two.prompt(other, 'from two'), { stopReason: 'end_turn' });
    await one.until(() => session.items.at(-1).text === 're: from two');
    assert.deepEqual(session.items.at(-2), { kind: 'user', text: 'from two' });
  })));

  test(`${version}: a question without a form is answered by the next prompt`, () => editing(version, {}, async (editor) => {
    const { session, result } = await ask(editor, 'client-tool');
    assert.deepEqual(result, { stopReason: 'end_turn' });
    await shows(editor, session, 'Where are you? \n\nthe agent is waiting for input getLocation');
    assert.deepEqual(await editor.prompt(session, 'home'), { stopReason: 'end_turn' });
    await editor.until(() => textOf(session).endsWith('You are at home.'));
    assert.equal(await visible(session.id), 'Where are you? You are at home.');
  }));
}

const version = versions.at(-1);

test('20 cuts', async () => {
  const proxy = await cuttingProxy(url);
  try {
    await editing(version, { base: proxy.base }, async (editor) => {
      const gate = crypto.randomUUID();
      const sessions = [];
      for (let i = 0; i < 4; i++) {
        const session = await editor.open();
        await editor.connection.setMode({ sessionId: session.id, modeId: 'long' });
        sessions.push(session);
      }
      // What arrives at once is one frame, which must fit through some of the connections.
      proxy.budget = () => 300 + Math.floor(Math.random() * 9000);
      proxy.reset();
      const prompted = sessions.map((s) => editor.prompt(s, gate).catch((e) => e));
      await open(gate);
      await editor.until(() => sessions.every((s) => textOf(s) === long));
      while (proxy.cuts < 20) {
        // What is complete is loaded again and again, through connections that break.
        const loaded = await editor.load(sessions[proxy.cuts % sessions.length].id).catch(() => undefined);
        if (loaded) await shows(editor, loaded, long);
      }
      proxy.budget = () => Infinity;
      await open(`${gate}-end`);
      await Promise.all(prompted);
      for (const s of sessions) await shows(editor, await editor.load(s.id), await visible(s.id));
    });
  } finally {
    proxy.close();
  }
  assert.ok(proxy.cuts >= 20);
});

test('a prompt whose request is given up stops its turn', () => editing(version, {}, async (editor) => {
  const session = await editor.open();
  await editor.connection.setOption({ sessionId: session.id, configId: 'agent', value: 'long' });
  const gate = crypto.randomUUID();
  const given = new AbortController();
  const prompted = editor.prompt(session, gate, { cancellationSignal: given.signal });
  await editor.until(() => textOf(session) === longBefore);
  given.abort();
  await prompted.catch(() => {});
  let turn;
  do { turn = (await api(`/api/conversations/${session.id}/transcript`)).transcript.turns.at(-1); } while (turn.state !== 'ended');
  assert.equal(turn.outcome, 'cancelled');
}));

test('a question as a form', async () => {
  const forms = [];
  await editing(version, { capabilities: { elicitation: { form: {} } }, form: async (p) => { forms.push(p); return { action: 'accept', content: { answer: 'home' } }; } }, async (editor) => {
    const { session, result } = await ask(editor, 'client-tool');
    assert.deepEqual(result, { stopReason: 'end_turn' });
    await shows(editor, session, 'Where are you? You are at home.');
    assert.equal(forms[0].requestedSchema.required[0], 'answer');
  });
});

test('files, links and embedded files', () => editing(version, {}, async (editor) => {
  const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const { session } = await ask(editor, 'files', [{ type: 'text', text: 'look at this' }, { type: 'image', data: picture, mimeType: 'image/png' }]);
  await same(editor, () => session.items, [{ kind: 'agent', content: { type: 'image', data: picture, mimeType: 'image/png' } }]);
  const loaded = await editor.load(session.id);
  await same(editor, () => loaded.items.slice(0, 2), [{ kind: 'user', text: 'look at this' }, { kind: 'user', content: { type: 'image', data: picture, mimeType: 'image/png' } }]);
  const other = await ask(editor, 'plain', [
    { type: 'text', text: 'compare ' }, { type: 'resource_link', name: 'a.go', uri: 'file:///home/ann/a.go' }, { type: 'text', text: ' with ' },
    { type: 'resource', resource: { uri: 'file:///home/ann/b.go', mimeType: 'text/plain', text: 'package b\n' } },
  ]);
  await shows(editor, other.session, 're: compare [@a.go](file:///home/ann/a.go) with [@b.go](file:///home/ann/b.go)\n\n/home/ann/b.go:\n```\npackage b\n```');
}));

test('closing a session stops its prompt, and it can be loaded again', () => editing(version, {}, async (editor) => {
  assert.deepEqual(editor.hello.agentCapabilities.sessionCapabilities.close, {});
  const session = await editor.open();
  await editor.connection.setMode({ sessionId: session.id, modeId: 'long' });
  const prompted = editor.prompt(session, crypto.randomUUID());
  await editor.until(() => textOf(session) === longBefore);
  await editor.connection.closeSession({ sessionId: session.id });
  assert.deepEqual(await prompted, { stopReason: 'cancelled' });
  const { transcript } = await api(`/api/conversations/${session.id}/transcript`);
  assert.equal(transcript.turns.at(-1).outcome, 'cancelled');
  await assert.rejects(editor.prompt(session, 'hello'), (e) => e.code === -32002);
  const loaded = await editor.load(session.id);
  await shows(editor, loaded, longBefore);
}));

test('the list of sessions, and sessions without their history', () => editing(version, { args: ['--agent', 'thinker'] }, async (editor) => {
  const session = await editor.open();
  assert.equal(session.opened.configOptions[0].currentValue, 'thinker');
  await editor.prompt(session, 'a title');
  await editor.until(() => session.titles.includes('a title'));
  const { sessions } = await editor.connection.listSessions({ cwd: '/home/ann/project' });
  const listed = sessions.find((s) => s.sessionId === session.id);
  assert.deepEqual([listed.title, listed.cwd], ['a title', '/home/ann/project']);
  const elsewhere = await editor.connection.listSessions({ cwd: '/home/ann/other' });
  assert.equal(elsewhere.sessions.some((s) => s.sessionId === session.id), false);
  session.items = [];
  await editor.connection.resumeSession({ sessionId: session.id, cwd: '/home/ann/project', mcpServers: [] });
  await same(editor, () => session.items, []);
  assert.deepEqual(await editor.prompt(session, 'again'), { stopReason: 'end_turn' });
  await same(editor, () => kindsOf(session), ['thought', 'agent']);
  await editor.connection.deleteSession({ sessionId: session.id });
  const after = await editor.connection.listSessions({ cwd: '/home/ann/project' });
  assert.equal(after.sessions.some((s) => s.sessionId === session.id), false);
}));

test('a wrong token, and no gateway', async () => {
  await editing(version, { secret: 'wrong' }, (editor) => assert.rejects(editor.open(), (e) => e.code === -32000 && /rejected the token/.test(e.message)));
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address();
  closed.close();
  await once(closed, 'close');
  await editing(version, { base: `http://127.0.0.1:${port}` }, (editor) => assert.rejects(editor.open(), /no gateway answers at/));
});
