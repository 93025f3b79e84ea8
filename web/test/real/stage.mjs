// What the tests over real runtimes share. The suites in e2e run them: they start the programs and the scripted model, say in $FACTS
// what there is, and do at $CONTROL what can't be done in a page.

import assert from "node:assert/strict";

import { composer, open as openPage } from "../harness.mjs";
import { film } from "./film.mjs";

if (!process.env.CONTROL) throw new Error("run by make e2e-openclaw and make e2e-letta");

/** What the suite says of itself. */
export const facts = JSON.parse(process.env.FACTS);

/** Has the suite do something, such as gate/close: the model waits in the middle of what it says, until gate/open. */
export async function act(name) {
  const res = await fetch(`${process.env.CONTROL}/${name}`, { method: "POST" });
  if (!res.ok) throw new Error(`${name}: ${await res.text()}`);
  return res.json();
}

/** The browser says these by itself when a gateway is gone. */
export const networkErrors = /ERR_CONNECTION_REFUSED|WebSocket connection|ERR_CONNECTION_RESET|Failed to load resource/;

/** A page of the gateway, watched and filmed, with an agent chosen. */
export async function open(agent) {
  const page = await openPage({ url: facts.url });
  page.setDefaultTimeout(120_000); // the real programs need much of the machine
  page.asked = []; // what it asks for of conversations' history, and what it is given unasked
  page.on("request", (r) => {
    if (/\/api\/conversations\/[^/]+\/(transcript|events|messages|export|trace|mismatches)/.test(r.url())) page.asked.push(`${r.method()} ${r.url()}`);
  });
  page.on("websocket", (ws) => {
    const note = (way) => ({ payload }) => {
      const { type } = JSON.parse(payload);
      if (type === "subscribe" || type === "snapshot") page.asked.push(`${way} ${type}`);
    };
    ws.on("framesent", note("sent"));
    ws.on("framereceived", note("received"));
  });
  await page.context().addInitScript(film);
  await page.reload(); // from here on all is filmed, and the socket is heard
  await page.locator('.connection[data-state="connected"]').waitFor();
  if (agent) await page.getByRole("combobox", { name: "Agent" }).selectOption(agent);
  await composer(page).waitFor();
  return page;
}

/** The answers that are shown, oldest first. */
export const answers = (page) => page.locator("article.message.assistant[data-message]");

/** Marks what is drawn of an answer, down to its blocks; kept says how much of it is still there. */
export const mark = (article) => article.evaluate((a) => {
  const elements = [a, ...a.children, ...a.querySelectorAll(".text > *")].filter((e) => e.innerText?.trim() && e.tagName !== "FOOTER");
  (window.marked ??= []).push(...elements.map((e) => ({ e, text: e.innerText })));
  return elements.length;
});

/** What of the marked was drawn anew. Blocks that are whole (all but the last) also keep their text. */
export const redrawn = (page) => page.evaluate(() => window.marked.filter(({ e }) => !e.isConnected).map(({ e, text }) => `${e.tagName}.${e.className}: ${text}`));

/** Waits until an answer's text holds words. */
export const says = (page, words, timeout = 90_000) => page.waitForFunction((w) => [...document.querySelectorAll("article.assistant")].at(-1)?.innerText.includes(w), words, { timeout });

/** The film of a page, and what is wrong in it. */
export async function filmed(page) {
  const { scenes, faults } = await page.evaluate(() => ({ scenes: window.scenes, faults: window.flickers }));
  assert.deepEqual(faults, []);
  return scenes;
}

/** All messages of the log are shown, each once, and nothing else. */
export async function wantReloadedSame(page) {
  const id = decodeURIComponent(new URL(page.url()).hash.replace("#/c/", ""));
  const { transcript } = await (await fetch(`${facts.url}/api/conversations/${id}/transcript`)).json();
  const messages = await page.locator("article[data-message]").evaluateAll((articles) => articles.map((a) => [a.dataset.message, Number(a.dataset.len)]));
  assert.deepEqual(messages, transcript.messages.map((m) => [m.id, m.parts.reduce((n, p) => n + (p.kind === "text" ? (p.text ?? "").length : 0), 0)]));
  return transcript;
}
