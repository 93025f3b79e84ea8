// The clients of Agent2Agent against the gateway at LEAT_URL. ../a2a_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newClient, open, token, url } from './a2a-client.js';

const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');
const longBefore = Array.from({ length: 20 }, (_, i) => word(i)).join(''); // up to the gate
const rpc = async (method, params, agent = 'plain') => (await fetch(`${url}/a2a/${agent}`, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) })).json();

// until returns a function for a stream that resolves the promise when a condition holds.
function until(condition) {
  let resolve;
  const reached = new Promise((r) => { resolve = r; });
  return { reached, on: (t) => { if (condition(t)) resolve(t); } };
}

for (const version of ['0.3', '1.0']) {
  test(`${version}: plain`, async () => {
    const client = await newClient(version, 'plain');
    const t = await client.send('hello');
    assert.deepEqual([t.state, t.text], ['completed', 're: hello']);
    const streamed = await client.stream('again', { context: t.context });
    assert.deepEqual([streamed.state, streamed.text, streamed.context], ['completed', 're: again', t.context]);
    const got = await client.get(t.id);
    assert.deepEqual([got.state, got.text, got.context], ['completed', 're: hello', t.context]);
  });

  test(`${version}: the same message again`, async () => {
    const client = await newClient(version, 'plain');
    const o = { id: crypto.randomUUID(), context: `chosen ${crypto.randomUUID()}` };
    const first = await client.send('hello', o);
    const again = await client.send('hello', o);
    assert.deepEqual([again.id, again.text, again.context], [first.id, 're: hello', o.context]);
    assert.equal((await client.get(first.id)).context, o.context);
  });

  test(`${version}: tools, reasoning, a status and replaced text`, async () => {
    for (const [agent, text] of [['tools', 'Done.'], ['thinker', 'It is noon.'], ['status', 'On it.\n\nNow playing'], ['replacing', 'It is ten.']]) {
      const t = await (await newClient(version, agent)).stream('hello');
      assert.deepEqual([t.state, t.text], ['completed', text]);
    }
  });

  test(`${version}: an approval, answered by the next message`, async () => {
    const client = await newClient(version, 'approval');
    const t = await client.stream('hello');
    assert.deepEqual([t.state, t.text, t.message], ['input-required', 'I need to look. ', 'Run ls?']);
    assert.equal((await client.get(t.id)).state, 'input-required');
    const done = await client.stream('approve', { task: t.id, context: t.context });
    assert.deepEqual([done.id, done.state, done.text], [t.id, 'completed', 'I need to look. There is one file.']);
    await assert.rejects(client.send('approve', { task: t.id }), /wait for a message|not supported/);
    const other = await client.send('hello');
    const denied = await client.send([version === '1.0' ? { content: { $case: 'data', value: { approved: false } } } : { kind: 'data', data: { approved: false } }], { task: other.id });
    assert.equal(denied.text, "I need to look. Then I can't tell.");
  });

  test(`${version}: an agent that fails`, async () => {
    const t = await (await newClient(version, 'failing')).send('hello');
    assert.deepEqual([t.state, t.text, t.message], ['failed', 'so far', 'The model is busy.']);
  });

  test(`${version}: cancel`, async () => {
    const client = await newClient(version, 'long');
    const gate = crypto.randomUUID();
    const seen = until((t) => t.text === longBefore);
    const streamed = client.stream(gate, {}, seen.on);
    const { id } = await seen.reached;
    assert.equal((await client.cancel(id)).state, 'canceled');
    assert.deepEqual([(await streamed).state, (await streamed).text], ['canceled', longBefore]);
    await assert.rejects(client.cancel(id));
  });

  test(`${version}: a client that disconnects, and subscribes again`, async () => {
    const client = await newClient(version, 'long');
    const gate = crypto.randomUUID();
    let id;
    await assert.rejects(client.stream(gate, {}, (t) => { if (t.text === longBefore) { id = t.id; throw new Error('closed'); } }), /closed/);
    const one = until((t) => t.text === longBefore);
    const two = until((t) => t.text === longBefore);
    const first = client.subscribe(id, one.on);
    const second = client.subscribe(id, two.on);
    await one.reached;
    await two.reached;
    await open(gate);
    await open(`${gate}-end`);
    for (const t of [await first, await second, await client.get(id)]) assert.deepEqual([t.state, t.text], ['completed', long]);
    await assert.rejects(client.subscribe(id), /has ended|not supported/);
  });

  test(`${version}: 20 cuts`, async () => {
    let budget = Infinity;
    const client = await newClient(version, 'long', {
      fetch: async (...args) => {
        const response = await fetch(...args);
        if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
        let left = budget;
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
      },
    });
    const gate = crypto.randomUUID();
    const random = (n) => 1 + Math.floor(Math.random() * n);
    const begun = await client.send(gate, { configuration: version === '1.0' ? { returnImmediately: true } : { blocking: false } });
    await open(gate);
    let cuts = 0;
    while (cuts < 20) {
      budget = random(3000); // the task alone has more in the end
      await client.subscribe(begun.id).catch(() => { cuts++; });
    }
    budget = Infinity;
    const rest = client.subscribe(begun.id).catch(() => client.get(begun.id)); // it may have ended before
    await open(`${gate}-end`);
    const t = await rest;
    assert.deepEqual([t.state, t.text], ['completed', long]);
  });
}

test('files and data', async () => {
  const t = await (await newClient('1.0', 'files')).stream([{ content: { $case: 'text', value: 'look' } }, { content: { $case: 'raw', value: Buffer.from('hi') }, mediaType: 'image/png', filename: 'a.png' }]);
  assert.deepEqual(t.files.map((a) => a.parts[0].content.$case), ['raw', 'data']);
  assert.equal(t.files[0].parts[0].mediaType, 'image/png');
  assert.deepEqual(t.files[1].parts[0].content.value, { chart: [1, 2] });
});

test('lists, and what is refused', async () => {
  const client = await newClient('1.0', 'plain');
  const first = await client.send('one');
  await client.send('two', { context: first.context });
  const page = (await rpc('ListTasks', { contextId: first.context, pageSize: 1, includeArtifacts: true })).result;
  assert.deepEqual([page.totalSize, page.tasks[0].artifacts[0].parts[0].text], [2, 're: two']);
  const next = (await rpc('ListTasks', { contextId: first.context, pageToken: page.nextPageToken })).result;
  assert.deepEqual([next.tasks.map((t) => t.id), next.nextPageToken], [[first.id], '']);
  for (const [method, params, code] of [
    ['ListTasks', {}, -32602], ['GetTask', { id: 'nothing' }, -32001], ['CancelTask', { id: first.id }, -32002], ['CreateTaskPushNotificationConfig', {}, -32003],
    ['GetExtendedAgentCard', {}, -32004], ['NoMethod', {}, -32601], ['SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{}] } }, -32005],
    ['SendMessage', { message: { role: 'ROLE_USER', parts: [{ text: 'x' }] } }, -32602],
  ]) assert.equal((await rpc(method, params)).error?.code, code, method);
  assert.equal((await rpc('GetTask', { id: first.id }, 'nobody')).error.code, -32602);
  await assert.rejects(newClient('1.0', 'nobody'));
  await assert.rejects(newClient('1.0', 'plain', { secret: 'wrong' }));
  const card = await (await fetch(`${url}/.well-known/agent-card.json`, { headers: { Authorization: `Bearer ${token}` } })).json();
  assert.deepEqual([card.name, card.supportedInterfaces[0].url, card.capabilities], ['plain', `${url}/a2a/plain`, { streaming: true, pushNotifications: false, extendedAgentCard: false }]);
});
