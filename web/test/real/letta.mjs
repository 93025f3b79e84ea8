// The four display problems of the seed letta-streaming, and its three issues, in a real browser, through Leat, against a real Letta
// App Server. A turn has three groups, as the seed calls them: what a step of the model thinks, says and calls.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { ask, closeBrowser, idle, wantClean } from "../harness.mjs";
import { act, answers, filmed, mark, open, redrawn, wantReloadedSame, says } from "./stage.mjs";

after(closeBrowser);

const groups = [/Let me look at what is there\./, /Now I make it\./, /The memory block cameron is there now,/];

/** Opens a page in the middle of the third group: two groups are complete and one grows. */
async function middle() {
  const page = await open();
  await act("tool/wait");
  await act("gate/close");
  await ask(page, "please do SCRIPT-HELD");
  return page;
}

const texts = (page) => answers(page).allInnerTexts();
const growing = (page) => answers(page).evaluateAll((elements) => elements.map((a) => a.getAttribute("aria-busy") === "true"));

test("Problem 1, one slot: what is complete and what grows are shown together", async () => {
  const page = await middle();
  await says(page, "Let me look at what is there.");
  await act("tool/go");
  await says(page, "is there now,");
  const shownTexts = await texts(page);
  assert.equal(shownTexts.length, 3);
  groups.forEach((g, i) => assert.match(shownTexts[i], g));
  assert.deepEqual(await growing(page), [false, false, true]);
  for (const i of [0, 1]) assert.equal(await answers(page).nth(i).locator(".tool").count(), 1);
  await act("gate/open");
  await idle(page);
  // In every scene, earlier content is still shown.
  const scenes = await filmed(page);
  let before = [];
  for (const scene of scenes) {
    const ids = scene.map((m) => m.id);
    assert.deepEqual(ids.slice(0, before.length), before);
    before = ids;
  }
  assert.ok(scenes.some((s) => s.filter((m) => !m.mine && !m.growing && m.text).length === 2 && s.at(-1).growing), "two complete messages next to a growing one");
  await wantClean(page);
});

test("Problem 2, messages that disappear after completion: everything visible stays, in the same elements", async () => {
  const page = await middle();
  await act("tool/go");
  await says(page, "is there now,");
  for (const i of [0, 1, 2]) assert.ok(await mark(answers(page).nth(i)) > 1);
  const before = await texts(page);
  await act("gate/open");
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  const currentTexts = await texts(page);
  assert.equal(currentTexts.length, 3);
  before.forEach((t, i) => groups[i] && assert.match(currentTexts[i], groups[i], t));
  assert.match(currentTexts[2], /and it is empty\./);
  await wantReloadedSame(page);
  await ask(page, "please do SCRIPT-PLAIN");
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  assert.equal(await answers(page).count(), 4);
  await page.reload();
  await answers(page).nth(3).waitFor();
  const reloadedTexts = await texts(page);
  groups.forEach((g, i) => assert.match(reloadedTexts[i], g));
  await wantReloadedSame(page);
  await filmed(page);
  await wantClean(page);
});

test("Problem 3, finalisation: a group is complete when the next begins, not when its kind changes", async () => {
  const page = await middle();
  const firstAnswer = answers(page).first();
  await firstAnswer.locator(".tool").getByRole("img", { name: "running" }).waitFor();
  // One message has all three kinds of part, and still grows.
  assert.equal(await answers(page).count(), 1);
  assert.deepEqual(await growing(page), [true]);
  assert.equal(await firstAnswer.locator(".reasoning").count(), 1);
  assert.match(await firstAnswer.innerText(), groups[0]);
  await act("tool/go");
  await act("gate/open");
  await idle(page);
  const scenes = await filmed(page);
  const ids = scenes.at(-1).filter((m) => !m.mine).map((m) => m.id);
  assert.equal(ids.length, 3);
  ids.forEach((id, i) => {
    const of = scenes.map((s) => s.find((m) => m.id === id)).filter(Boolean);
    assert.deepEqual(of.at(-1).parts, i < 2 ? ["reasoning", "text", "tool"] : ["reasoning", "text"]);
    // A message becomes complete once, with its final content.
    const complete = of.find((m) => !m.growing);
    assert.deepEqual(complete.parts, of.at(-1).parts);
    if (i < 2) assert.ok(scenes.find((s) => s.some((m) => m.id === id && !m.growing)).some((m) => m.id === ids[i + 1]), "complete before the next group began");
  });
  await wantClean(page);
});

