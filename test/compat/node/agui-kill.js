// A client of AG-UI while the gateway is killed and started again. It is a program without a test runner, for the reason in agui-cuts.js.
// ../kill_test.go runs it.
import assert from 'node:assert/strict';
import { newAgent, stored, textOf } from './agui-agent.js';
import { ask, base, end, push, start } from './program.js';

process.on('unhandledRejection', (e) => { if (e.message !== 'terminated') throw e; });
console.error = () => {}; // the client's own report of each broken connection

await start();
try {
  // A turn whose agent continues after a kill.
  const { id, rest } = await push(['first ', 'zweites, größer ']);
  const agent = newAgent('1.0.0', { thread: id, base, agent: 'slow' });
  const joined = agent.go();
  await agent.until((a) => textOf(a.messages) === 'first zweites, größer ');
  await end('SIGKILL');
  await joined;
  assert.match(agent.ends.at(-1), /^broken/);
  await start();
  const again = agent.go();
  await rest('third');
  await again;
  assert.equal(agent.ends.at(-1), 'success');
  assert.equal(textOf(agent.messages), 'first zweites, größer third');
  assert.equal(textOf(await stored(agent, base)), textOf(agent.messages));

  // A turn whose agent can't continue. The message is answered anew.
  const other = newAgent('1.0.0', { agent: 'slow', base });
  const sent = other.ask('hello');
  await other.until((a) => textOf(a.messages) === 'first');
  await end('SIGKILL');
  await sent;
  assert.match(other.ends.at(-1), /^broken/);
  await start({ LEAT_DRAIN: '1s' });
  await other.go();
  // Also if nothing runs any more, the client learns that the answer isn't complete.
  assert.match(other.ends.at(-1), /^error: the gateway was restarted/);
  assert.equal(textOf(other.messages), 'first');
  other.setMessages(other.messages.slice(0, 1));
  const repeated = other.go();
  await other.until((a) => textOf(a.messages) === 'first');

  // The gateway is stopped in order. The client gets an error and no broken connection.
  await end('SIGTERM');
  await repeated;
  assert.match(other.ends.at(-1), /^error: the gateway was stopped/);

  // The switch of the output.
  await start({ LEAT_OUTPUTS_AGUI: 'false' });
  assert.equal((await ask('/agui/info')).status, 404);
} finally {
  await end('SIGTERM');
}
