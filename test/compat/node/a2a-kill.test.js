// A client of Agent2Agent while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newClient } from './a2a-client.js';
import { ask, base, end, push, start } from './program.js';

test('a gateway that is killed', async () => {
  await start();
  try {
    // A turn whose agent continues after a kill.
    const { id, rest } = await push(['first ', 'zweites, größer ']);
    const turn = JSON.parse((await ask(`/api/conversations/${id}/transcript`)).text).transcript.turns[0].id;
    const client = await newClient('1.0', 'slow', { base });
    let seen;
    const reached = new Promise((resolve) => { seen = resolve; });
    const cut = client.subscribe(turn, (t) => { if (t.text === 'first zweites, größer ') seen(); }).then(() => 'ended', () => 'broken');
    await reached;
    await end('SIGKILL');
    assert.equal(await cut, 'broken');
    await start();
    const resumed = client.subscribe(turn).catch(() => client.get(turn)); // it may have ended before
    await rest('third');
    const t = await resumed;
    assert.deepEqual([t.state, t.text], ['completed', 'first zweites, größer third']);

    // A turn whose agent can't continue.
    let id2;
    const begun = new Promise((resolve) => { seen = resolve; });
    const other = client.stream('hello', {}, (u) => { if (u.text === 'first') { id2 = u.id; seen(); } }).then(() => 'ended', () => 'broken');
    await begun;
    await end('SIGKILL');
    assert.equal(await other, 'broken');
    await start({ LEAT_OUTPUTS_A2A: 'true' });
    let ended;
    do { ended = await client.get(id2); } while (ended.state === 'working'); // the gateway is still ending what it can't continue
    assert.deepEqual([ended.state, ended.text], ['failed', 'first']);
    await end('SIGTERM');

    // The switch of the output.
    await start({ LEAT_OUTPUTS_A2A: 'false' });
    assert.equal((await ask('/.well-known/agent-card.json')).status, 404);
  } finally {
    await end('SIGTERM');
  }
});
