// A page with useChat of the AI SDK, version 7, in Chromium. ../vercel_page_test.go runs it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { long, longBefore, open, request, token, url } from './vercel-chat.js';

const timeout = 60_000;
let browser;
let server;

before(async () => {
  const { outputFiles: [script] } = await build({
    entryPoints: ['page/page.jsx'], bundle: true, write: false, format: 'esm', jsx: 'automatic', define: { 'process.env.NODE_ENV': '"development"' },
  });
  const html = await readFile('page/index.html');
  // The page has an origin of its own, as an app's page has.
  server = createServer((r, w) => {
    const isScript = r.url === '/page.js';
    w.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    w.end(isScript ? script.contents : html);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

// openPage opens a new chat with an agent. If the page reports an error, the test fails at its end.
async function openPage(t, agent) {
  const id = crypto.randomUUID();
  const context = await browser.newContext({ viewport: { width: 800, height: 600 } });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (e) => faults.push(e.message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  await page.goto(`http://127.0.0.1:${server.address().port}/?${new URLSearchParams({ gateway: url, id, token, agent })}`);
  // status waits until the chat has a status.
  const status = (name) => page.locator(`main[data-status=${name}]`).waitFor();
  await status('ready');
  const send = async (text) => {
    await page.getByLabel('Message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  // shows waits until the last message of a role has a text.
  const shows = async (role, text) => page.waitForFunction(
    ([r, want]) => [...document.querySelectorAll(`article[data-role=${r}]`)].at(-1)?.textContent === want, [role, text],
  );
  const count = () => page.locator('article').count();
  return { id, page, status, send, shows, count };
}

test('a page sends, streams, and is reloaded in the middle', async (t) => {
  const gate = crypto.randomUUID();
  const { page, status, send, shows, count } = await openPage(t, 'long');
  await send(gate);
  await shows('user', gate);
  await shows('assistant', longBefore);
  await page.reload();
  await status('streaming');
  await shows('assistant', longBefore);
  assert.equal(await count(), 2);
  if (process.env.LEAT_SCREENSHOTS) await page.screenshot({ path: `${process.env.LEAT_SCREENSHOTS}/resumed.png` });
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
    const { page, status, send, count } = await openPage(t, 'approval');
    await send('files?');
    await page.getByRole('button', { name: button }).waitFor();
    await page.reload();
    await page.locator('main[data-responses="1"]').waitFor(); // the resume has replaced the stored message
    await status('ready');
    if (process.env.LEAT_SCREENSHOTS) await page.screenshot({ path: `${process.env.LEAT_SCREENSHOTS}/approval.png` });
    await page.getByRole('button', { name: button }).click();
    await page.locator('article[data-role=assistant]').getByText(text).waitFor();
    await status('ready');
    assert.equal(await page.locator('fieldset').getAttribute('data-state'), button === 'Approve' ? 'output-available' : 'output-denied');
    assert.equal(await count(), 2);
    assert.equal(await page.getByRole('alert').count(), 0);
  });
}
