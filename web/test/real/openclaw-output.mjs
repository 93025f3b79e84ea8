// The unchanged Control UI of OpenClaw in a real browser, with Leat as its gateway.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

const facts = JSON.parse(process.env.FACTS);
const limit = Number(process.env.LIMIT ?? 90_000);

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
});
after(() => browser?.close());

/** Opens the page with a session. Its errors fail the test that calls wantNoErrors. */
async function open(session, agent = "demo") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(limit);
  page.faults = [];
  page.closes = 0;
  page.on("pageerror", (e) => page.faults.push(String(e)));
  page.on("websocket", (ws) => ws.on("close", () => page.closes++));
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${facts.token}` };
  await fetch(`${facts.url}/api/conversations`, { method: "POST", headers, body: JSON.stringify({ id: session, agent }) }); // or it exists
  await page.goto(`${facts.url}/openclaw/chat/${agent}/${session}#token=${facts.token}`);
  await composer(page).waitFor();
  return page;
}

const composer = (page) => page.locator("textarea[placeholder]:visible").first();

async function ask(page, text) {
  await composer(page).fill(text);
  await composer(page).press("Enter");
}

/** Waits until the page shows a text, also one in a shadow root. */
const says = (page, text) => page.getByText(text).last().waitFor({ timeout: limit });

/** The turns of a session, from Leat's own API. */
async function log(session) {
  const headers = { Authorization: `Bearer ${facts.token}` };
  return (await (await fetch(`${facts.url}/api/conversations/${session}/transcript`, { headers })).json()).transcript;
}

/** Waits for the end of the newest turn of a session. */
async function waitForEnd(session) {
  for (const end = Date.now() + limit; Date.now() < end; await new Promise((r) => setTimeout(r, 100))) {
    const { turns, messages } = await log(session);
    if (turns.at(-1)?.state === "ended") {
      const parts = messages.at(-1).parts.filter((p) => p.kind === "text" && p.text);
      return { turn: turns.at(-1), lines: parts.map((p) => p.text).join("\n").split("\n").map((l) => l.trim()).filter((l) => /^[A-Z][^|`*_\\]{12,}$/.test(l)) };
    }
  }
  throw new Error("the turn doesn't end");
}

const shows = async (page, lines) => {
  assert.ok(lines.length > 0);
  for (const line of lines) await says(page, line);
};

const picture = (page, name) => process.env.SHOTS && page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });

test("an answer with reasoning and tools, and the same after a reload", async () => {
  const page = await open("plain");
  await ask(page, "what is 6*7");
  await says(page, "6*7 = 42");
  const { turn, lines } = await waitForEnd("plain");
  assert.equal(turn.outcome, "completed");
  await shows(page, [...lines, "what is 6*7"]);
  await picture(page, "plain");
  assert.doesNotMatch(page.url(), /token/); // the page has it elsewhere, and keeps it
  await page.reload();
  await shows(page, [...lines, "6*7 = 42"]);
  assert.equal(await page.getByText("6*7 = 42").count(), 1);
  assert.deepEqual(page.faults, []);
  await picture(page, "reloaded");
});

test("several tools at once, one of which fails", async () => {
  const page = await open("tools");
  await ask(page, "tools");
  const { turn, lines } = await waitForEnd("tools");
  assert.equal(turn.outcome, "completed");
  await shows(page, lines);
  await picture(page, "tools");
});

for (const [session, button] of [["first-approval", "Allow once"], ["second-approval", "Deny"]]) {
  test(`an approval: ${button}`, async () => {
    const page = await open(session);
    await ask(page, "ask");
    // Exactly this name: the sidebar has buttons with the name of the session in theirs, and shows the approval too.
    const choice = page.getByRole("button", { name: button, exact: true }).first();
    await choice.waitFor();
    await picture(page, session);
    await choice.click();
    const { turn, lines } = await waitForEnd(session);
    assert.equal(turn.outcome, "completed");
    await shows(page, lines);
    await choice.waitFor({ state: "detached" });
    assert.deepEqual(page.faults, []);
  });
}

test("a question, answered on one page and shown on another one", async () => {
  const page = await open("question", "quiz");
  const second = await open("question", "quiz");
  await ask(page, "paint it");
  await page.getByRole("radio", { name: "blue" }).click();
  await second.getByRole("radio", { name: "blue" }).waitFor();
  await picture(page, "question");
  await page.getByRole("button", { name: "Submit" }).click();
  for (const p of [page, second]) {
    await says(p, "You chose blue.");
    await p.getByRole("radio", { name: "blue" }).waitFor({ state: "detached" });
    assert.deepEqual(p.faults, []);
  }
  await picture(page, "answered");
  await picture(second, "answered-elsewhere");
});

test("a failed answer keeps its text and says why", async () => {
  const page = await open("error");
  await ask(page, "error");
  const { turn } = await waitForEnd("error");
  assert.equal(turn.outcome, "failed");
  await says(page, turn.error.message);
  await picture(page, "error");
});

test("stop", async () => {
  const page = await open("stop");
  await ask(page, "long 2000");
  await page.waitForFunction(() => document.body.innerText.length > 600);
  await page.locator("button[aria-label*='Stop']:visible, button[title*='Stop']:visible").last().click();
  const { turn } = await waitForEnd("stop");
  assert.equal(turn.outcome, "cancelled");
  await page.locator("button[aria-label*='Stop']:visible, button[title*='Stop']:visible").waitFor({ state: "detached" });
  await picture(page, "stop");
  await ask(page, "what is 2+3");
  await says(page, "2+3 = 5");
});

test("a reload in the middle of an answer, and two pages at once", async () => {
  const page = await open("reload");
  await ask(page, "long 150");
  await page.waitForFunction(() => document.body.innerText.length > 600);
  await page.reload();
  const second = await open("reload");
  const { turn, lines } = await waitForEnd("reload");
  assert.equal(turn.outcome, "completed");
  await shows(page, lines);
  await shows(second, lines);
  assert.equal(second.closes, 0);
  assert.deepEqual([...page.faults, ...second.faults], []);
  await picture(page, "reload");
});

test("a picture of the user reaches the agent and is shown", async () => {
  const page = await open("picture");
  await page.locator("input[type=file]").first().setInputFiles([{ name: "mine.png", mimeType: "image/png", buffer: Buffer.from(facts.picture, "base64") }]);
  await page.locator("img[alt*='mine'], [class*=attachment]").first().waitFor();
  await ask(page, "describe it");
  await waitForEnd("picture");
  const { messages } = await log("picture");
  assert.equal(messages[0].parts.filter((p) => p.kind === "media" && p.media.mime === "image/png").length, 1);
  await page.reload();
  await says(page, "describe it");
  await picture(page, "picture");
});

test("a killed gateway: the page reconnects and shows the rest", async () => {
  const page = await open("killed");
  await ask(page, "what is 8*8");
  await says(page, "8*8 = 64");
  await fetch(`${process.env.CONTROL}/leat/kill`, { method: "POST" });
  await fetch(`${process.env.CONTROL}/leat/start`, { method: "POST" });
  await page.waitForFunction(() => !document.body.innerText.includes("Reconnecting"));
  await ask(page, "what is 9*9");
  await says(page, "9*9 = 81");
  await picture(page, "killed");
});
