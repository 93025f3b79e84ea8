// Shared code of the tests with real agent programs. The suites in test/e2e start the programs and a scripted model, run these
// tests, describe themselves in $FACTS, and perform at $CONTROL the actions that a page can't.

import assert from "node:assert/strict";

import { chooseAgent, composer, open as openPage } from "../harness.mjs";
import { film } from "./film.mjs";

if (!process.env.CONTROL) throw new Error("run by make e2e-openclaw and make e2e-letta");

/** The description of the suite. */
export const facts = JSON.parse(process.env.FACTS);

/** Asks the suite to perform an action, such as gate/close: the model pauses in the middle of its output until gate/open. */
export async function act(name) {
  const res = await fetch(`${process.env.CONTROL}/${name}`, { method: "POST" });
  if (!res.ok) throw new Error(`${name}: ${await res.text()}`);
  return res.json();
}

/** Messages that the browser logs by itself when a gateway can't be reached. */
export const networkErrors = /ERR_CONNECTION_REFUSED|WebSocket connection|ERR_CONNECTION_RESET|Failed to load resource/;

/** Opens a page of the gateway with the checks and the recorder, and selects an agent. */
export async function open(agent) {
  const page = await openPage({ url: facts.url });
  page.setDefaultTimeout(120_000); // the real programs need much of the machine
  page.asked = []; // the page's requests for history, and the snapshots that it receives
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
  await page.reload(); // from here on everything is recorded
  await page.locator('.connection[data-state="connected"]').waitFor();
  if (agent) await chooseAgent(page, agent);
  await composer(page).waitFor();
  return page;
}

/** The visible answers, oldest first. */
export const answers = (page) => page.locator("article.message.assistant[data-message]");

/** Remembers the elements of an answer, down to its blocks. redrawn reports the ones that were replaced. */
export const mark = (article) => article.evaluate((a) => {
  const elements = [a, ...a.children, ...a.querySelectorAll(".text > *")].filter((e) => e.innerText?.trim() && e.tagName !== "FOOTER");
  (window.marked ??= []).push(...elements.map((e) => ({ e, text: e.innerText })));
  return elements.length;
});

/** Returns the remembered elements that were replaced. Complete blocks (all but the last) must also keep their text. */
export const redrawn = (page) => page.evaluate(() => window.marked.filter(({ e }) => !e.isConnected).map(({ e, text }) => `${e.tagName}.${e.className}: ${text}`));

/** Waits until an answer contains a text. */
export const says = (page, words, timeout = 90_000) => page.waitForFunction((w) => [...document.querySelectorAll("article.assistant")].at(-1)?.innerText.includes(w), words, { timeout });

/** Returns the recorded scenes of a page, after the checks. */
export async function filmed(page) {
  const { scenes, faults } = await page.evaluate(() => ({ scenes: window.scenes, faults: window.flickers }));
  assert.deepEqual(faults, []);
  return scenes;
}

/** After a reload every message of the log is shown once, and nothing else. */
export async function wantReloadedSame(page) {
  const id = decodeURIComponent(new URL(page.url()).hash.replace("#/c/", ""));
  const { transcript } = await (await fetch(`${facts.url}/api/conversations/${id}/transcript`)).json();
  const messages = await page.locator("article[data-message]").evaluateAll((articles) => articles.map((a) => [a.dataset.message, Number(a.dataset.len)]));
  assert.deepEqual(messages, transcript.messages.map((m) => [m.id, m.parts.reduce((n, p) => n + (p.kind === "text" ? (p.text ?? "").length : 0), 0)]));
  return transcript;
}
