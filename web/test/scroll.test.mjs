// Scrolling of the log: the page scrolls while it follows the end, and never after the reader has scrolled away. Every way to leave
// the end and to return, while messages arrive and an answer grows.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { ask, closeBrowser, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const repeat = (n, item) => Array.from({ length: n }, (_, i) => item(i));

// The position of the log: at its end, or the first visible message and its position on the screen.
const viewState = (page) => page.evaluate(async () => {
  const log = document.querySelector(".log");
  const frame = () => new Promise((r) => requestAnimationFrame(r));
  // Wait until scrolling that the reader started has ended.
  for (let [last, unchanged] = [NaN, 0]; unchanged < 12; [last, unchanged] = [log.scrollTop, log.scrollTop === last ? unchanged + 1 : 0]) await frame();
  const edge = log.getBoundingClientRect().top;
  const topMessage = [...document.querySelectorAll("article[data-message]")].find((a) => a.getBoundingClientRect().bottom > edge);
  return { end: log.scrollHeight - log.scrollTop - log.clientHeight <= 1, first: topMessage.dataset.message, top: Math.round(topMessage.getBoundingClientRect().top) };
});

// Moves a finger vertically.
async function finger(page, from, to) {
  const session = await page.context().newCDPSession(page);
  const touch = (type, y) => session.send("Input.dispatchTouchEvent", { type, touchPoints: y === undefined ? [] : [{ x: 700, y }] });
  await touch("touchStart", from);
  for (let i = 1; i <= 10; i++) await touch("touchMove", from + ((to - from) * i) / 10);
  await touch("touchEnd");
  await session.detach();
}

const button = (page) => page.locator(".to-end");
const toEnd = (page, move) => async () => {
  for (let i = 0; i < 200 && (await button(page).count()) > 0; i++) await move();
};
const wheel = async (page, y) => {
  await page.locator(".log").hover();
  await page.mouse.wheel(0, y);
};
/** Turns the wheel and waits until the log has moved. */
const wheelAway = async (page, y) => {
  const before = await page.locator(".log").evaluate((log) => log.scrollTop);
  await wheel(page, y);
  await page.waitForFunction((top) => document.querySelector(".log").scrollTop !== top, before);
};
const press = async (page, key) => {
  await page.locator(".log").focus();
  await page.keyboard.press(key);
};

const away = {
  "the wheel": (page) => wheel(page, -300),
  "a finger": (page) => finger(page, 300, 500),
  PageUp: (page) => press(page, "PageUp"),
  Home: (page) => press(page, "Home"),
  ArrowUp: (page) => press(page, "ArrowUp"),
  "a selection": async (page) => {
    const box = await page.locator("article[data-message] p").last().boundingBox();
    await page.mouse.move(box.x + 4, box.y + 6);
    await page.mouse.down();
    await page.mouse.move(box.x + 90, box.y + 8, { steps: 4 });
    await page.mouse.up();
    assert.notEqual(await page.evaluate(() => String(getSelection())), "");
  },
};
const waysBack = {
  "the wheel": (page) => toEnd(page, () => wheel(page, 300))(),
  "a finger": (page) => toEnd(page, () => finger(page, 500, 150))(),
  End: (page) => press(page, "End"),
  "the button": (page) => button(page).click(),
};

