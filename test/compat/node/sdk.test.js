// The official clients of Anthropic and OpenAI for Node against the gateway at LEAT_URL. ../node_test.go runs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic0 from 'anthropic-0';
import Anthropic1 from 'anthropic-1';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';

const { LEAT_URL: url, LEAT_TOKEN: apiKey } = process.env;
const thought = 'hm, let me see';
const said = { thinker: 'Hello, wörld 🌍.\n\nIt is noon.', player: 'On it.\n\nNow playing' };

// transcript is the text of a conversation's last answer, as the Eliza chat has it.
async function transcript(response) {
  const id = response.headers.get('leat-conversation');
  const r = await fetch(`${url}/api/conversations/${id}/messages`, { headers: { 'x-api-key': apiKey } });
  assert.equal(r.status, 200);
  return (await r.json()).messages.at(-1).text;
}

for (const [name, Anthropic] of Object.entries({ 'anthropic 0.39.0': Anthropic0, 'anthropic 1.11.0': Anthropic1 })) {
  const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  const ask = (model) => ({ model, max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] });

  test(`${name}: raw stream`, async () => {
    const { data, response } = await client.messages.create({ ...ask('thinker'), stream: true }).withResponse();
    let text = '', thinking = '';
    const types = [];
    for await (const e of data) {
      if (e.type !== 'ping' && types.at(-1) !== e.type) types.push(e.type);
      text += e.delta?.text ?? '';
      thinking += e.delta?.thinking ?? '';
    }
    const block = ['content_block_start', 'content_block_delta', 'content_block_stop'];
    assert.deepEqual(types, ['message_start', ...block, ...block, 'message_delta', 'message_stop']);
    assert.equal(text, said.thinker);
    assert.equal(thinking, thought);
    assert.equal(await transcript(response), text);
  });

  for (const model of Object.keys(said)) {
    test(`${name}: helper, ${model}`, async () => {
      const stream = client.messages.stream(ask(model));
      let text = '';
      stream.on('text', (delta) => { text += delta; });
      const message = await stream.finalMessage();
      assert.equal(text, said[model]);
      assert.equal(message.content.map((b) => b.text ?? '').join(''), said[model]);
      assert.equal(message.stop_reason, 'end_turn');
    });
  }

  test(`${name}: not streamed, and the list`, async () => {
    const message = await client.messages.create(ask('thinker'));
    assert.deepEqual(message.content.map((b) => b.type), ['thinking', 'text']);
    assert.equal(message.content[1].text, said.thinker);
    const names = [];
    for await (const m of client.models.list()) names.push(m.id);
    assert.deepEqual(names, ['failing', 'limited', 'player', 'thinker']);
  });

  test(`${name}: errors`, async () => {
    await assert.rejects(client.messages.create(ask('gpt')), (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === 'not_found_error');
    const wrong = new Anthropic({ baseURL: url, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(wrong.messages.create(ask('thinker')), Anthropic.AuthenticationError);
    await assert.rejects(client.messages.create({ ...ask('thinker'), tools: [{ name: 'f', input_schema: { type: 'object' } }] }), Anthropic.BadRequestError);
    const overloaded = (e) => e instanceof Anthropic.APIError && e.message.includes('overloaded_error');
    await assert.rejects(client.messages.create(ask('failing')), overloaded);
    await assert.rejects(client.messages.stream(ask('failing')).finalMessage(), overloaded);
    let text = '';
    await assert.rejects(async () => {
      for await (const e of await client.messages.create({ ...ask('failing'), stream: true })) text += e.delta?.text ?? '';
    }, overloaded);
    assert.equal(text, 'so far');
  });
}

for (const [name, OpenAI] of Object.entries({ 'openai 6.49.0': OpenAI6, 'openai 7.55.0': OpenAI7 })) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  const ask = (model) => ({ model, messages: [{ role: 'user', content: 'hi' }] });

  test(`${name}: raw stream`, async () => {
    const { data, response } = await client.chat.completions
      .create({ ...ask('thinker'), stream: true, stream_options: { include_usage: true } }).withResponse();
    let text = '', usage;
    for await (const chunk of data) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, said.thinker);
    assert.equal(usage.total_tokens, 12);
    assert.equal(await transcript(response), text);
  });

  for (const model of Object.keys(said)) {
    test(`${name}: helper, ${model}`, async () => {
      const completion = await client.chat.completions.stream(ask(model)).finalChatCompletion();
      assert.equal(completion.choices[0].message.content, said[model]);
      assert.equal(completion.choices[0].finish_reason, 'stop');
    });
  }

  test(`${name}: not streamed, and the list`, async () => {
    const completion = await client.chat.completions.create(ask('thinker'));
    assert.equal(completion.choices[0].message.content, said.thinker);
    const names = [];
    for await (const m of client.models.list()) names.push(m.id);
    assert.deepEqual(names, ['failing', 'limited', 'player', 'thinker']);
  });

  test(`${name}: errors`, async () => {
    await assert.rejects(client.chat.completions.create(ask('gpt')), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
    const wrong = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'wrong', maxRetries: 0 });
    await assert.rejects(wrong.chat.completions.create(ask('thinker')), OpenAI.AuthenticationError);
    await assert.rejects(client.chat.completions.create({ ...ask('thinker'), tools: [{ type: 'function', function: { name: 'f' } }] }),
      (e) => e instanceof OpenAI.BadRequestError && e.code === 'tools_not_supported');
    const busy = (e) => e instanceof OpenAI.APIError && e.message.includes('the model is busy');
    await assert.rejects(client.chat.completions.create(ask('failing')), busy);
    await assert.rejects(client.chat.completions.stream(ask('failing')).finalChatCompletion(), busy);
    let text = '';
    await assert.rejects(async () => {
      for await (const c of await client.chat.completions.create({ ...ask('failing'), stream: true })) text += c.choices[0]?.delta.content ?? '';
    }, busy);
    assert.equal(text, 'so far');
  });
}
