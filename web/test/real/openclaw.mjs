// The five cases of the seed openclaw-chat-streaming in a real browser, through Leat, against a real OpenClaw gateway.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";

import { articles, ask, closeBrowser, idle, wantClean } from "../harness.mjs";
import { never } from "./film.mjs";
import { act, answers, networkErrors, facts, filmed, mark, open, redrawn, wantReloadedSame, says } from "./stage.mjs";

after(closeBrowser);

test("1. send and receive: the answer grows in place, and the final is what grew", async () => {
  const page = await open();
  await act("gate/close");
  await ask(page, "please do SCRIPT-GROW");
  await says(page, "The longest");
  const answer = answers(page).last();
  assert.equal(await answer.getAttribute("aria-busy"), "true");
  assert.ok(await mark(answer) >= 4); // the message, its text, and the complete blocks
  const half = Number(await answer.getAttribute("data-len"));
  await act("gate/open");
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  assert.equal(Number(await answer.getAttribute("data-len")), (facts.firstHalf + facts.secondHalf).trim().length);
  assert.ok(half < facts.firstHalf.length + 1 && half > 60);
  assert.equal(await answer.getByRole("listitem").count(), 4);
  assert.equal(await answer.getByRole("heading", { name: "Rivers" }).count(), 1);
  assert.equal((await wantReloadedSame(page)).messages.length, 2);
  await filmed(page);
  await wantClean(page);
});

test("2a. a picture that is attached reaches the model", async () => {
  const page = await open();
  await page.locator("input[type=file]").setInputFiles([{ name: "mine.png", mimeType: "image/png", buffer: await readFile(facts.mine) }]);
  await page.locator(".attachments li", { hasText: "mine.png" }).getByText(/B$/).waitFor();
  await ask(page, "please do SCRIPT-IMAGE");
  await idle(page);
  assert.match(await answers(page).last().innerText(), /I see a picture\./);
  assert.equal(await act("model/saw"), true);
  const picture = page.locator("article.user img");
  assert.equal(await picture.evaluate((e) => e.decode().then(() => e.naturalWidth)), 48);
  await page.reload();
  await picture.waitFor();
  assert.equal(await picture.evaluate((e) => e.decode().then(() => e.naturalWidth)), 48);
  await wantClean(page);
});

for (const [script, position] of [["SHOW", "in the middle"], ["SHOWLAST", "at the end"]]) {
  test(`2b. a picture that the agent shows ${position} of its answer is shown, and never half its path`, async () => {
    const page = await open();
    // No beginning of the line MEDIA:/path may ever be visible, however short.
    const beginnings = ["MEDIA", "no address", ...facts.picture.split("/").filter((s) => s.length > 3 && s !== "pic.png")];
    await page.evaluate(never, `(^|\\n)\\s*(M|ME|MED|MEDI)\\s*($|\\n)|${beginnings.join("|")}`);
    await ask(page, `please do SCRIPT-${script}`);
    await page.locator("article.assistant img").waitFor();
    await idle(page);
    assert.deepEqual(await page.evaluate(() => window.seen), []);
    const picture = page.locator("article.assistant img");
    assert.equal(await picture.count(), 1);
    assert.equal(await picture.evaluate((e) => e.decode().then(() => e.naturalWidth)), 32);
    const bytes = Buffer.from(await (await fetch(await picture.evaluate((e) => e.src))).arrayBuffer());
    assert.ok(bytes.equals(await readFile(facts.picture)));
    assert.match(await page.locator(".log").innerText(), script === "SHOW" ? /Here is the picture\.[\s\S]*That was it\./ : /At the end\./);
    await wantReloadedSame(page);
    await filmed(page);
    await wantClean(page);
  });
}

test("3a. history on reconnect: a reload in the middle of an answer", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-PLAIN");
  await idle(page);
  await act("gate/close");
  await ask(page, "please do SCRIPT-SLOW");
  await says(page, "fox jumps");
  await page.reload();
  await says(page, "fox jumps");
  assert.equal(await articles(page).count(), 4);
  assert.equal(await answers(page).last().getAttribute("aria-busy"), "true");
  await act("gate/open");
  await idle(page);
  assert.equal(Number(await answers(page).last().getAttribute("data-len")), facts.slow.length);
  assert.equal((await wantReloadedSame(page)).messages.length, 4);
  await filmed(page);
  await wantClean(page);
});

test("3b. history on reconnect: Leat is killed in the middle of an answer", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-PLAIN");
  await idle(page);
  await act("gate/close");
  await ask(page, "please do SCRIPT-SLOW");
  await says(page, "fox jumps");
  await mark(answers(page).last());
  await act("leat/kill");
  await page.locator('.connection:not([data-state="connected"])').waitFor();
  await act("leat/start");
  await page.locator('.connection[data-state="connected"]').waitFor();
  await act("gate/open");
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  assert.equal(Number(await answers(page).last().getAttribute("data-len")), facts.slow.length);
  assert.equal((await wantReloadedSame(page)).messages.length, 4);
  await filmed(page);
  await wantClean(page, { console: networkErrors });
});

