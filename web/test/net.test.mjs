// What becomes of answers and messages when the network, the gateway or the page fails, in a real browser over the real gateway.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { allowed, answer, articles, ask, closeBrowser, composer, current, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { Network } from "./proxy.mjs";
import { RawBrowser } from "./raw.mjs";
import { watch } from "./watch.mjs";

const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const networkErrors = { console: /ERR_CONNECTION_REFUSED|WebSocket connection|ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|Failed to load resource|ERR_CONNECTION_CLOSED/ };
// How long the tab is in the background, in seconds: a whole minute where all is tested.
const background = process.env.LEAT_FULL ? 60 : 10;

/** A stream that a test pushes into a conversation, word by word. */
class Push {
  constructor(gateway, id) {
    this.text = "";
    const body = new ReadableStream({ start: (c) => (this.control = c) });
    this.done = fetch(`${gateway.url}/api/conversations/${id}/turns?dialect=eliza-actions`, { method: "POST", body, duplex: "half" }).then((r) => r.text());
    this.done.catch(() => {}); // a gateway that is killed takes it along
  }

  say(text) {
    this.text += text;
    this.control.enqueue(new TextEncoder().encode(`${JSON.stringify({ type: "chunk", text })}\n`));
  }

  async end() {
    this.control.enqueue(new TextEncoder().encode(`${JSON.stringify({ type: "done" })}\n`));
    this.control.close();
    await this.done;
  }
}

/** The connection as it is shown. */
const words = (page, text) => page.locator(".connection .words", { hasText: text });
const entry = (page, id) => page.locator(".list li", { has: page.locator(`a[href$="${id}"]`) });
const shows = (page, length) => page.waitForFunction((n) => Number([...document.querySelectorAll("article.assistant")].at(-1)?.dataset.len) === n, length);

async function textOf(gateway, id) {
  const { transcript } = await gateway.transcript(id);
  return transcript.messages.map((m) => `${m.role}: ${m.parts.filter((p) => p.kind === "text").map((p) => p.text).join("")}`);
}

