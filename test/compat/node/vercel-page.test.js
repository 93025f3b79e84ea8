// A page with useChat of the AI SDK, version 7, in Chromium. ../pages_test.go runs it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage as openWith, start, stop } from './browser.js';
import { long, longBefore, open, request, token, url } from './vercel-chat.js';

before(() => start('page/page.jsx'));
after(stop);

// openPage opens a new chat with an agent.
async function openPage(t, agent) {
  const id = crypto.randomUUID();
  const opened = await openWith(t, { gateway: url, id, token, agent });
  await opened.status('ready');
  return { id, ...opened };
}

test('a page sends, streams, and is reloaded in the middle', async (t) => {
  const gate = crypto.randomUUID();
  const { page, status, send, shows, count, screenshot } = await openPage(t, 'long');
  await send(gate);
  await shows('user', gate);
  await shows('assistant', longBefore);
  await page.reload();
  await status('streaming');
  await shows('assistant', longBefore);
  assert.equal(await count(), 2);
  await screenshot('resumed');
  await open(gate);
  await shows('assistant', long);
  await open(`${gate}-end`);
  await status('ready');
  assert.equal(await count(), 2);
  assert.equal(await page.getByRole('alert').count(), 0);
});

test('a page stops an answer', async (t) => {
  const gate = crypto.randomUUID();
  const { id, page, status, send, shows, count } = await openPage(t, 'long');
  await send(gate);
  await shows('assistant', longBefore);
  const stopped = page.waitForResponse((r) => r.request().method() === 'DELETE');
  await page.getByRole('button', { name: 'Stop' }).click();
  assert.equal((await stopped).status(), 204);
  await status('ready');
  // The turn ends, and the page shows the same after a reload.
  await (await request(`/api/chat/${id}/stream`)).text();
  assert.equal((await request(`/api/chat/${id}/stream`)).status, 204);
  await page.reload();
  await status('ready');
  await shows('assistant', longBefore);
  assert.equal(await count(), 2);
});

for (const [button, text] of [['Approve', 'There is one file.'], ['Deny', "Then I can't tell."]]) {
  test(`a page answers an approval after a reload: ${button}`, async (t) => {
    const { page, status, send, count, screenshot } = await openPage(t, 'approval');
    await send('files?');
    await page.getByRole('button', { name: button }).waitFor();
    await page.reload();
    await page.locator('main[data-responses="1"]').waitFor(); // the resume has replaced the stored message
    await status('ready');
    await screenshot('approval');
    await page.getByRole('button', { name: button }).click();
    await page.locator('article[data-role=assistant]').getByText(text).waitFor();
    await status('ready');
    assert.equal(await page.locator('fieldset').getAttribute('data-state'), button === 'Approve' ? 'output-available' : 'output-denied');
    assert.equal(await count(), 2);
    assert.equal(await page.getByRole('alert').count(), 0);
  });
}