test("3c. history on reconnect: OpenClaw is killed in the middle of an answer", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-PLAIN");
  await idle(page);
  await act("gate/close");
  await ask(page, "please do SCRIPT-SLOW");
  await says(page, "fox jumps");
  await mark(answers(page).last());
  await act("openclaw/kill");
  await act("gate/open");
  await act("openclaw/start");
  await says(page, facts.slow.slice(-20), 240_000); // OpenClaw needs time to continue
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  // OpenClaw continues by itself, in a run that repeats the output; the visible text before it stays.
  const { messages } = await wantReloadedSame(page);
  const text = messages.slice(3).flatMap((m) => m.parts).map((p) => p.text).join("");
  assert.ok(text.endsWith(facts.slow) && text.length > facts.slow.length, text);
  assert.equal(messages.filter((m) => m.role === "user").length, 2);
  await filmed(page);
  await page.reload();
  await says(page, facts.slow.slice(-20));
  await wantReloadedSame(page);
  await ask(page, "please do SCRIPT-PLAIN");
  await idle(page);
  assert.match(await answers(page).last().innerText(), /plain answer/);
  await wantClean(page);
});

test("4. tool calls: cards that run and end, with what they were given and gave", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-WORK");
  const tools = page.locator(".tool");
  const runs = tools.first();
  await runs.waitFor();
  assert.match(await runs.innerText(), /exec/);
  await runs.getByRole("img", { name: "running" }).waitFor();
  await page.evaluate(() => { window.folding = true; });
  await runs.getByRole("button").first().click();
  await runs.getByText("begun", { exact: true }).waitFor();
  assert.match(await runs.innerText(), /while \[ ! -e go \]/);
  await act("tool/go");
  await runs.getByRole("img", { name: "done" }).waitFor();
  await runs.getByText(/^begun\nover/).waitFor();
  await idle(page);
  assert.equal(await tools.count(), 3);
  // For OpenClaw, a command with a bad exit code has ended normally, and its code is shown. A tool that returned an error has
  // failed.
  await tools.nth(1).getByRole("button").first().click();
  assert.match(await tools.nth(1).innerText(), /oh no\n+\(Command exited with code 3\)/);
  await tools.nth(2).getByRole("img", { name: "failed" }).waitFor();
  await tools.nth(2).getByRole("button").first().click();
  assert.match(await tools.nth(2).innerText(), /File not found/);
  const log = await page.locator(".log").innerText();
  assert.ok(log.indexOf("I begin with this.") < log.indexOf("And now what fails.") && log.indexOf("And now") < log.indexOf("That was all."), log);
  await wantReloadedSame(page);
  await filmed(page);
  await page.reload();
  await tools.nth(2).waitFor();
  assert.equal(await runs.getByRole("img", { name: "done" }).count(), 1);
  await wantReloadedSame(page);
  await wantClean(page);
});

test("5a. errors: the model refuses", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-ERROR");
  await failed(page, /provider rejected the request/, /different words or files/, /rejected the request/);
  await idle(page);
  await goesOn(page);
  await wantClean(page);
});

test("5b. errors: OpenClaw refused the gateway’s credentials", async () => {
  const page = await open("locked");
  await ask(page, "please do SCRIPT-PLAIN");
  await failed(page, /refused the gateway’s credentials/, /to fix the credentials/, /refused the connection/); // only operators see the upstream's error text
  await wantReloadedSame(page);
  // The page still works: with another agent, in another conversation.
  await page.getByRole("button", { name: "New conversation" }).first().click();
  page.expected = 0;
  await goesOn(page);
  await wantClean(page);
});

test("5c. errors: stopped in the middle of an answer", async () => {
  const page = await open();
  await act("gate/close");
  await ask(page, "please do SCRIPT-SLOW");
  await says(page, "fox jumps");
  await mark(answers(page).last());
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText(/Stopped( by you)? after/).waitFor();
  await act("gate/open");
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  const length = await answers(page).first().getAttribute("data-len");
  await goesOn(page);
  assert.equal(await answers(page).first().getAttribute("data-len"), length);
  await filmed(page);
  await wantClean(page);
});

/** The end of the turn shows what happened, what to do, and the cause on demand. */
async function failed(page, label, todo, cause) {
  const end = page.locator(".turn-end");
  await end.waitFor({ timeout: 90_000 });
  assert.match(await end.innerText(), label);
  assert.match(await end.innerText(), todo);
  await page.evaluate(() => { window.folding = true; });
  await end.getByRole("button", { name: "Details" }).click();
  assert.match(await end.innerText(), cause);
}

async function goesOn(page) {
  await ask(page, "please do SCRIPT-PLAIN");
  await idle(page);
  assert.match(await answers(page).last().innerText(), /plain answer/);
  await wantReloadedSame(page);
}
