// A client of the Model Context Protocol with `leat mcp` while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { using } from './mcp-client.js';
import { ask, base, end, push, start } from './program.js';

async function turns(id) {
  return JSON.parse((await ask(`/api/conversations/${id}/transcript`)).text).transcript.turns;
}

test('a gateway that is killed', async () => {
  await start();
  try {
    await using(async (call) => {
      // A question that waits behind a turn whose agent continues after a kill.
      const { id, rest } = await push(['first ', 'zweites, größer ']);
      const queued = call('ask', { text: 'hello', agent: 'slow', conversation: id });
      while ((await turns(id)).length < 2); // until it is stored
      await end('SIGKILL');
      await start();
      await rest('third');
      let running;
      do { running = (await turns(id))[1]; } while (running.state === 'queued');
      assert.deepEqual((await call('stop', { conversation: id })).stopped, [running.id]);
      assert.deepEqual((({ state, turn }) => [state, turn])(await queued), ['cancelled', running.id]);

      // A turn whose agent can't continue.
      let seen;
      const reported = new Promise((resolve) => { seen = resolve; });
      const other = call('ask', { text: 'hello', agent: 'slow' }, { onprogress: seen });
      assert.equal((await reported).message, 'first');
      await end('SIGKILL');
      await start();
      const { state, text, isError, error, conversation } = await other;
      assert.deepEqual([state, text, isError], ['interrupted', 'first', true]);
      assert.match(error, /restarted/);

      // A question while there is no gateway is sent when it is back, once.
      await end('SIGKILL');
      const late = call('ask', { text: 'again', agent: 'slow', conversation, wait_seconds: 60 });
      await start();
      let all;
      do { all = await turns(conversation); } while (all.length < 2 || all[1].state === 'queued');
      await call('stop', { conversation });
      assert.equal((await late).state, 'cancelled');
      assert.equal((await turns(conversation)).length, 2);
    }, { base });
  } finally {
    await end('SIGTERM');
  }
});
