// The AI SDK of Vercel while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, base, end, push, start } from './program.js';
import { newChat, textOf } from './vercel-chat.js';

after(() => end('SIGTERM'));

const stored = async (chat) => JSON.parse((await ask(`/api/chat/${chat.id}`)).text);

await start();

for (const version of [7, 6, 5]) {
  const api = `${base}/api/chat?sdk=${version}`;

  test(`ai ${version}: a turn whose agent continues after a kill`, async () => {
    const { id, rest } = await push(['first ', 'zweites, größer ']);
    const chat = newChat(version, { id, api });
    const resumed = chat.resumeStream();
    await chat.until((c) => textOf(c.lastMessage) === 'first zweites, größer ');
    await end('SIGKILL');
    await resumed;
    assert.equal(chat.status, 'error'); // never a complete answer
    await start();
    const again = chat.resumeStream();
    await chat.until((c) => c.status === 'streaming' && textOf(c.lastMessage) === 'first zweites, größer ');
    await rest('third');
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
