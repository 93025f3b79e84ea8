// No user's text is lost on its way, in a real browser over the real gateway.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { allowed, answer, ask, chooseAgent, closeBrowser, composer, current, editor, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { Network } from "./proxy.mjs";

const networkErrors = { console: /ERR_|WebSocket connection|Failed to load resource/ };
const words = (page, text) => page.locator(".connection .words", { hasText: text });
const userMessage = (page, text) => page.locator("article.user", { hasText: text });
const attach = (page, name = "note.txt") => page.getByLabel("Attach files").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from("words") });
const chip = (page, name = "note.txt") => page.getByRole("list", { name: "Attachments" }).getByRole("listitem").filter({ hasText: name });
const writes = (page) => page.waitForFunction(() => document.activeElement?.id === "composer");

if (lacking) {
  test("sending", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `steered=plugin:node ${fileURLToPath(new URL("steered.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });
  const network = async (t) => {
    const n = await Network.start(gateway);
    t.after(() => n.close());
    return n;
  };
  const userTexts = async (id) => (await gateway.transcript(id)).transcript.messages.filter((m) => m.role === "user").map((m) => m.parts[0].text);

  test("Stop and Send without a connection both survive closing the page", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "long 4000");
    await page.getByText("Section 1", { exact: true }).waitFor();
    const id = current(page);
    await composer(page).fill("echo after it");
    await composer(page).press("Enter");
    await userMessage(page, "after it").getByText("Queued").waitFor();
    net.refuse();
    await words(page, "Reconnecting").waitFor();
    await composer(page).fill("echo in its place");
    await page.getByRole("button", { name: "Stop and send" }).click();
    await userMessage(page, "in its place").waitFor();
    const context = page.context();
    await page.close();
    net.pass();
    const laterPage = await context.newPage();
    await laterPage.goto(`${net.url}/#/c/${id}`);
    await laterPage.locator("article.assistant", { hasText: "in its place" }).waitFor({ timeout: 90_000 });
    await idle(laterPage); // the text shows before the turn has ended
    assert.deepEqual(await userTexts(id), ["long 4000", "echo after it", "echo in its place"]);
    const { transcript } = await gateway.transcript(id);
    assert.deepEqual(transcript.turns.filter((turn) => !turn.parent).map((turn) => turn.outcome), ["cancelled", "completed", "completed"]);
    await context.close();
  });

  test("an edit of an earlier message that waits for a connection survives closing the page and is sent once", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "echo frist");
    await idle(page);
    const id = current(page);
    net.refuse();
    await words(page, "Reconnecting").waitFor();
    const change = async (from, to) => {
      await composer(from).press("ArrowUp");
      await editor(from).fill(to);
      await editor(from).press("Enter");
      await from.getByText("Sending your edited message").waitFor();
    };
    await change(page, "echo first");
    const context = page.context();
    await page.close();
    net.pass();
    const laterPage = await context.newPage();
    await laterPage.goto(`${net.url}/#/c/${id}`);
    await laterPage.waitForFunction(() => document.getElementById("composer")?.value === "echo first");
    assert.deepEqual(await userTexts(id), ["echo frist"]);
    await composer(laterPage).fill("");
    await userMessage(laterPage, "frist").waitFor();
    net.refuse();
    await words(laterPage, "Reconnecting").waitFor();
    await change(laterPage, "echo at last");
    // A user who opens another conversation meanwhile doesn't find the text twice.
    await laterPage.getByRole("button", { name: "New conversation" }).click();
    await laterPage.getByRole("heading", { name: "How can I help?" }).waitFor();
    await laterPage.goBack();
    await userMessage(laterPage, "frist").waitFor();
    assert.equal(await composer(laterPage).inputValue(), "");
    net.pass();
    await userMessage(laterPage, "at last").waitFor({ timeout: 60_000 });
    await laterPage.waitForFunction(() => !Object.keys(localStorage).some((k) => k.startsWith("leat.draft")));
    assert.deepEqual(await userTexts(id), ["echo at last"]);
    await context.close();
  });

  test("a draft is deleted with its conversation, wherever that is deleted; others stay", async () => {
    const page = await open(gateway);
    const context = page.context();
    const go = async (p, id) => {
      await p.locator(`.list a[href$="${id}"]`).click();
      await p.waitForFunction((id) => location.hash.endsWith(id) && document.getElementById("composer")?.value === "", id);
    };
    const ids = ["here", "tab", "browser", "away", "stays"].map((name) => `draft-${name}-${Date.now()}`);
    for (const id of ids) await gateway.conversation(id, id);
    for (const id of ids) {
      await go(page, id);
      await composer(page).fill(`a draft of ${id}`);
      await page.waitForFunction((id) => Object.entries(localStorage).some(([k, v]) => k.endsWith(id) && v === `a draft of ${id}`), id);
    }
    const [sameTab, tab, browser, away, stays] = ids;
    const keeps = (p, want) => p.waitForFunction((want) => Object.keys(localStorage).filter((k) => k.startsWith("leat.draft")).map((k) => k.replace(/.*:/, "")).sort().join() === want.sort().join(), want);
    await page.evaluate((away) => localStorage.setItem(Object.keys(localStorage).find((k) => k.endsWith(away)) + ".sent", "a change that waits"), away);
    await keeps(page, [...ids, `${away}.sent`]);

    const remove = async (p, id) => {
      const entry = p.locator(".list li", { has: p.locator(`a[href$="${id}"]`) });
      await entry.hover();
      await entry.getByRole("button", { name: /^Options for/ }).click();
      await p.getByRole("menuitem", { name: "Delete" }).click();
      await p.getByRole("button", { name: "Delete", exact: true }).click();
      await p.locator(`.list a[href$="${id}"]`).waitFor({ state: "detached" });
    };
    await remove(page, sameTab);
    await keeps(page, [tab, browser, away, `${away}.sent`, stays]);
    // An open conversation with a draft in the composer.
    await page.locator(`.list a[href$="${tab}"]`).click();
    await page.waitForFunction((tab) => document.getElementById("composer")?.value === `a draft of ${tab}`, tab);
    const second = await context.newPage();
    await second.goto(gateway.url);
    await second.locator(`.list a[href$="${tab}"]`).waitFor();
    await remove(second, tab);
    await page.getByText("This conversation was deleted.").waitFor();
    await keeps(page, [browser, away, `${away}.sent`, stays]);
    await gateway.call(`/api/conversations/${browser}/commands`, { type: "delete" });
    await keeps(page, [away, `${away}.sent`, stays]);
    await second.close();
    await page.close();
    await gateway.call(`/api/conversations/${away}/commands`, { type: "delete" });
    const laterPage = await context.newPage();
    await laterPage.goto(gateway.url);
    await keeps(laterPage, [stays]);
    await context.close();
  });

  test("a refused message is kept over a reload and can be discarded", async () => {
    const page = await open(gateway);
    await ask(page, "echo one");
    await idle(page);
    const id = current(page);
    await page.evaluate((id) => localStorage.setItem("leat.agents", JSON.stringify({ [id]: "nobody" })), id);
    await page.reload();
    await answer(page).waitFor();
    await composer(page).fill("echo two");
    await composer(page).press("Enter");
    await userMessage(page, "echo two").getByText("Not sent").waitFor();
    await page.reload();
    await userMessage(page, "echo two").getByText("Not sent").waitFor();
    await allowed(page, "go", async () => {
      await userMessage(page, "echo two").getByRole("button", { name: "Discard" }).click();
      await userMessage(page, "echo two").waitFor({ state: "detached" });
    });
    await writes(page);
    assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((k) => k.startsWith("leat:outbox"))), []);
    assert.deepEqual(await userTexts(id), ["echo one"]);
    await wantClean(page);
  });

  test("a file that is uploaded while a message is edited stays", async () => {
    const page = await open(gateway);
    await ask(page, "echo one");
    await idle(page);
    let go;
    const may = new Promise((r) => (go = r));
    await page.route(/\/api\/conversations\/[^/]+\/files/, async (route) => {
      await may;
      await route.continue();
    });
    const there = page.waitForResponse(/\/api\/conversations\/[^/]+\/files/);
    await attach(page);
    await chip(page).waitFor();
    await composer(page).press("ArrowUp");
    await editor(page).waitFor();
    go();
    await (await there).finished();
    await page.getByRole("button", { name: "Cancel" }).click();
    await editor(page).waitFor({ state: "detached" });
    await chip(page).getByText(/^5 B$/).waitFor();
    await ask(page, "files");
    await idle(page);
    await answer(page).getByText(/note\.txt/).first().waitFor();
    await wantClean(page);
  });

  test("an agent chosen after a file was attached answers, also later messages", async () => {
    const page = await open(gateway);
    await attach(page);
    await chip(page).getByText(/^5 B$/).waitFor();
    await chooseAgent(page, "steered");
    await ask(page, "once");
    await idle(page);
    const { transcript } = await gateway.transcript(current(page));
    assert.deepEqual(transcript.turns.filter((t) => !t.parent).map((t) => t.agent), ["steered"]);
    await page.getByRole("button", { name: "Agent: steered" }).waitFor();
    await wantClean(page);
  });

  test("the focus returns to the composer when a pressed button disappears", async (t) => {
    const net = await network(t);
    const page = await open(net);
    await ask(page, "fail");
    await idle(page);
    await page.locator(".turn-end").getByRole("button", { name: "Try again" }).focus();
    await page.keyboard.press("Enter");
    await writes(page);
    await page.waitForFunction(() => document.querySelector(".log")?.dataset.open === "0" && document.querySelector(".turn-end button"));
    net.refuse();
    await words(page, "Reconnecting").waitFor();
    await composer(page).fill("echo one");
    await composer(page).press("Enter");
    const edit = async () => {
      await userMessage(page, "echo one").getByRole("button", { name: "Edit", exact: true }).click();
      await page.getByRole("textbox", { name: "Message waiting to be sent" }).waitFor();
    };
    await edit();
    await page.keyboard.press("Enter");
    await writes(page);
    await edit();
    await page.getByRole("button", { name: "Cancel" }).click();
    await writes(page);
    await edit();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await writes(page);
    await allowed(page, "go", async () => {
      await userMessage(page, "echo one").getByRole("button", { name: "Delete" }).click();
      await userMessage(page, "echo one").waitFor({ state: "detached" });
    });
    await writes(page);
    net.pass();
    await wantClean(page, networkErrors);
  });

  test("an upload beyond the limit of concurrent ones waits and continues", async () => {
    const page = await open(gateway);
    let refusals = 2;
    await page.route(/\/api\/conversations\/[^/]+\/files/, (route) => (refusals-- > 0 ? route.fulfill({ status: 429, contentType: "application/json", body: '{"error":"too many at once","reason":"rate_limited"}' }) : route.continue()));
    await attach(page);
    await chip(page).getByText(/^5 B$/).waitFor();
    await wantClean(page, networkErrors);
  });

  test("a conversation that begins with only a file is in every list", async () => {
    const other = await open(gateway);
    const page = await open(gateway);
    await attach(page);
    await chip(page).getByText(/^5 B$/).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    page.expected = 1;
    await idle(page);
    for (const p of [page, other]) await p.locator(`.list a[href$="${current(page)}"]`).waitFor();
    await wantClean(page);
    await wantClean(other);
  });

  test("keys are named as on the keyboard", async () => {
    const page = await open(gateway);
    const title = async (name) => {
      await ask(page, "long 4000");
      await answer(page).getByText("Section 1", { exact: true }).waitFor();
      await composer(page).fill("more");
      const text = await page.locator("button.other").getAttribute("title");
      assert.match(text, name);
      await composer(page).fill("");
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await page.waitForFunction(() => document.querySelector(".log")?.dataset.open === "0");
    };
    await title(/\(Ctrl\+Enter\)$/);
    await page.addInitScript(() => Object.defineProperty(Navigator.prototype, "platform", { get: () => "MacIntel" }));
    await page.reload();
    await answer(page).waitFor();
    await title(/\(⌘Enter\)$/);
    await wantClean(page);
  });
}
