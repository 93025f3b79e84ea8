// Threads of LangGraph's new generation against the gateway at LEAT_URL. ../langgraph_test.go runs it.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { generations, long, longBefore, newThread as create, open, shortOf, textOf } from './langgraph-thread.js';

const threads = [];
const newThread = (...args) => {
  const thread = create(...args);
  threads.push(thread);
  return thread;
};
// An open thread has a stream with beats, which would take time from the tests that follow.
afterEach(() => Promise.all(threads.splice(0).map((t) => t.controller.dispose())));

const settle = (thread) => thread.settle();

for (const version of Object.keys(generations)) {
  test(`${version}: plain`, async () => {
    const thread = newThread(version);
    await thread.send('hello');
    assert.equal(thread.state().error, undefined);
    assert.deepEqual(shortOf(thread.state().messages), [['human', 'hello'], ['ai', 're: hello']]);
    await thread.send('again');
    assert.deepEqual(shortOf(thread.state().messages), [['human', 'hello'], ['ai', 're: hello'], ['human', 'again'], ['ai', 're: again']]);
    await settle(thread);
  });

  test(`${version}: reasoning`, async () => {
    const thread = newThread(version, { agent: 'thinker' });
    await thread.send('the time?');
    const answer = thread.state().messages[1];
    assert.deepEqual(answer.contentBlocks.map((b) => [b.type, b.reasoning ?? b.text]), [['reasoning', 'hm, let me see'], ['text', 'It is noon.']]);
    await settle(thread);
  });

  test(`${version}: tools in parallel`, async () => {
    const thread = newThread(version, { agent: 'tools' });
    await thread.send('work');
    const { messages, toolCalls } = thread.state();
    assert.deepEqual(messages[1].tool_calls.map((c) => [c.name, c.args]), [['clock', { zone: 'UTC' }], ['shell', { command: 'ls' }]]);
    assert.deepEqual(messages.filter((m) => m.getType() === 'tool').map((m) => [m.tool_call_id, m.text]), messages[1].tool_calls.map((c, i) => [c.id, ['noon', 'a\nb\n'][i]]));
    assert.equal(messages.at(-1).text, 'Done.');
    assert.deepEqual(toolCalls.map((c) => [c.name, c.status, c.output]).sort(), [['clock', 'finished', 'noon'], ['shell', 'finished', 'a\nb\n']]);
    await settle(thread);
  });

  test(`${version}: a status is replaced in place`, async () => {
    const thread = newThread(version, { agent: 'status' });
    await thread.send('play');
    assert.deepEqual(shortOf(thread.state().messages), [['human', 'play'], ['ai', 'On it.'], ['ai', 'Now playing']]);
    await settle(thread);
  });

  test(`${version}: text that was taken back`, async () => {
    const thread = newThread(version, { agent: 'replacing' });
    await thread.send('the time?');
    assert.equal(textOf(thread.state().messages), 'It is ten.');
    await settle(thread);
  });

  test(`${version}: files and data`, async () => {
    const thread = newThread(version, { agent: 'files' });
    await thread.submit({ content: [{ type: 'text', text: 'look' }, { type: 'image', data: 'aGk=', mime_type: 'image/png', source_type: 'base64' }] });
    await thread.settle();
    const { messages } = thread.state();
    assert.deepEqual(messages.slice(1).map((m) => m.content.map((b) => [b.type, b.mime_type ?? b.value])), [[['image', 'image/png']], [['non_standard', { chart: [1, 2] }]]]);
  });

  test(`${version}: an agent that fails`, async () => {
    const thread = newThread(version, { agent: 'failing' });
    await thread.send('hello');
    assert.match(String(thread.state().error.message ?? thread.state().error), /The model is busy\./);
    assert.equal(textOf(thread.state().messages), 'so far');
  });

  test(`${version}: a refusal is a sentence`, async () => {
    const thread = newThread(version, { agent: 'nobody' });
    await thread.submit({ content: 'hello' });
    await thread.until((s) => s.error);
    assert.match(thread.state().error.message, /There is no assistant "nobody"; use the name of an agent\./);
  });

  test(`${version}: approval`, async () => {
    for (const [decision, text] of [['approve', 'There is one file.'], ['reject', "Then I can't tell."]]) {
      const thread = newThread(version, { agent: 'approval' });
      await thread.send('files?');
      const { interrupts } = thread.state();
      assert.equal(interrupts.length, 1);
      assert.deepEqual(interrupts[0].value.action_requests.map((r) => [r.name, r.args, r.description]), [['shell', { command: 'ls' }, 'Run ls?']]);
      assert.equal(textOf(thread.state().messages), 'I need to look. ');
      await thread.controller.respond({ decisions: [{ type: decision }] });
      await thread.until((s) => !s.isLoading && textOf(s.messages) === `I need to look. ${text}`);
      assert.deepEqual(thread.state().interrupts, []);
      await settle(thread);
    }
  });

  test(`${version}: an approval after a reload`, async () => {
    const first = newThread(version, { agent: 'approval' });
    await first.send('files?');
    const thread = newThread(version, { agent: 'approval', id: first.state().threadId });
    await thread.until((s) => s.interrupts.length === 1 && textOf(s.messages) === 'I need to look. ');
    await thread.controller.respond({ approved: true }, { interruptId: thread.state().interrupts[0].id });
    await thread.until((s) => !s.isLoading && textOf(s.messages) === 'I need to look. There is one file.');
    // The page that asked sees the answer too.
    await first.until((s) => textOf(s.messages) === 'I need to look. There is one file.');
    await settle(thread);
  });

  test(`${version}: several questions at once`, async () => {
    const thread = newThread(version, { agent: 'approvals' });
    await thread.send('both');
    await thread.until((s) => s.interrupts.length === 2);
    await thread.controller.respondAll(Object.fromEntries(thread.state().interrupts.map((i) => [i.id, i.value.action_requests[0].description === 'one?'])));
    await thread.until((s) => !s.isLoading && textOf(s.messages).endsWith('one approve, two deny'));
    await settle(thread);
  });

  test(`${version}: a tool of the page`, async () => {
    const thread = newThread(version, { agent: 'client-tool' });
    await thread.send('where?');
    const [interrupt] = thread.state().interrupts;
    assert.deepEqual([interrupt.value.type, interrupt.value.tool_call.name, interrupt.value.tool_call.args], ['tool', 'getLocation', { precise: true }]);
    await thread.controller.respond({ [interrupt.value.tool_call.id]: 'the harbour' });
    await thread.until((s) => !s.isLoading && textOf(s.messages).endsWith('You are at the harbour.'));
    await settle(thread);
  });

  test(`${version}: an answer to a question that doesn't wait`, async () => {
    const thread = newThread(version);
    await thread.send('hello');
    await assert.rejects(thread.controller.getThread().respondInput({ namespace: [], interrupt_id: 'none', response: true }), { code: 'no_such_interrupt' });
  });

  test(`${version}: a page is reloaded in the middle`, async () => {
    const gate = crypto.randomUUID();
    const first = newThread(version, { agent: 'long' });
    const sent = first.submit({ content: gate });
    await first.until((s) => textOf(s.messages) === longBefore);
    const thread = newThread(version, { agent: 'long', id: first.state().threadId });
    await thread.until((s) => textOf(s.messages) === longBefore && s.isLoading);
    await open(gate);
    await open(`${gate}-end`);
    await sent;
    await thread.until((s) => !s.isLoading && textOf(s.messages) === long);
    await settle(thread);
    await settle(first);
  });

  test(`${version}: two pages in one thread`, async () => {
    const first = newThread(version);
    await first.send('hello');
    const second = newThread(version, { id: first.state().threadId });
    await second.until((s) => !s.isThreadLoading && s.messages.length === 2);
    await Promise.all([first.send('one'), second.send('two')]);
    for (const thread of [first, second]) {
      await thread.until((s) => !s.isLoading && s.messages.length === 6);
      assert.deepEqual(shortOf(thread.state().messages).map(([, text]) => text).sort(), ['hello', 'one', 're: hello', 're: one', 're: two', 'two']);
    }
  });

  test(`${version}: stop`, async () => {
    const gate = crypto.randomUUID();
    const thread = newThread(version, { agent: 'long' });
    const sent = thread.submit({ content: gate });
    await thread.until((s) => textOf(s.messages) === longBefore);
    await thread.controller.stop();
    await sent;
    const [run] = await thread.client.runs.list(thread.state().threadId);
    assert.equal(run.status, 'interrupted');
    const reloaded = newThread(version, { agent: 'long', id: thread.state().threadId });
    await reloaded.until((s) => textOf(s.messages) === longBefore);
    assert.equal(reloaded.state().isLoading, false);
    await settle(reloaded);
  });

  test(`${version}: connections are cut 20 times`, async () => {
    const gate = crypto.randomUUID();
    let cuts = 0;
    // The streams break after a random number of bytes. The texts are compared with those of the log at the end.
    const cutting = async (input, init) => {
      const response = await fetch(input, init);
      if (!String(input).endsWith('/stream/events')) return response;
      let left = cuts < 20 ? 1 + Math.floor(Math.random() * 20_000) : Infinity;
      const reader = response.body.getReader();
      const body = new ReadableStream({
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) { controller.close(); return; }
          if (value.length > left) {
            cuts += 1;
            controller.enqueue(value.subarray(0, left));
            await reader.cancel();
            controller.error(new TypeError('network error'));
            return;
          }
          left -= value.length;
          controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      });
      return new Response(body, { status: response.status, headers: response.headers });
    };
    await open(gate);
    await open(`${gate}-end`);
    const thread = newThread(version, { agent: 'long', fetch: cutting });
    await thread.send(gate);
    await thread.until((s) => textOf(s.messages) === long);
    await settle(thread);
    assert.ok(cuts >= 20, `${cuts} cuts`);
  });
}
