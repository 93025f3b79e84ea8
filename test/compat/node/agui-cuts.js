// The clients of AG-UI while their connections are cut. It is a program without a test runner: a client whose connection breaks rejects twice, the
// second rejection reaches nobody, and a runner takes it for a failure. ../agui_test.go runs it.
import assert from 'node:assert/strict';
import { generations, newAgent, open, stored, textOf } from './agui-agent.js';

process.on('unhandledRejection', (e) => { if (e.message !== 'network error') throw e; });
console.error = () => {}; // the client's own report of each broken connection

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');

// cutting returns a fetch whose responses break after a number of bytes.
function cutting(budget) {
  return async (...args) => {
    const response = await fetch(...args);
    if (response.status !== 200) return response;
    let left = budget();
    const reader = response.body.getReader();
    const body = new ReadableStream({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) { controller.close(); return; }
        if (value.length > left) {
          controller.enqueue(value.subarray(0, left));
          await reader.cancel();
          controller.error(new TypeError('network error'));
          return;
        }
        left -= value.length;
        controller.enqueue(value);
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

for (const version of Object.keys(generations)) {
  const gate = crypto.randomUUID();
  let budget = 1 + Math.floor(Math.random() * 1500); // bytes until the connection is cut
  const agent = newAgent(version, { agent: 'long', fetch: cutting(() => budget) });
  await open(gate); // the agent writes more than any budget, and then waits
  await agent.ask(gate);
  while (agent.ends.length < 20) {
    budget = 1 + Math.floor(Math.random() * 1500); // the snapshot alone has more in the end
    await agent.go();
  }
  assert.deepEqual(agent.ends.filter((e) => !e.startsWith('broken')), []);
  budget = Infinity;
  const resumed = agent.go();
  await agent.until((a) => textOf(a.messages) === long);
  await open(`${gate}-end`);
  await resumed;
  assert.equal(agent.ends.at(-1), 'success');
  assert.deepEqual(JSON.parse(JSON.stringify(agent.messages)), JSON.parse(JSON.stringify(await stored(agent))));
  console.log(`${version}: ${agent.ends.length - 1} cuts`);
}