if (lacking) {
  test("scrolling of the log", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `steered=plugin:node ${fileURLToPath(new URL("steered.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  const fillConversation = (id, agent) => gateway.call("/api/conversations", { id, title: id, agent }).then(async () => {
    for (const text of repeat(24, (i) => `Message ${i}. ${"Some words to fill a line. ".repeat(8)}`)) await inject(id, text);
  });
  const command = (id, c) => gateway.call(`/api/conversations/${id}/commands`, c);
  const inject = (id, text) => command(id, { type: "inject", message: { role: "assistant", text } });

  for (const [i, [go, wayBack]] of [["the wheel", "the wheel"], ["a finger", "a finger"], ["PageUp", "End"], ["Home", "the button"], ["ArrowUp", "the wheel"], ["a selection", "the button"]].entries()) {
    test(`new text doesn't scroll a reader who left the end with ${go}, and follows one who came back with ${wayBack}`, async () => {
      const id = `away-${i}`;
      await fillConversation(id, "steered");
      await command(id, { type: "send", message: { role: "user", text: "go on" } });
      const page = await open(gateway, { path: `/#/c/${id}`, hasTouch: true });
      await page.getByText("Begun: go on").waitFor();
      // The agent adds the message to its growing answer.
      const grow = async (words) => {
        await command(id, { type: "send", message: { role: "user", text: `${words} ${"and so on ".repeat(60)}` } });
        await page.getByText(`You said ${words}`).waitFor({ state: "attached" });
      };
      await grow("zero");
      assert.equal((await viewState(page)).end, true, "it follows");
      assert.equal(await button(page).count(), 0);

      await away[go](page);
      await button(page).waitFor();
      await button(page).and(page.getByText("Jump to end · answering", { exact: true })).waitFor();
      const firstView = await viewState(page);
      assert.equal(firstView.end, ["ArrowUp", "a selection"].includes(go), "it moved, unless only the focus or the selection did");
      for (const n of ["first", "second", "third"]) await inject(id, `The ${n} of three. ${"More words. ".repeat(60)}`);
      await page.getByText("The third of three.").waitFor({ state: "attached" });
      await button(page).and(page.getByText("3 new · answering", { exact: true })).waitFor();
      assert.deepEqual(await viewState(page), { ...firstView, end: false });
      await grow("one");
      assert.deepEqual(await viewState(page), { ...firstView, end: false });

      await waysBack[wayBack](page);
      await button(page).waitFor({ state: "detached" });
      assert.equal((await viewState(page)).end, true);
      await grow("two");
      await inject(id, `The last one. ${"More words. ".repeat(60)}`);
      await page.getByText("The last one.").waitFor();
      assert.equal((await viewState(page)).end, true, "it follows again");
      assert.equal(await button(page).count(), 0);
      await wantClean(page);
    });
  }

  test("dragging the scrollbar leaves the end and returns to it", async (t) => {
    const id = "scrollbar";
    await fillConversation(id);
    const scrollbarBrowser = await chromium.launch({ executablePath: browserPath, args: flags, ignoreDefaultArgs: ["--hide-scrollbars"] });
    t.after(() => scrollbarBrowser.close());
    const page = await scrollbarBrowser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(`${gateway.url}/#/c/${id}`);
    await page.getByText("Message 23.").waitFor();
    assert.equal((await viewState(page)).end, true);
    const bar = await page.locator(".log").evaluate((log) => {
      const box = log.getBoundingClientRect();
      const thumb = (log.clientHeight / log.scrollHeight) * log.clientHeight;
      return { x: box.right - 5, y: box.bottom - thumb / 2, thumb, wide: log.offsetWidth - log.clientWidth };
    });
    assert.ok(bar.wide > 0, "there is a scrollbar");
    await page.mouse.move(bar.x, bar.y);
    await page.mouse.down();
    await page.evaluate(() => new Promise((r) => setTimeout(r, 1200))); // longer than the page's own scrolling lasts
    await page.mouse.move(bar.x, bar.y - 150, { steps: 5 });
    await button(page).waitFor();
    const firstView = await viewState(page);
    assert.equal(firstView.end, false);
    await inject(id, `One more. ${"More words. ".repeat(60)}`);
    await page.getByText("One more.").waitFor({ state: "attached" });
    assert.deepEqual(await viewState(page), firstView, "what comes does not take it away");
    await page.mouse.move(bar.x, bar.y + 400, { steps: 5 });
    await button(page).waitFor({ state: "detached" });
    await page.mouse.up();
    await inject(id, `The last one. ${"More words. ".repeat(60)}`);
    await page.getByText("The last one.").waitFor();
    assert.equal((await viewState(page)).end, true, "it follows again");
  });

  test("a reopened conversation is at its last scroll position, or at its end if that was followed", async () => {
    for (const id of ["left", "other"]) await fillConversation(id);
    const page = await open(gateway, { path: "/#/c/left" });
    const go = async (id) => {
      await page.locator(`.list a[href$="/${id}"]`).click();
      await page.waitForFunction((id) => location.hash === `#/c/${id}` && document.querySelector("article[data-message]"), id);
    };
    await page.getByText("Message 23.").waitFor();
    await wheelAway(page, -1200);
    await button(page).waitFor();
    const firstView = await viewState(page);
    assert.equal(firstView.end, false);
    await go("other");
    assert.equal((await viewState(page)).end, true);
    for (const n of ["first", "second"]) await inject("left", `The ${n} of two. ${"More words. ".repeat(60)}`);
    await go("left");
    await page.getByText("The second of two.").waitFor({ state: "attached" });
    assert.deepEqual(await viewState(page), firstView);
    await button(page).and(page.getByText("2 new", { exact: true })).waitFor();
    await wheelAway(page, -300); // now the reader scrolls
    const second = await viewState(page);
    assert.notDeepEqual(second, firstView);
    // Opening another view doesn't change it, and each conversation has its own position.
    await go("other");
    await wheelAway(page, -300);
    const there = await viewState(page);
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("heading", { name: "How can I help?" }).waitFor();
    await go("left");
    assert.deepEqual(await viewState(page), second);
    await button(page).click();
    await button(page).waitFor({ state: "detached" });
    await go("other");
    assert.deepEqual(await viewState(page), there);
    await go("left");
    await page.getByText("The second of two.").waitFor();
    assert.equal((await viewState(page)).end, true);
    assert.equal(await button(page).count(), 0);
    await wantClean(page);
  });

  test("a card that is expanded or collapsed keeps its header in place", async () => {
    const id = "cards";
    await fillConversation(id);
    const page = await open(gateway, { path: `/#/c/${id}` });
    await ask(page, "tool");
    await idle(page);
    const row = page.locator(".tool .row").first();
    const top = async () => {
      await viewState(page); // at rest
      return Math.round((await row.boundingBox()).y);
    };
    // At the end, which it pushes out of view.
    assert.equal((await viewState(page)).end, true);
    const at = await top();
    await row.click();
    await page.getByText("file 20").waitFor({ state: "attached" });
    assert.equal(await top(), at);
    await button(page).waitFor();
    await inject(id, "One more.");
    await page.getByText("One more.").waitFor({ state: "attached" });
    await button(page).and(page.getByText("1 new", { exact: true })).waitFor();
    assert.equal(await top(), at, "what comes does not take it away");
    await button(page).click();
    await button(page).waitFor({ state: "detached" });

    // Above the end.
    for (const n of repeat(12, (i) => `Afterwards ${i}. ${"Some words to fill a line. ".repeat(8)}`)) await inject(id, n);
    await page.getByText("Afterwards 11").waitFor();
    for (let i = 0; i < 100 && (await top()) < 150; i++) await wheel(page, -100);
    const there = await top();
    assert.ok(there >= 150);
    for (const open of ["false", "true"]) {
      await row.click();
      await page.locator(`.tool .row[aria-expanded="${open}"]`).first().waitFor();
      assert.equal(await top(), there);
    }
    assert.equal((await viewState(page)).end, false);
    await button(page).waitFor();
    await wantClean(page);
  });
}
