// An editor on the SDKs of the Agent Client Protocol, as acp.test.js drives it: it starts the program as its agent and keeps what it would show.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import * as acp0 from 'acp-0';
import * as acp2 from '@agentclientprotocol/sdk';

const { LEAT_BINARY: binary, LEAT_URL: url, LEAT_TOKEN: token } = process.env;

// connect returns the methods of a connection with one of the SDKs. on has permission, form and update.
const sdks = {
  '0.4.5': (stream, on) => {
    const c = new acp0.ClientSideConnection(() => ({
      requestPermission: on.permission, sessionUpdate: on.update,
      readTextFile() { throw new Error('not offered'); }, writeTextFile() { throw new Error('not offered'); },
    }), stream);
    return {
      initialize: (p) => c.initialize(p), newSession: (p) => c.newSession(p), loadSession: (p) => c.loadSession(p),
      prompt: (p) => c.prompt(p), cancel: (p) => c.cancel(p), setMode: (p) => c.setSessionMode(p),
    };
  },
  '2.4.0': (stream, on) => {
    const { agent, client } = acp2.methods;
    const { agent: c } = acp2.client({ name: 'editor' })
      .onRequest(client.session.requestPermission, (ctx) => on.permission(ctx.params, ctx.signal))
      .onRequest(client.elicitation.create, (ctx) => on.form(ctx.params, ctx.signal))
      .onNotification(client.session.update, (ctx) => on.update(ctx.params))
      .connect(stream);
    const request = (method) => (p, options) => c.request(method, p, options);
    return {
      initialize: request(agent.initialize), newSession: request(agent.session.new), loadSession: request(agent.session.load),
      resumeSession: request(agent.session.resume), listSessions: request(agent.session.list), deleteSession: request(agent.session.delete), closeSession: request(agent.session.close),
      prompt: request(agent.session.prompt), cancel: (p) => c.notify(agent.session.cancel, p),
      setMode: request(agent.session.setMode), setOption: request(agent.session.setConfigOption),
    };
  },
};
export const versions = Object.keys(sdks);

// start starts the program and initializes the connection. permission and form decide about the agent's questions.
export async function start(version, { base = url, secret = token, args = [], capabilities = {}, permission, form } = {}) {
  const child = spawn(binary, ['acp', '--url', base, ...args], { env: { ...process.env, LEAT_API_TOKEN: secret }, stdio: ['pipe', 'pipe', 'pipe'] });
  const editor = { child, log: '', sessions: new Map() };
  child.stderr.on('data', (b) => { editor.log += b; });
  // Everything on the output must be JSON-RPC.
  let line = '';
  let isClosed = false; // by the SDK, which ends a connection that had an error
  const stdout = child.stdout.setEncoding('utf8');
  const lines = new ReadableStream({
    cancel() { isClosed = true; },
    start(controller) {
      stdout.on('data', (s) => {
        const all = (line + s).split('\n');
        line = all.pop();
        for (const l of all) assert.equal(JSON.parse(l).jsonrpc, '2.0');
        if (!isClosed) controller.enqueue(new TextEncoder().encode(s));
      });
      stdout.on('end', () => { if (!isClosed) controller.close(); });
    },
  });
  const watchers = new Set();
  const changed = () => { for (const w of watchers) w(); };
  editor.changed = changed;
  editor.until = (condition) => new Promise((resolve) => {
    const busy = setInterval(() => {}, 60_000); // keeps Node running
    const check = () => { if (condition()) { watchers.delete(check); clearInterval(busy); resolve(); } };
    watchers.add(check);
    check();
  });
  const { ndJsonStream } = version === '0.4.5' ? acp0 : acp2;
  const c = sdks[version](ndJsonStream(Writable.toWeb(child.stdin), lines), {
    permission, form,
    update: ({ sessionId, update }) => { apply(editor.session(sessionId), update); changed(); },
  });
  editor.connection = c;
  editor.session = (id) => {
    if (!editor.sessions.has(id)) editor.sessions.set(id, { id, items: [], tools: new Map(), titles: [], plans: [], choices: [] });
    return editor.sessions.get(id);
  };
  editor.open = async (params = {}) => {
    const opened = await c.newSession({ cwd: '/home/ann/project', mcpServers: [], ...params });
    return Object.assign(editor.session(opened.sessionId), { opened });
  };
  editor.load = async (id) => {
    editor.sessions.delete(id);
    const session = editor.session(id);
    session.opened = await c.loadSession({ sessionId: id, cwd: '/home/ann/project', mcpServers: [] });
    return session;
  };
  editor.prompt = (session, text, options) => {
    const prompt = typeof text === 'string' ? [{ type: 'text', text }] : text;
    return c.prompt({ sessionId: session.id, prompt }, options);
  };
  // end closes the input of the program, as an editor does that is closed.
  editor.end = async () => {
    if (child.exitCode !== null) return child.exitCode;
    const exit = once(child, 'exit');
    child.stdin.end();
    const [code] = await exit;
    return code;
  };
  editor.hello = await c.initialize({ protocolVersion: 1, ...(version !== '0.4.5' && { clientInfo: { name: 'editor', version: '1' } }), clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false, ...capabilities } });
  return editor;
}

// apply does what an editor does with an update: chunks of the same kind follow each other in one item.
function apply(session, u) {
  const kinds = { user_message_chunk: 'user', agent_message_chunk: 'agent', agent_thought_chunk: 'thought' };
  const kind = kinds[u.sessionUpdate];
  if (kind) {
    const last = session.items.at(-1);
    if (u.content.type !== 'text') session.items.push({ kind, content: u.content });
    else if (last?.kind === kind && last.text !== undefined) last.text += u.content.text;
    else session.items.push({ kind, text: u.content.text });
  } else if (u.sessionUpdate === 'tool_call') {
    assert.equal(session.tools.has(u.toolCallId), false, 'a tool call begins once');
    session.tools.set(u.toolCallId, { ...u });
    session.items.push({ kind: 'tool', id: u.toolCallId });
  } else if (u.sessionUpdate === 'tool_call_update') {
    assert.ok(session.tools.has(u.toolCallId), 'an update of a known tool');
    Object.assign(session.tools.get(u.toolCallId), u);
  } else if (u.sessionUpdate === 'session_info_update') session.titles.push(u.title);
  else if (u.sessionUpdate === 'plan') session.plans.push(u.entries);
  else session.choices.push(u);
}

// textOf is the text of the agent after the last message of the user.
export const textOf = (session) => session.items.filter((i) => i.kind === 'agent').map((i) => i.text ?? '').join('');

// visible is the text that the gateway has of the agent's answers in a conversation.
export async function visible(id, base = url) {
  const response = await fetch(`${base}/api/conversations/${id}/transcript`, { headers: { Authorization: `Bearer ${token}` } });
  const { transcript } = await response.json();
  let text = '';
  for (const m of transcript.messages.filter((m) => m.role === 'assistant')) {
    let own = '';
    for (const p of m.parts ?? []) if ((p.kind === 'text' || p.kind === 'status') && p.text) own += (own ? p.join ?? '' : '') + p.text;
    if (own) text += (text ? '\n\n' : '') + own;
  }
  return text;
}
