// Chromium, and a server with an origin of its own for the page of a test, as an app's page has one.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';

const timeout = 60_000;
let browser;
let server;

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

// servePage serves a page with a script, and returns its server.
export async function servePage(script) {
  const { outputFiles: [bundle] } = await build({
    entryPoints: [path(script)], bundle: true, write: false, format: 'esm', jsx: 'automatic', define: { 'process.env.NODE_ENV': '"development"' },
  });
  const html = await readFile(path('page/index.html'));
  const pages = createServer((r, w) => {
    const isScript = r.url === '/page.js';
    w.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    w.end(isScript ? bundle.contents : html);
  }).listen(0, '127.0.0.1');
  await once(pages, 'listening');
  return pages;
}

// start serves the page and starts the browser. Call it before the tests, and stop after them.
export async function start(script) {
  server = await servePage(script);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

export async function stop() {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
}

// openPage opens the page with parameters. If it reports an error, the test fails at its end.
export async function openPage(t, parameters) {
  const context = await browser.newContext({ viewport: { width: 800, height: 600 } });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (e) => faults.push(e.message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  await page.goto(`http://127.0.0.1:${server.address().port}/?${new URLSearchParams(parameters)}`);
  const send = async (text) => {
    await page.getByLabel('Message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  return {
    page,
    // status waits until the chat has a status.
    status: (name) => page.locator(`main[data-status=${name}]`).waitFor(),
    send,
    // shows waits until the last message of a role has a text.
    shows: (role, text) => page.waitForFunction(
      ([r, want]) => [...document.querySelectorAll(`article[data-role=${r}]`)].at(-1)?.textContent === want, [role, text],
    ),
    count: () => page.locator('article').count(),
    screenshot: async (name) => { if (process.env.LEAT_SCREENSHOTS) await page.screenshot({ path: `${process.env.LEAT_SCREENSHOTS}/${name}.png` }); },
  };
}
