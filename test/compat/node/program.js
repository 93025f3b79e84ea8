// The program itself, LEAT_BINARY, with an agent that writes something and then nothing more.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const { LEAT_BINARY: binary, LEAT_FOLDER: folder, LEAT_TOKEN: token } = process.env;

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export const base = `http://127.0.0.1:${await freePort()}`;
const headers = { Authorization: `Bearer ${token}` };
let program;

const script = join(folder, 'slow.sh');
await writeFile(script, `echo '{"type":"chunk","text":"first"}'\nexec sleep 1000\n`);

// start starts the gateway and waits until it is ready.
export async function start(env) {
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

export async function end(signal) {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const exit = once(program, 'exit');
  program.kill(signal);
  await exit;
}

// ask makes a request and returns its response, whose body was read.
export async function ask(path, options = {}) {
  const response = await fetch(base + path, { ...options, headers: { ...headers, ...options.headers } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

// push returns the id of a conversation with a turn whose agent has pushed texts, and a function that pushes the rest.
export async function push(texts) {
  const { id } = JSON.parse((await ask('/api/conversations', { method: 'POST', body: '{}' })).text).conversation;
  const first = texts.map((text) => `${JSON.stringify({ type: 'chunk', text })}\n`).join('');
  const pushed = await ask(`/api/conversations/${id}/turns?dialect=eliza-actions`, { method: 'POST', body: first });
  assert.equal(pushed.status, 201);
  const ingest = pushed.headers.get('location');
  const rest = async (text) => {
    const offset = (await ask(ingest, { method: 'HEAD' })).headers.get('upload-offset');
    assert.equal(Number(offset), Buffer.byteLength(first));
    const body = `${JSON.stringify({ type: 'chunk', text })}\n{"type":"done"}\n`;
    const response = await ask(ingest, { method: 'PATCH', headers: { 'Upload-Offset': offset }, body });
    assert.equal(response.status, 200, response.text);
  };
  return { id, rest };
}
