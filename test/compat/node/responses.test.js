// The official clients of OpenAI's Responses API for Node against the gateway at LEAT_URL. ../responses_server_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';

const { LEAT_URL: url, LEAT_TOKEN: apiKey, LEAT_GATES: gates } = process.env;
const open = (gate) => fetch(`${gates}/${gate}`, { method: 'POST' });
const word = (i) => `word${'ö'.repeat(i % 7)} 🌍\n`;
const long = Array.from({ length: 200 }, (_, i) => word(i)).join('');

// stored is the visible text of a conversation's last message, as the Eliza chat has it.
async function stored(response) {
  const id = response.conversation.id.slice('conv_'.length);
  const r = await fetch(`${url}/api/conversations/${id}/messages`, { headers: { 'x-api-key': apiKey } });
  assert.equal(r.status, 200);
  return (await r.json()).messages.at(-1).text;
}

for (const [name, OpenAI] of Object.entries({ 'openai 6.49.0': OpenAI6, 'openai 7.55.0': OpenAI7 })) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

  const collect = async (stream, onEvent = () => {}) => {
    const events = [];
    for await (const e of stream) { events.push(e); await onEvent(e); }
    return events;
  };
  const deltas = (events) => events.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');

  test(`${name}: plain, and the next turn`, async () => {
    const r = await client.responses.create({ model: 'plain', input: 'hi', metadata: { k: 'v' } });
    assert.equal(r.status, 'completed');
    assert.equal(r.output_text, 're: hi');
    assert.equal(r.model, 'plain');
    assert.deepEqual(r.metadata, { k: 'v' });
    const stream = client.responses.stream({ model: 'plain', input: 'again', previous_response_id: r.id });
    let text = '';
    stream.on('response.output_text.delta', (e) => { text += e.delta; });
    const final = await stream.finalResponse();
    assert.equal(text, 're: again');
    assert.equal(final.output_text, 're: again');
    assert.equal(final.conversation.id, r.conversation.id);
    assert.equal(await stored(final), 're: again');
    // Conversations have no branches.
    await assert.rejects(client.responses.create({ model: 'plain', input: 'x', previous_response_id: r.id }), (e) => e.status === 400 && e.code === 'previous_response_not_last');
    const input = await collect(client.responses.inputItems.list(r.id));
    assert.deepEqual(input.map((i) => i.content[0].text), ['hi']);
  });

  test(`${name}: long, in the background, with a page that comes back`, async () => {
    const gate = crypto.randomUUID();
    const started = await client.responses.create({ model: 'long', input: gate, background: true });
    assert.ok(['queued', 'in_progress'].includes(started.status), started.status);
    let last = -1, text = '';
    const first = await client.responses.retrieve(started.id, { stream: true });
    for await (const e of first) {
      assert.ok(e.sequence_number > last);
      last = e.sequence_number;
      text += e.type === 'response.output_text.delta' ? e.delta : '';
      if (text.length > 100) break;
    }
    assert.equal((await client.responses.retrieve(started.id)).status, 'in_progress');
    await Promise.all([open(gate), open(`${gate}-end`)]);
    const rest = await collect(await client.responses.retrieve(started.id, { stream: true, starting_after: last }));
    assert.ok(rest.every((e) => e.sequence_number > last));
    assert.equal(text + deltas(rest), long);
    assert.equal(rest.at(-1).type, 'response.completed');
    const done = await client.responses.retrieve(started.id);
    assert.equal(done.status, 'completed');
    assert.equal(done.output_text, long);
    assert.equal(await stored(done), long);
    // The helper reads everything again and drops what it has.
    const helper = client.responses.stream({ response_id: started.id, starting_after: last });
    let resumed = '';
    helper.on('response.output_text.delta', (e) => { resumed += e.delta; });
    assert.equal((await helper.finalResponse()).output_text, long);
    assert.equal(text + resumed, long);
  });

  test(`${name}: reasoning`, async () => {
    const final = await client.responses.stream({ model: 'thinker', input: 'when?' }).finalResponse();
    assert.deepEqual(final.output.map((i) => i.type), ['reasoning', 'message']);
    assert.equal(final.output[0].summary[0].text, 'hm, let me see');
    assert.equal(final.output_text, 'It is noon.');
  });

  test(`${name}: the agent's own tools at the same time`, async () => {
    const stream = client.responses.stream({ model: 'tools', input: 'go' });
    const final = await stream.finalResponse();
    const tools = final.output.filter((i) => i.type === 'mcp_call');
    assert.deepEqual(tools.map((i) => [i.name, i.arguments, i.output, i.status]).sort(), [['clock', '{"zone":"UTC"}', 'noon', 'completed'], ['shell', '{"command":"ls"}', 'a\nb\n', 'completed']]);
    assert.equal(final.output.filter((i) => i.type === 'function_call').length, 0);
    assert.equal(final.output_text, 'Done.');
  });

  test(`${name}: texts that are replaced, and statuses`, async () => {
    const replaced = await client.responses.stream({ model: 'replacing', input: 'when?' }).finalResponse();
    assert.equal(replaced.output_text, 'It is ten.');
    const status = await client.responses.stream({ model: 'status', input: 'play' }).finalResponse();
    assert.equal(status.output_text, 'On it.\n\nNow playing');
  });

  test(`${name}: failure`, async () => {
    const final = await client.responses.stream({ model: 'failing', input: 'hi' }).finalResponse();
    assert.equal(final.status, 'failed');
    assert.deepEqual(final.error, { code: 'overloaded_error', message: 'The model is busy.' });
    assert.equal(final.output_text, 'so far');
    await assert.rejects(client.responses.create({ model: 'nobody', input: 'hi' }), (e) => e.status === 404 && e.code === 'model_not_found' && e.param === 'model');
    await assert.rejects(client.responses.retrieve('resp_none'), (e) => e.status === 404);
    await assert.rejects(client.responses.create({ model: 'plain', input: 'hi', tools: [{ type: 'web_search' }] }), (e) => e.status === 400 && e.code === 'tools_not_supported');
  });

  test(`${name}: stop`, async () => {
    const gate = crypto.randomUUID();
    const stream = client.responses.stream({ model: 'long', input: gate, background: true });
    let id;
    stream.on('response.created', (e) => { id = e.response.id; });
    const seen = new Promise((resolve) => { stream.on('response.output_text.delta', resolve); });
    await seen;
    const cancelled = await client.responses.cancel(id);
    assert.equal(cancelled.status, 'cancelled');
    const final = await stream.finalResponse();
    assert.equal(final.status, 'cancelled');
    assert.ok(long.startsWith(final.output_text) && final.output_text);
    assert.equal((await client.responses.retrieve(id)).output_text, final.output_text);
    assert.equal((await client.responses.cancel(id)).status, 'cancelled');
  });

  for (const [approve, state, said] of [[true, 'completed', 'There is one file.'], [false, 'failed', "Then I can't tell."]]) {
    test(`${name}: approval, ${approve}`, async () => {
      const asked = await client.responses.stream({ model: 'approval', input: 'look' }).finalResponse();
      const request = asked.output.at(-1);
      assert.equal(asked.status, 'completed');
      assert.equal(request.type, 'mcp_approval_request');
      assert.equal(request.name, 'shell');
      assert.equal(request.arguments, '{"command":"ls"}');
      assert.equal(asked.output_text, 'I need to look. ');
      await assert.rejects(client.responses.create({ model: 'approval', input: 'well?', previous_response_id: asked.id }), (e) => e.status === 400 && /No tool output/.test(e.message));
      // A client that comes back finds the question again.
      assert.deepEqual((await client.responses.retrieve(asked.id)).output.map((i) => i.type), ['message', 'mcp_approval_request']);
      const input = [{ type: 'mcp_approval_response', approval_request_id: request.id, approve }];
      const done = await client.responses.stream({ model: 'approval', input, previous_response_id: asked.id }).finalResponse();
      assert.equal(done.output_text, said);
      assert.deepEqual(done.output.filter((i) => i.type === 'mcp_call').map((i) => i.status), [state]);
      assert.notEqual(done.id, asked.id);
      assert.equal((await client.responses.retrieve(done.id)).output_text, said);
      assert.equal(await stored(done), `I need to look. ${said}`);
      // The same answer again gets the same response.
      const again = await client.responses.create({ model: 'approval', input, previous_response_id: asked.id });
      assert.equal(again.id, done.id);
      const items = await collect(client.responses.inputItems.list(done.id));
      assert.deepEqual(items.map((i) => [i.type, i.approve]), [['mcp_approval_response', approve]]);
    });
  }

  test(`${name}: two approvals in turn`, async () => {
    let r = await client.responses.create({ model: 'approvals', input: 'go' });
    const decided = new Set();
    while (r.output.some((i) => i.type === 'mcp_approval_request')) {
      const input = r.output.filter((i) => i.type === 'mcp_approval_request').map((i) => {
        decided.add(i.id);
        return { type: 'mcp_approval_response', approval_request_id: i.id, approve: i.id.endsWith('one') };
      });
      r = await client.responses.create({ model: 'approvals', input, previous_response_id: r.id });
    }
    assert.equal(decided.size, 2);
    assert.match(r.output_text, /one approve, two deny$/);
  });

  test(`${name}: a tool of the client`, async () => {
    const tools = [{ type: 'function', name: 'getLocation', parameters: { type: 'object', properties: {} }, strict: false }];
    const asked = await client.responses.stream({ model: 'client-tool', input: 'where?', tools }).finalResponse();
    const call = asked.output.at(-1);
    assert.equal(call.type, 'function_call');
    assert.equal(call.name, 'getLocation');
    assert.deepEqual(JSON.parse(call.arguments), { precise: true });
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'Berlin' };
    const done = await client.responses.create({ model: 'client-tool', input: [output], previous_response_id: asked.id, tools });
    assert.equal(done.output_text, 'You are at Berlin.');
    assert.equal(await stored(done), 'Where are you? You are at Berlin.');
    // The agent gets the functions, and not only their names.
    const described = [{ ...tools[0], description: 'Where the user is' }];
    const offered = await client.responses.create({ model: 'offered', input: 'where?', tools: described });
    const reply = { ...output, call_id: offered.output.at(-1).call_id };
    const told = await client.responses.create({ model: 'offered', input: [reply], previous_response_id: offered.id, tools: described });
    assert.equal(await stored(told), 'getLocation, Where the user is, {"type":"object","properties":{}}: Berlin.');
    assert.equal((await client.responses.create({ model: 'offered', input: 'where?', tools: described, tool_choice: 'none' })).output_text, 'There are no tools.');
    // A client that keeps the history itself names no response.
    const other = await client.responses.create({ model: 'client-tool', input: 'where?', tools });
    const history = [{ role: 'user', content: 'where?' }, ...other.output, { ...output, call_id: other.output.at(-1).call_id, output: 'Rome' }];
    assert.equal((await client.responses.create({ model: 'client-tool', input: history, tools })).output_text, 'You are at Rome.');
  });

  test(`${name}: 20 random cuts`, async () => {
    const gate = crypto.randomUUID();
    await open(gate);
    const { id } = await client.responses.create({ model: 'long', input: gate, background: true });
    let last = -1, text = '', cuts = 0;
    const cutting = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, fetch: async (...args) => {
      const response = await fetch(...args);
      let left = 1 + Math.floor(Math.random() * 3000);
      return new Response(response.body.pipeThrough(new TransformStream({
        transform(chunk, controller) {
          if (chunk.length > left) { controller.enqueue(chunk.subarray(0, left)); controller.error(new TypeError('network error')); return; }
          left -= chunk.length;
          controller.enqueue(chunk);
        },
      })), { status: response.status, headers: response.headers });
    } });
    const read = async (from) => {
      const stream = await from.responses.retrieve(id, { stream: true, ...(last >= 0 && { starting_after: last }) });
      for await (const e of stream) {
        assert.ok(e.sequence_number > last, `${e.sequence_number} after ${last}`);
        last = e.sequence_number;
        if (e.type === 'response.output_text.delta') text += e.delta;
      }
    };
    while (cuts < 20) {
      // The answer doesn't end before the last cut, so a reader that has everything is cut by the next event.
      const timer = AbortSignal.timeout(60_000);
      const ended = await Promise.race([read(cutting).then(() => 'ended', () => 'cut'), new Promise((resolve) => { timer.addEventListener('abort', () => resolve('late')); }),
        ...(text === long ? ['all'] : [])]);
      assert.notEqual(ended, 'ended');
      assert.notEqual(ended, 'late');
      cuts++;
    }
    await open(`${gate}-end`);
    await read(client);
    assert.equal(text, long);
    assert.equal(await stored(await client.responses.retrieve(id)), long);
  });

  test(`${name}: two clients at once`, async () => {
    const gate = crypto.randomUUID();
    const { id } = await client.responses.create({ model: 'long', input: gate, background: true });
    const readers = [1, 2].map(async () => collect(await client.responses.retrieve(id, { stream: true })));
    await Promise.all([open(gate), open(`${gate}-end`)]);
    for (const events of await Promise.all(readers)) {
      assert.equal(deltas(events), long);
      assert.equal(events.at(-1).response.output_text ?? events.at(-1).response.output[0].content[0].text, long);
    }
  });

  test(`${name}: conversations`, async () => {
    const c = await client.conversations.create({ metadata: { topic: 'x' }, items: [{ type: 'message', role: 'user', content: 'earlier' }] });
    assert.match(c.id, /^conv_/);
    assert.deepEqual((await client.conversations.update(c.id, { metadata: { other: 'y' } })).metadata, { other: 'y' });
    assert.deepEqual((await client.conversations.retrieve(c.id)).metadata, { other: 'y' });
    const added = await client.conversations.items.create(c.id, { items: [{ type: 'message', role: 'user', content: 'added' }] });
    assert.equal(added.data.length, 1);
    const r = await client.responses.create({ model: 'plain', input: 'hi', conversation: c.id });
    assert.equal(r.output_text, 're: hi');
    const items = await collect(client.conversations.items.list(c.id, { order: 'asc', limit: 2 }));
    assert.deepEqual(items.map((i) => i.content[0].text), ['earlier', 'added', 'hi', 're: hi']);
    assert.equal((await client.conversations.items.retrieve(items[1].id, { conversation_id: c.id })).content[0].text, 'added');
    await assert.rejects(client.conversations.items.delete(items[1].id, { conversation_id: c.id }), (e) => e.status === 400);
    assert.equal((await client.conversations.delete(c.id)).deleted, true);
    await assert.rejects(client.conversations.retrieve(c.id), (e) => e.status === 404);
  });

  test(`${name}: not stored`, async () => {
    const r = await client.responses.create({ model: 'plain', input: 'hi', store: false });
    assert.equal(r.output_text, 're: hi');
    const deleted = async () => {
      try { await client.responses.retrieve(r.id); return false; } catch (e) { assert.equal(e.status, 404); return true; }
    };
    while (!await deleted()) await new Promise((resolve) => { setTimeout(resolve, 20); }); // the deletion follows the response
  });
}
