// A page with useStream of @langchain/react in Chromium. ../pages_test.go runs it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, start, stop } from './browser.js';
import { long, longBefore, open, token, url } from './langgraph-thread.js';

before(() => start('page/langgraph.jsx'));
after(stop);

test('a page sends, streams, is reloaded in the middle, and stops', async (t) => {
  const gate = crypto.randomUUID();
  const { page, status, send, shows, count, screenshot } = await openPage(t, { gateway: url, token, agent: 'long' });
  await status('ready');
  await send(gate);
  await shows('human', gate);
  await shows('ai', longBefore);
  await page.reload();
  await status('streaming');
  await shows('ai', longBefore);
  assert.equal(await count(), 2);
  await screenshot('langgraph-resumed');
  await open(gate);
  await shows('ai', long);
  await open(`${gate}-end`);
  await status('ready');
  await shows('ai', long);
  assert.equal(await count(), 2);

  const next = crypto.randomUUID();
  await send(next);
  await shows('human', next);
  await shows('ai', longBefore);
  await page.getByRole('button', { name: 'Stop' }).click();
  await status('ready');
  await page.reload();
  await status('ready');
  await shows('ai', longBefore);
  assert.equal(await count(), 4);
  assert.equal(await page.getByRole('alert').count(), 0);
});

for (const [button, text] of [['Approve', 'There is one file.'], ['Deny', "Then I can't tell."]]) {
  test(`a page answers an approval after a reload: ${button}`, async (t) => {
    const { page, status, send, count, screenshot } = await openPage(t, { gateway: url, token, agent: 'approval' });
    await status('ready');
    await send('files?');
    await page.getByRole('button', { name: button }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: button }).waitFor();
    await screenshot('langgraph-approval');
    await page.getByRole('button', { name: button }).click();
    await page.locator('article[data-role=ai]').getByText(`I need to look. ${text}`).waitFor();
    await status('ready');
    assert.equal(await page.locator('fieldset').count(), 0);
    assert.equal(await count(), 2);
    assert.equal(await page.getByRole('alert').count(), 0);
  });
}
