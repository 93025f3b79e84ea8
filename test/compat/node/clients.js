// One conversation that is open in five clients at once: the dashboard, the Control UI of OpenClaw, a page with useChat, leat chat in a terminal,
// and a chat of Telegram. test/e2e/clients runs it. $FACTS describes the gateway, and POST $CONTROL/NAME does what a page can't.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { servePage } from './browser.js';
import { chatAsHTML, montage } from './page/panes.js';

const { url, token, conversation, columns, rows } = JSON.parse(process.env.FACTS);
const limit = Number(process.env.LIMIT ?? 90_000);
const headers = { Authorization: `Bearer ${token}` };

let browser;
let chatPage;
const pages = {};

// act does something outside of the browser, and returns its result.
async function act(name) {
  const response = await fetch(`${process.env.CONTROL}/${name}`, { method: 'POST' });
  if (!response.ok) throw new Error(`${name}: ${await response.text()}`);
  return response.json();
}

async function openPage(name, address, { size, signIn = false } = {}) {
  const context = await browser.newContext({ viewport: size, colorScheme: 'light' });
  context.setDefaultTimeout(limit);
  if (signIn) assert.ok((await context.request.post(`${url}/api/auth/session`, { headers })).ok());
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (e) => page.faults.push(String(e)));
  if (address) await page.goto(address);
  pages[name] = page;
  return page;
}

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
  chatPage = await servePage('page/page.jsx');
  const large = { width: 1080, height: 820 };
  const small = { width: 528, height: 600 };
  await openPage('dashboard', `${url}/#/c/${conversation}`, { size: large, signIn: true });
  await openPage('control', `${url}/openclaw/#token=${token}`, { size: large });
  await openPage('chat', `http://127.0.0.1:${chatPage.address().port}/?${new URLSearchParams({ gateway: url, id: conversation, token, agent: 'demo' })}`, { size: small });
  await pages.chat.locator('main[data-status=ready]').waitFor();
  await pages.control.locator('textarea[placeholder]:visible').first().waitFor();
  await pages.dashboard.getByRole('textbox').first().waitFor();
  // A real terminal gets what leat chat writes.
  const terminal = await openPage('terminal', '', { size: small });
  const file = (name) => fileURLToPath(new URL(`node_modules/@xterm/xterm/${name}`, import.meta.url));
  await terminal.setContent('<body style="margin:0;background:#1e1e1e"><div id="screen"></div></body>');
  await terminal.addStyleTag({ path: file('css/xterm.css') });
  await terminal.addScriptTag({ path: file('lib/xterm.js') });
  await terminal.evaluate(([cols, lines]) => {
    window.screenOf = new Terminal({ cols, rows: lines, fontSize: 12, scrollback: 1000 });
    window.screenOf.open(document.getElementById('screen'));
  }, [columns, rows]);
  await openPage('telegram', '', { size: small });
});

after(async () => {
  await browser?.close();
  chatPage?.closeAllConnections();
  chatPage?.close();
});

// How each client shows its whole text now.
const readings = {
  // innerText leaves out shadow roots, in which the Control UI has its messages.
  control: () => pages.control.evaluate(() => {
    const read = (node) => {
      if (node.nodeType === Node.TEXT_NODE) return node.data;
      if (node.nodeType !== Node.ELEMENT_NODE || ['SCRIPT', 'STYLE'].includes(node.tagName)) return '';
      const { width, height } = node.getBoundingClientRect();
      if (getComputedStyle(node).position === 'absolute' && width <= 1 && height <= 1) return ''; // an announcement for screen readers
      const children = [...(node.shadowRoot ?? node).childNodes, ...(node.shadowRoot ? node.childNodes : [])];
      const text = children.map(read).join('');
      return getComputedStyle(node).display === 'inline' ? text : `\n${text}\n`;
    };
    return read(document.body);
  }),
  dashboard: () => pages.dashboard.evaluate(() => document.body.innerText),
  chat: () => pages.chat.evaluate(() => document.body.innerText),
  async terminal() {
    const { output } = await act('terminal/read');
    return pages.terminal.evaluate(async (encoded) => {
      const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
      window.screenOf.reset();
      await new Promise((done) => { window.screenOf.write(bytes, done); });
      const { active } = window.screenOf.buffer;
      const lines = Array.from({ length: active.length }, (_, i) => active.getLine(i).translateToString(true));
      return lines.join('\n');
    }, output);
  },
  async telegram() {
    const { messages } = await act('telegram/read');
    await pages.telegram.setContent(chatAsHTML(messages));
    return messages.map((m) => m.text).join('\n');
  },
};

// words are what all clients show of a text. How they show bold text, lists and line breaks is their own.
const words = (text) => text.normalize().match(/[\p{L}\p{N}]+/gu)?.join(' ') ?? '';

// waitFor returns the first true result of a function, which it calls until the limit has passed.
async function waitFor(f, describe) {
  for (const end = Date.now() + limit; Date.now() < end; await delay(100)) { // programs outside of the browser have no event to wait for
    const result = await f();
    if (result) return result;
  }
  throw new Error(`after ${limit / 1000} s, ${describe()}`);
}

