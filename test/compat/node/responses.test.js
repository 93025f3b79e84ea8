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

  test(`${name}: plain`, async () => {
    const r = await client.responses.create({ model: 'plain', input: 'hi' });
    assert.equal(r.status, 'completed');
    assert.equal(r.output_text, 're: hi');
    assert.equal(r.model, 'plain');
    const stream = client.responses.stream({ model: 'plain', input: 'again', previous_response_id: r.id });
    let text = '';
    stream.on('response.output_text.delta', (e) => { text += e.delta; });
    const final = await stream.finalResponse();
    assert.equal(text, 're: again');
    assert.equal(final.output_text, 're: again');
    assert.equal(final.conversation.id, r.conversation.id);
    assert.equal(await stored(final), 're: again');
  });
}
