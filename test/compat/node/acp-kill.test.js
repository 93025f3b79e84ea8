// An editor with `leat acp` while the gateway is killed and started again. ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { start as edit, textOf, versions, visible } from './acp-editor.js';
import { base, end, push, start } from './program.js';

test('a gateway that is killed', async () => {
  await start();
  const editor = await edit(versions.at(-1), { base });
  try {
    // A turn whose agent continues after a kill.
    const { id, rest } = await push(['first ', 'zweites, größer ']);
    const session = await editor.load(id);
    await editor.until(() => textOf(session) === 'first zweites, größer ');
    await end('SIGKILL');
    await start();
    await rest('third');
    await editor.until(() => textOf(session) === 'first zweites, größer third');
    assert.equal(await visible(id, base), textOf(session));

    // A turn whose agent can't continue.
    const other = await editor.open();
    const prompted = editor.prompt(other, 'hello').catch((e) => e);
    await editor.until(() => textOf(other) === 'first');
    await end('SIGKILL');
    await start();
    assert.match((await prompted).message, /restarted/);
    assert.equal(textOf(other), 'first');

    // A prompt while there is no gateway is sent when it is back.
    await end('SIGKILL');
    const late = editor.prompt(other, 'again').catch((e) => e);
    await start();
    await editor.until(() => textOf(other) === 'firstfirst');
    await editor.connection.cancel({ sessionId: other.id });
    assert.deepEqual(await late, { stopReason: 'cancelled' });
    assert.equal(await visible(other.id, base), 'first\n\nfirst');
  } finally {
    assert.equal(await editor.end(), 0, editor.log);
    await end('SIGTERM');
  }
});