// piecesOf returns what a client must show of an answer, in order. The language of code is only a hint, which not all show.
const piecesOf = (answer) => answer.split(/^```.*$/m).map(words).filter(Boolean);

// showsOnce reports whether a text has all pieces, in order and once. A word or two may also occur elsewhere, such as in the title.
function showsOnce(text, pieces) {
  let at = 0;
  for (const piece of pieces) {
    at = text.indexOf(piece, at);
    if (at < 0 || piece.split(' ').length > 2 && text.includes(piece, at + piece.length)) return false;
    at += piece.length;
  }
  return text.split(pieces[0]).length === 2;
}

async function transcript() {
  const response = await fetch(`${url}/api/conversations/${conversation}/transcript`, { headers });
  return (await response.json()).transcript;
}

// answerTo returns the text of the answer to a message as the log has it, when its turn has ended.
async function answerTo(question) {
  return waitFor(async () => {
    const { messages, turns } = await transcript();
    const asked = messages.findLast((m) => m.role === 'user' && m.parts.some((p) => p.text === question));
    const turn = turns.find((t) => t.answers === asked?.id);
    if (turn?.state !== 'ended') return '';
    assert.equal(turn.outcome, 'completed');
    return messages.filter((m) => m.turn === turn.id && m.role === 'assistant').flatMap((m) => m.parts.filter((p) => p.kind === 'text')).map((p) => p.text).join('\n');
  }, () => `no answer to ${question}`);
}

// allShow waits until each client shows a question and its answer, whole and once.
async function allShow(question) {
  const pieces = piecesOf(await answerTo(question));
  assert.ok(pieces.join('').length > 20, pieces.join('\n'));
  for (const [name, read] of Object.entries(readings)) {
    let text;
    await waitFor(async () => {
      text = words(await read());
      return text.includes(words(question)) && showsOnce(text, pieces);
    }, () => `${name} doesn't show ${question} and its answer, whole and once:\n${pieces.join('\n')}\nbut\n${text}`);
  }
}

test('a message of the page with useChat', { timeout: 6 * limit }, async () => {
  const question = "How many r's are in strawberry?";
  await pages.chat.getByLabel('Message').fill(question);
  await pages.chat.getByRole('button', { name: 'Send' }).click();
  await pages.control.getByText(question).filter({ visible: true }).first().click(); // the list has its title by now
  await allShow(question);
});

test('a message from Telegram, and the page is reloaded meanwhile', { timeout: 6 * limit }, async () => {
  const { question } = await act('telegram/ask');
  await pages.chat.reload();
  await allShow(question);
});

test('a long answer to the dashboard, and a reload in its middle', { timeout: 6 * limit }, async () => {
  const question = 'long 120';
  const box = pages.dashboard.getByRole('textbox').first();
  await box.fill(question);
  await box.press('Enter');
  // The answer is written now, and all clients follow it.
  const beginning = 'is a prime number';
  for (const [name, read] of Object.entries(readings)) {
    if (name === 'chat') continue; // useChat shows messages of others after a reload
    await waitFor(async () => words(await read()).includes(beginning), () => `${name} doesn't show the beginning of the answer`);
  }
  await pages.chat.reload();
  await allShow(question);
});

test('the last question, and no page had an error', { timeout: 6 * limit }, async () => {
  const question = 'What day is 2027-01-01?';
  await pages.chat.getByLabel('Message').fill(question);
  await pages.chat.getByRole('button', { name: 'Send' }).click();
  await allShow(question);
  if (process.env.LEAT_SCREENSHOTS) await picture(`${process.env.LEAT_SCREENSHOTS}/clients.png`);
  for (const [name, page] of Object.entries(pages)) assert.deepEqual(page.faults, [], name);
});

// picture makes one picture of all clients.
async function picture(path) {
  await pages.chat.evaluate(() => { document.activeElement?.blur(); scrollTo(0, document.body.scrollHeight); });
  await pages.telegram.evaluate(() => scrollTo(0, document.body.scrollHeight));
  // The list explains the entry that the mouse was on. A reload ends that, and shows the same conversation.
  await pages.control.mouse.move(700, 300);
  await pages.control.reload();
  // The Control UI, like all pages of chats, is at its end only if nobody has scrolled or clicked in it.
  await waitFor(async () => {
    await pages.control.mouse.wheel(0, 10_000);
    return pages.control.getByText('The same on a command line:').filter({ visible: true }).last().evaluate((e) => {
      const { top } = e.getBoundingClientRect();
      return top > 0 && top < innerHeight - 200;
    });
  }, () => 'the Control UI is not at its end');
  const shot = async (name) => (await pages[name].screenshot()).toString('base64');
  const panes = {
    'Leat’s dashboard': await shot('dashboard'), 'Control UI of OpenClaw': await shot('control'),
    'useChat of the AI SDK': await shot('chat'), 'leat chat in a terminal': await shot('terminal'), 'Telegram': await shot('telegram'),
  };
  const page = await openPage('montage', '', { size: { width: 1680, height: 1340 } });
  await page.setContent(montage(panes));
  await page.screenshot({ path, fullPage: true });
}