if (lacking) {
  test("the dashboard over a bad network", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start([], { LEAT_DRAIN: "3s" });
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });
  // A gateway that a test has taken down is there for the next one.
  const restartAfter = (t) => t.after(async () => {
    await gateway.kill();
    await gateway.run();
  });
  const network = async (t) => {
    const n = await Network.start(gateway);
    t.after(() => n.close());
    return n;
  };

  test("a reload in the middle of an answer", async () => {
    const id = await gateway.conversation(`reload-${Date.now()}`, "Reload");
    const page = await open(gateway, { path: `/#/c/${id}` });
    const push = new Push(gateway, id);
    push.say("One, two, ");
    await shows(page, push.text.length);
    await page.reload();
    await shows(page, push.text.length);
    push.say("three.");
    await shows(page, push.text.length);
    await push.end();
    await idle(page);
    assert.equal(await articles(page).count(), 1);
    assert.match(await answer(page).innerText(), /One, two, three\./);
    await wantClean(page);
  });

  test("a page that crashes in the middle of an answer, and is opened again", async () => {
    const page = await open(gateway);
    await ask(page, "long 6");
    await page.getByText("Section 2", { exact: true }).waitFor();
    const url = page.url();
    const crashed = new Promise((r) => page.once("crash", r));
    const devtools = await page.context().newCDPSession(page);
    devtools.send("Page.crash").catch(() => {}); // no gateway is left to answer
    await crashed;
    const reopened = await open(gateway, { path: new URL(url).hash });
    await reopened.getByText("Section 2", { exact: true }).waitFor();
    await idle(reopened);
    const { transcript } = await gateway.transcript(current(reopened));
    assert.equal(await articles(reopened).count(), 2);
    assert.equal(Number(await answer(reopened).getAttribute("data-len")), transcript.messages[1].parts[0].text.length);
    await page.context().close();
    await wantClean(reopened);
  });

  test("two tabs and a second browser show the same at every step", async (t) => {
    const id = await gateway.conversation(`step-${Date.now()}`, "In step");
    const path = `/#/c/${id}`;
    const second = await chromium.launch({ executablePath: browserPath, args: flags });
    t.after(() => second.close());
    const firstTab = await open(gateway, { path });
    const two = await firstTab.context().newPage();
    await two.goto(gateway.url + path);
    const other = Object.assign(await second.newPage({ viewport: { width: 1280, height: 800 } }), { said: [], elsewhere: [] });
    await other.addInitScript(watch);
    await other.addInitScript(() => localStorage.setItem("leat.reading", '"off"'));
    await other.goto(gateway.url + path);
    const pages = [firstTab, two, other];
    const push = new Push(gateway, id);
    const steps = ["# A title\n\n", "Some *words*, ", "and `code`.\n\n- a\n- b\n", "\n| a | b |\n|---|---|\n| 1 | 2 |\n", "\nThe end."];
    for (const s of steps) {
      push.say(s);
      await Promise.all(pages.map((p) => shows(p, push.text.length)));
      const texts = await Promise.all(pages.map((p) => answer(p).locator(".text").innerText()));
      assert.deepEqual(texts, Array(3).fill(texts[0]));
    }
    await push.end();
    // What one says and stops, the others see.
    await ask(other, "long 4000");
    for (const p of pages) await p.getByText("Section 1", { exact: true }).waitFor();
    await two.getByRole("button", { name: "Stop" }).click();
    for (const p of pages) await p.getByText(/^Stopped/).waitFor();
    for (const p of pages) await p.waitForFunction(() => document.querySelector(".log").dataset.open === "0");
    const texts = await Promise.all(pages.map((p) => answer(p).locator(".text").innerText()));
    assert.deepEqual(texts, Array(3).fill(texts[0]));
    for (const p of pages) assert.equal(await articles(p).count(), 3);
    assert.deepEqual(await two.evaluate(() => window.faults), []);
    await wantClean(other);
    await wantClean(firstTab);
  });

  test("lists show new, renamed, unread, read and deleted conversations without further requests", async () => {
    const desk = await open(gateway);
    const phone = await open(gateway);
    const requests = [];
    for (const p of [desk, phone]) p.on("request", (r) => r.method() === "GET" && /\/api\/conversations$/.test(r.url()) && requests.push(r.url()));
    const title = `echo ${crypto.randomUUID()}`;
    await ask(desk, title);
    await idle(desk);
    const id = current(desk);
    await entry(phone, id).getByText(title).waitFor();
    await entry(phone, id).getByRole("img", { name: "Unread" }).waitFor({ state: "detached" }); // the same user reads it
    const requestCount = requests.length;

    await gateway.call(`/api/conversations/${id}`, { title: "A better name" }, "PATCH");
    for (const p of [desk, phone]) await entry(p, id).getByText("A better name").waitFor();
    await desk.getByRole("heading", { level: 1, name: "A better name" }).waitFor();
    await desk.getByRole("button", { name: "New conversation" }).click();
    // The gateway marks messages as read until the desk's socket has reported that it left the conversation.
    const unread = (p) => entry(p, id).getByRole("img", { name: "Unread" });
    while (await unread(phone).count() === 0) {
      await gateway.call(`/api/conversations/${id}/commands`, { type: "inject", message: { role: "assistant", text: "something new" } });
      await Promise.race([unread(phone).waitFor(), new Promise((r) => setTimeout(r, 2000))]);
    }
    for (const p of [desk, phone]) await unread(p).waitFor();
    await phone.locator(`.list a[href$="${id}"]`).click();
    await phone.getByText("something new").last().waitFor();
    for (const p of [desk, phone]) await unread(p).waitFor({ state: "detached" });
    await gateway.call(`/api/conversations/${id}/commands`, { type: "delete" });
    for (const p of [desk, phone]) await entry(p, id).waitFor({ state: "detached" });
    await phone.getByText("This conversation was deleted.").waitFor();
    assert.equal(requests.length, requestCount, `the list was asked for again: ${requests}`);
    await wantClean(desk);
    await wantClean(phone);
  });

  test("the gateway is killed in the middle of an answer, and comes back", async (t) => {
    restartAfter(t);
    const page = await open(gateway);
    await ask(page, "long 4000");
    await page.getByText("Section 2", { exact: true }).waitFor();
    const shownLength = Number(await answer(page).getAttribute("data-len"));
    await gateway.kill();
    await words(page, /^ ?Reconnecting( in \d+ s)?$/).waitFor();
    await page.getByRole("status").getByText("Connection lost. Reconnecting.").waitFor();
    await composer(page).fill("a draft that stays");
    await gateway.run();
    await idle(page);
    await words(page, "Live").waitFor();
    assert.ok(Number(await answer(page).getAttribute("data-len")) >= shownLength);
    assert.match(await answer(page).innerText(), /Interrupted/i);
    assert.equal(await composer(page).inputValue(), "a draft that stays");
    await page.reload();
    await page.getByText("Section 2", { exact: true }).waitFor();
    assert.equal(await composer(page).inputValue(), "a draft that stays");
    await wantClean(page, networkErrors);
  });

  test("after the gateway is killed during a tool call, nothing is shown as running", async (t) => {
    restartAfter(t);
    const page = await open(gateway);
    await ask(page, "tool");
    await page.locator(".tool").first().waitFor();
    await gateway.kill();
    await words(page, "Reconnecting").waitFor();
    await answer(page).locator(".alive").getByText("Waiting for the connection").waitFor();
    assert.equal(await answer(page).locator(".clock").count(), 0, "no clock counts while nobody knows what runs");
    await gateway.run();
    await idle(page);
    assert.match(await answer(page).innerText(), /Interrupted/i);
    assert.equal(await page.locator('[aria-busy="true"]').count(), 0);
    await ask(page, "echo and on");
    await idle(page);
    assert.match(await answer(page).innerText(), /and on/);
    await wantClean(page, networkErrors);
  });

  test("the page shows that the gateway restarts, and continues afterwards", async (t) => {
    restartAfter(t);
    const page = await open(gateway);
    await ask(page, "long 4000");
    await page.getByText("Section 1", { exact: true }).waitFor();
    const exit = gateway.kill("SIGTERM");
    await words(page, "Gateway restarting").waitFor();
    const shownLength = Number(await answer(page).getAttribute("data-len"));
    await exit;
    await words(page, "Gateway restarting").waitFor();
    await ask(page, "echo said meanwhile");
    await words(page, "Gateway restarting · 1 message waiting").waitFor();
    await gateway.run();
    await idle(page);
    await words(page, "Live").waitFor();
    assert.ok(Number(await page.locator("article.assistant").first().getAttribute("data-len")) >= shownLength);
    assert.match(await answer(page).innerText(), /said meanwhile/);
    assert.equal((await textOf(gateway, current(page))).filter((m) => m === "user: echo said meanwhile").length, 1);
    await wantClean(page, networkErrors);
  });

  test("offline messages wait, can be changed or removed, and are sent once", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "echo first");
    await idle(page);
    const id = current(page);
    net.refuse();
    await page.context().setOffline(true);
    await words(page, "Offline").waitFor();
    for (const text of ["echo secnod", "echo never mind", "echo third"]) {
      await composer(page).fill(text);
      await composer(page).press("Enter");
    }
    await words(page, "Offline · 3 messages wait").waitFor();
    const userMessage = (text) => page.locator("article.user", { hasText: text });
    await allowed(page, "go", async () => {
      await userMessage("never mind").getByRole("button", { name: "Delete" }).click();
      await userMessage("never mind").waitFor({ state: "detached" });
    });
    await allowed(page, "shrink", async () => {
      await userMessage("secnod").getByRole("button", { name: "Edit", exact: true }).click();
      await page.getByRole("textbox", { name: "Message waiting to be sent" }).fill("echo second");
      await page.keyboard.press("Enter");
      await userMessage("echo second").getByText("Waiting to be sent").waitFor();
    });
    await words(page, "Offline · 2 messages wait").waitFor();
    net.pass();
    await page.context().setOffline(false);
    page.expected = 3;
    await idle(page);
    await words(page, "Live").waitFor();
    const want = ["user: echo first", "assistant: first", "user: echo second", "user: echo third", "assistant: second", "assistant: third"].sort();
    assert.deepEqual((await textOf(gateway, id)).sort(), want);
    assert.equal(await articles(page).count(), 6);
    await wantClean(page, networkErrors);
  });

  test("waiting messages survive closing the page, also the first of a new conversation", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "echo before");
    await idle(page);
    const old = current(page);
    net.refuse();
    await words(page, "Reconnecting").waitFor();
    await composer(page).fill("echo waits");
    await composer(page).press("Enter");
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("heading", { name: "How can I help?" }).waitFor();
    await composer(page).fill("echo a new beginning");
    await composer(page).press("Enter");
    await page.locator("article.user", { hasText: "a new beginning" }).getByText("Waiting to be sent").waitFor();
    await words(page, "2 messages wait").waitFor();
    const newConversation = current(page);
    assert.notEqual(newConversation, old);
    const context = page.context();
    await page.close();
    net.pass();
    const laterPage = await context.newPage();
    await laterPage.goto(`${net.url}/#/c/${newConversation}`);
    await laterPage.locator("article.assistant", { hasText: "a new beginning" }).waitFor();
    await idle(laterPage);
    await laterPage.locator(`.list a[href$="${old}"]`).click();
    await laterPage.locator("article.assistant", { hasText: "waits" }).waitFor();
    laterPage.expected = 2;
    await idle(laterPage);
    assert.deepEqual(await textOf(gateway, newConversation), ["user: echo a new beginning", "assistant: a new beginning"]);
    assert.deepEqual(await textOf(gateway, old), ["user: echo before", "assistant: before", "user: echo waits", "assistant: waits"]);
    assert.deepEqual(await laterPage.evaluate(() => [window.faults, Object.keys(localStorage).filter((k) => k.startsWith("leat:outbox"))]), [[], []]);
    await context.close();
  });

  test("repeated disconnects during an answer: nothing is doubled, lost or redrawn", async (t) => {
    const net = await network(t);
    const id = await gateway.conversation(`cut-${Date.now()}`, "Cut");
    const page = await open(net, { path: `/#/c/${id}` });
    const push = new Push(gateway, id);
    for (let i = 0; i < 6; i++) {
      push.say(`Part ${i}, before the cut. `);
      await shows(page, push.text.length);
      net.disconnect();
      push.say(`Part ${i}, after it. `);
      await shows(page, push.text.length);
    }
    await push.end();
    await idle(page);
    assert.equal(await articles(page).count(), 1);
    assert.equal((await answer(page).locator(".text").innerText()).trim(), push.text.trim());
    await wantClean(page, networkErrors);
  });

  // The bound that the client states is 22 s.
  test("a connection that stalls without a close is detected and replaced", { timeout: 180_000 }, async (t) => {
    const net = await network(t);
    const id = await gateway.conversation(`stall-${Date.now()}`, "Stall");
    const page = await open(net, { path: `/#/c/${id}` });
    const push = new Push(gateway, id);
    push.say("Seen. ");
    await shows(page, push.text.length);
    const began = Date.now();
    net.halfOpen();
    push.say("Said into the dark. ");
    await page.waitForFunction(() => document.querySelector(".connection").dataset.kind === "silent", undefined, { timeout: 60_000, polling: 50 });
    await shows(page, push.text.length);
    const took = Date.now() - began;
    if (process.env.LEAT_QUIET) assert.ok(took < 24_000, `it took ${took} ms`);
    t.diagnostic(`noticed and mended after ${took} ms`);
    await push.end();
    await idle(page);
    await wantClean(page, networkErrors);
  });

  test("loading older messages over a dead connection reports the failure and succeeds when retried", { timeout: 240_000 }, async (t) => {
    const net = await network(t);
    const id = `reads-${Date.now()}`;
    await gateway.conversation(id, "Reads");
    await gateway.call(`/api/conversations/${id}/import`, { messages: Array.from({ length: 300 }, (_, n) => ({ role: n % 2 ? "assistant" : "user", text: `Message ${n}.` })) });
    const page = await open(net);
    await page.clock.install();
    await page.goto(`${net.url}/#/c/${id}`);
    await page.reload();
    await page.getByText("Message 299.").waitFor();
    await ask(page, "echo looked into");
    await idle(page);
    await answer(page).getByRole("button", { name: "Inspect" }).click();
    await page.getByRole("tab", { name: "Events" }).click();
    await page.getByRole("button", { name: "Save as a recording" }).waitFor();
    const log = page.locator(".log");
    const firstMessage = page.locator("article[data-message]").first();

    net.stall();
    const save = page.getByRole("button", { name: "Save as a recording" });
    await save.click();
    const scrollUp = async () => {
      await page.mouse.wheel(0, -4000);
      await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
    };
    const loadButton = log.getByRole("button", { name: /Earlier messages|Try again/ });
    await log.hover();
    while (await loadButton.count() === 0) await scrollUp();
    await scrollUp();
    // As much later as it takes, by the page's clock alone.
    const waitForFailure = async (label) => {
      for (let i = 0; i < 10 && await label.count() === 0; i++) await page.clock.fastForward(10_000);
      await label.waitFor();
    };
    await waitForFailure(page.getByText("Couldn’t save the file: no data from the gateway for 30 s."));
    await waitForFailure(page.getByText("Couldn’t load earlier messages: no data from the gateway for 30 s"));
    await log.locator("button.wide", { hasText: "Try again" }).waitFor();
    net.pass();
    const [download] = await Promise.all([page.waitForEvent("download"), save.click()]);
    assert.match(download.suggestedFilename(), /\.jsonl$/);
    await log.hover();
    while (!/Message 0\./.test(await firstMessage.innerText())) await scrollUp(); // scrolling asks again, as the button does
    assert.equal(await page.getByText("Earlier messages did not come").count(), 0);
    await wantClean(page, networkErrors);
  });

  test("a message sent during a stall arrives soon, and once", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "echo first");
    await idle(page);
    await page.waitForFunction(() => performance.now() > 6000); // what was heard just now is believed
    const began = Date.now();
    net.halfOpen();
    await ask(page, "echo second");
    await page.getByText("Sending").waitFor();
    await idle(page);
    const took = Date.now() - began;
    if (process.env.LEAT_QUIET) assert.ok(took < 15_000, `it took ${took} ms`);
    assert.deepEqual(await textOf(gateway, current(page)), ["user: echo first", "assistant: first", "user: echo second", "assistant: second"]);
    await wantClean(page, networkErrors);
  });

  test("Stop shows its progress, even without a connection, and can be pressed twice", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "long 4000");
    await page.getByText("Section 1", { exact: true }).waitFor();
    net.refuse();
    await words(page, "Reconnecting").waitFor();
    const stop = page.getByRole("button", { name: "Stop" });
    await stop.click();
    await page.getByText("The answer is stopped when the connection is back").waitFor();
    await stop.click();
    net.pass();
    await page.getByText(/^Stopped/).waitFor();
    await idle(page);
    await page.locator(".running-note").waitFor({ state: "detached" });
    const { transcript } = await gateway.transcript(current(page));
    assert.equal(transcript.turns[0].outcome, "cancelled");
    await wantClean(page, networkErrors);
  });

  test("a page that is behind shows by how much, and catches up", async (t) => {
    const net = await network(t);
    const id = await gateway.conversation(`behind-${Date.now()}`, "Behind", [["user", "Seen."]]);
    const page = await open(net, { path: `/#/c/${id}` });
    await page.getByText("Seen.").waitFor();
    net.refuse();
    await words(page, "Reconnecting").waitFor();
    for (let i = 0; i < 60; i++) await gateway.call(`/api/conversations/${id}/commands`, { type: "inject", message: { role: "assistant", text: `${i}: ${"words ".repeat(1000)}` } });
    await page.getByRole("button", { name: "Retry now" }).click(); // before the page can connect by itself, which removes the button
    await allowed(page, "go", async () => { // up, out of view
      const backlogShown = page.waitForFunction(() => document.querySelector(".connection .words").innerText.includes("Behind by 60 events · catching up"), undefined, { timeout: 60_000 });
      net.pass();
      net.slow(40_000);
      await backlogShown;
      await words(page, "Live").waitFor({ timeout: 60_000 });
      await page.getByText("59: words").waitFor();
    });
    await wantClean(page, networkErrors);
  });

  test("a silent turn is reported, with the duration", async () => {
    const id = await gateway.conversation(`quiet-${Date.now()}`, "Quiet", [["user", "Seen."]]);
    const page = await open(gateway, { path: `/#/c/${id}` });
    await page.clock.install();
    await page.reload();
    await page.getByText("Seen.").waitFor();
    const push = new Push(gateway, id);
    push.say("A word. ");
    await shows(page, push.text.length);
    // As if the page slept for so long. The clock also runs by itself, so neither duration is close to the limit of 45 s.
    await page.clock.fastForward(20_000);
    await page.clock.runFor(2000);
    assert.equal(await page.locator(".running-note").count(), 0);
    await page.clock.fastForward(30_000);
    await page.locator(".running-note", { hasText: /Nothing received for (\d+ min )?\d+ s\. The connection is fine/ }).waitFor();
    push.say("Another one. ");
    await shows(page, push.text.length);
    await page.locator(".running-note").waitFor({ state: "detached" });
    await push.end();
    await idle(page);
    await wantClean(page, networkErrors);
  });

  test(`a tab in the background for ${background} s`, { timeout: 240_000 }, async (t) => {
    const id = await gateway.conversation(`background-${Date.now()}`, "Background", [["user", "Write."]]);
    const browser = new RawBrowser(browserPath, flags);
    t.after(() => browser.close());
    const tab = await browser.tab(`${gateway.url}/#/c/${id}`, `(${watch})();
      window.frames60 = 0;
      const count = () => { window.frames60++; requestAnimationFrame(count); };
      requestAnimationFrame(count);
      document.addEventListener("visibilitychange", () => {
        if (!document.hidden) requestAnimationFrame(() => setTimeout(() => { window.seenAtOnce = Number(document.querySelector("article.assistant")?.dataset.len); }));
      });
      window.WebSocket = class extends WebSocket {
        constructor(...args) {
          super(...args);
          this.addEventListener("message", ({ data }) => { window.hasEnd ||= String(data).includes('"turn.end"'); });
        }
      };`);
    await tab.waitFor(`document.querySelector('.connection[data-state="connected"]') !== null`);
    const push = new Push(gateway, id);
    push.say("Before. ");
    await tab.waitFor(`Number(document.querySelector("article.assistant")?.dataset.len) === ${push.text.length}`);
    const front = await browser.tab("about:blank");
    await front.activate();
    await tab.waitFor("document.hidden");
    const frames = await tab.eval("window.frames60");
    for (let i = 0; i < background * 10; i++) {
      push.say(`Word ${i}. `);
      await new Promise((r) => setTimeout(r, 100)); // the agent's pace
    }
    await push.end();
    await tab.waitFor("window.hasEnd"); // a page in the background can receive it late
    assert.equal(await tab.eval("document.hidden"), true);
    assert.ok((await tab.eval("window.frames60")) - frames <= 2, "a hidden page has no frames");
    const { transcript } = await gateway.transcript(id);
    assert.equal(transcript.messages[1].parts[0].text, push.text);
    await tab.activate();
    await tab.waitFor("window.seenAtOnce !== undefined");
    assert.equal(await tab.eval("window.seenAtOnce"), push.text.length, "all is there with the first frame");
    assert.equal(await tab.eval(`document.querySelectorAll("article.message").length`), 2);
    assert.equal(await tab.eval(`document.querySelector("article.assistant .text").innerText.trim()`), push.text.trim());
    await tab.waitFor(`document.querySelector('.connection[data-state="connected"]') !== null`);
    assert.deepEqual(await tab.eval("window.faults"), []);
  });
}
