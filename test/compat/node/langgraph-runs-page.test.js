// Pages with useStream of the older SDK in Chromium. ../pages_test.go runs it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPage, start, stop } from './browser.js';
import { long, longBefore, open, token, url } from './langgraph-thread.js';

before(() => start('page/langgraph-runs.jsx'));
after(stop);

for (const version of ['1.15.0', '2.0.0']) {
  test(`${version}: a page sends, streams, is reloaded in the middle, and stops`, async (t) => {
    const gate = crypto.randomUUID();
    const { page, status, send, shows, count } = await openPage(t, { gateway: url, token, agent: 'long', version });
    await status('ready');
    await send(gate);
    await shows('human', gate);
    await shows('ai', longBefore);
    await page.reload();
    await status('streaming');
    await shows('ai', longBefore);
    assert.equal(await count(), 2);
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
    const stopped = page.waitForResponse((r) => r.url().includes('/cancel'));
    await page.getByRole('button', { name: 'Stop' }).click();
    assert.equal((await stopped).status(), 204);
    await status('ready');
    await page.reload();
    await status('ready');
    await shows('ai', longBefore);
    assert.equal(await count(), 4);
    assert.equal(await page.getByRole('alert').count(), 0);
  });

  test(`${version}: a page answers an approval after a reload`, async (t) => {
    const { page, status, send, count } = await openPage(t, { gateway: url, token, agent: 'approval', version });
    await status('ready');
    await send('files?');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).click(); // waits for the button
    await page.locator('article[data-role=ai]').getByText('I need to look. There is one file.').waitFor();
    await status('ready');
    assert.equal(await page.locator('fieldset').count(), 0);
    assert.equal(await count(), 2);
    assert.equal(await page.getByRole('alert').count(), 0);
  });
}