test("Problem 4, fetching from the server: nothing is asked for after the stream, and nothing comes twice", async () => {
  const page = await open();
  page.asked.length = 0;
  await ask(page, "please do SCRIPT-GROUPS");
  await idle(page);
  const firstTexts = await texts(page);
  await ask(page, "please do SCRIPT-PLAIN"); // the effects of the first end are over when this returns
  await idle(page);
  assert.deepEqual(page.asked, ["sent subscribe", "received snapshot"]); // of the conversation, before its first word
  assert.deepEqual((await texts(page)).slice(0, 3).map((t) => t.replace(/\s+/g, " ")), firstTexts.map((t) => t.replace(/\s+/g, " ")));
  assert.equal(await answers(page).count(), 4);
  for (const g of groups) assert.equal((await texts(page)).filter((t) => g.test(t)).length, 1);
  await wantReloadedSame(page);
  await filmed(page);
  await wantClean(page);
});

test("Issue 1, messages still disappear during streaming: at its own pace, no scene lacks what one before it had", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-GROUPS");
  await idle(page);
  const scenes = await filmed(page);
  const lengths = new Map(); // the number of letters by message id
  for (const scene of scenes) {
    for (const [id, text] of lengths) {
      const message = scene.find((m) => m.id === id);
      assert.ok(message, `${id} is gone`);
      assert.ok(message.text.length >= text.length - 24, `${message.text}\nafter\n${text}`);
    }
    for (const m of scene) lengths.set(m.id, m.text);
  }
  assert.equal(lengths.size, 4);
  await wantReloadedSame(page);
  await wantClean(page);
});

test("Issue 2, messages don't reappear after completion: they never went, and are there again for who comes later", async () => {
  const page = await open();
  await ask(page, "please do SCRIPT-GROUPS");
  await idle(page);
  const textsBefore = await texts(page);
  assert.equal(textsBefore.length, 3);
  groups.forEach((g, i) => assert.match(textsBefore[i], g));
  await wantReloadedSame(page);
  const other = await page.context().newPage();
  await other.goto(page.url());
  await answers(other).nth(2).waitFor();
  const textsOfOther = await texts(other);
  assert.equal(textsOfOther.length, 3);
  groups.forEach((g, i) => assert.match(textsOfOther[i], g));
  await wantReloadedSame(other);
  await filmed(page);
  await wantClean(page);
});

test("Issue 3, flicker between phases: from reasoning to text to tool to the next, no part is rendered again", async () => {
  const page = await open();
  await act("tool/wait");
  await act("gate/close");
  await ask(page, "please do SCRIPT-HELD");
  await answers(page).first().locator(".tool").getByRole("img", { name: "running" }).waitFor();
  assert.equal(await mark(answers(page).first()) >= 4, true); // the message, its reasoning, its text, its tool
  await act("tool/go");
  await says(page, "is there now,");
  assert.deepEqual(await redrawn(page), []);
  for (const i of [1, 2]) await mark(answers(page).nth(i));
  await act("gate/open");
  await idle(page);
  assert.deepEqual(await redrawn(page), []);
  const scenes = await filmed(page);
  // Every phase was seen: reasoning, then text, then a tool call in each group.
  for (const phase of ["reasoning", "reasoning,text", "reasoning,text,tool"]) assert.ok(scenes.some((s) => s.some((m) => !m.mine && m.parts.join() === phase)), phase);
  await wantReloadedSame(page);
  await wantClean(page);
});
