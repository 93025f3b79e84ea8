// The AI SDK of Vercel while the gateway is killed and started again. LEAT_BINARY is the program; ../vercel_kill_test.go runs this.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { newChat, textOf, token } from './vercel-chat.js';

const { LEAT_BINARY: binary, LEAT_FOLDER: folder } = process.env;

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

const base = `http://127.0.0.1:${await freePort()}`;
const headers = { Authorization: `Bearer ${token}` };
let program;

// The agent slow writes something and then nothing more.
const script = join(folder, 'slow.sh');
await writeFile(script, `echo '{"type":"chunk","text":"first"}'\nexec sleep 1000\n`);

// start starts the gateway and waits until it is ready.
async function start(env) {
  program = spawn(binary, ['serve', '--listen', base.slice('http://'.length), '--data', join(folder, 'data'), '--agent', `slow=exec:sh ${script}`], {
    env: { ...process.env, LEAT_API_TOKEN: token, LEAT_LEASE: '10m', ...env }, stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (;;) {
    const ready = await fetch(`${base}/readyz`).catch(() => undefined);
    await ready?.arrayBuffer();
    if (ready?.ok) return;
    assert.equal(program.exitCode, null, 'the gateway has exited');
    await delay(20); // polls another process
  }
}

async function end(signal) {
  const exit = once(program, 'exit');
  program.kill(signal);
  await exit;
}

after(() => end('SIGTERM'));

// ask makes a request and returns its response, whose body was read.
async function ask(path, options = {}) {
  const response = await fetch(base + path, { ...options, headers: { ...headers, ...options.headers } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const stored = async (chat) => JSON.parse((await ask(`/api/chat/${chat.id}`)).text);

await start();

for (const version of [7, 6, 5]) {
  const api = `${base}/api/chat?sdk=${version}`;

  test(`ai ${version}: a turn whose agent continues after a kill`, async () => {
    const { id } = JSON.parse((await ask('/api/conversations', { method: 'POST', body: '{}' })).text).conversation;
    const line = (text) => `${JSON.stringify({ type: 'chunk', text })}\n`;
    const first = line('first ') + line('zweites, größer ');
    const pushed = await ask(`/api/conversations/${id}/turns?dialect=eliza-actions`, { method: 'POST', body: first });
    assert.equal(pushed.status, 201);
    const ingest = pushed.headers.get('location');
    const chat = newChat(version, { id, api });
    const resumed = chat.resumeStream();
    await chat.until((c) => textOf(c.lastMessage) === 'first zweites, größer ');
    await end('SIGKILL');
    await resumed;
    assert.equal(chat.status, 'error'); // never a complete answer
    await start();
    const again = chat.resumeStream();
    await chat.until((c) => c.status === 'streaming' && textOf(c.lastMessage) === 'first zweites, größer ');
    const offset = (await ask(ingest, { method: 'HEAD' })).headers.get('upload-offset');
    assert.equal(Number(offset), Buffer.byteLength(first));
    const rest = await ask(ingest, { method: 'PATCH', headers: { 'Upload-Offset': offset }, body: `${line('third')}{"type":"done"}\n` });
    assert.equal(rest.status, 200, rest.text);
    await again;
    assert.equal(chat.status, 'ready');
    assert.equal(chat.messages.length, 1);
    assert.equal(textOf(chat.lastMessage), 'first zweites, größer third');
    assert.equal(textOf((await stored(chat))[0]), textOf(chat.lastMessage));
  });

  test(`ai ${version}: a turn whose agent can't continue`, async () => {
    const chat = newChat(version, { agent: 'slow', api });
    const sent = chat.sendMessage({ text: 'hello' });
    await chat.until((c) => textOf(c.lastMessage) === 'first');
    await end('SIGKILL');
    await sent;
    assert.equal(chat.status, 'error');
    await start();
    await chat.resumeStream(); // 204: the turn has ended as interrupted
    assert.deepEqual((await stored(chat)).map((m) => [m.id, textOf(m)]), chat.messages.map((m) => [m.id, textOf(m)]));
    const repeated = chat.regenerate();
    await chat.until((c) => c.status === 'streaming' && textOf(c.lastMessage) === 'first');
    assert.equal((await ask(`/api/chat/${chat.id}/stream`, { method: 'DELETE' })).status, 204);
    await repeated;
    assert.equal(chat.status, 'ready');
    assert.equal(chat.messages.length, 2);
  });
}

test('the switch of the output', async () => {
  const routes = [['POST', '/api/chat', 400], ['GET', '/api/chat/none/stream', 204], ['DELETE', '/api/chat/none/stream', 404]];
  const statuses = async () => Promise.all(routes.map(async ([method, path]) => (await ask(path, { method, ...(method === 'POST' && { body: '{}' }) })).status));
  assert.deepEqual(await statuses(), routes.map(([,, status]) => status));
  await end('SIGTERM');
  await start({ LEAT_OUTPUTS_VERCEL: 'false' });
  assert.deepEqual(await statuses(), [404, 404, 404]);
});
