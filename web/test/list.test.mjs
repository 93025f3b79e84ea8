// The list of conversations: groups, pin, archive, marks, selection; and the menus.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { chooseOption, closeBrowser, Gateway, lacking, open, wantClean } from "./harness.mjs";

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const group = (page, name) => page.getByRole("region", { name, exact: true });
const link = (within, title) => within.getByRole("link", { name: title });
const focusedName = (page) => page.evaluate(() => document.activeElement.dataset.name ?? document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText);
const waitForFocus = (page, name) => page.waitForFunction((n) => (document.activeElement.dataset.name ?? document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText).startsWith(n), name, { timeout: 60_000 });

if (lacking) {
  test("the list", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", "demo?speed=0"]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("pin and archive are kept on the gateway and shown on another device", async () => {
    for (const id of ["oak", "elm", "ash"]) await gateway.conversation(id, `The ${id}`, [["assistant", `I am the ${id}.`]]);
    const page = await open(gateway, { path: "/#/c/ash" });
    const other = await open(gateway, phone);
    await other.getByRole("button", { name: /^Conversations/ }).click();
    await link(group(page, "Today"), "The oak").waitFor();
    await chooseOption(page, "The oak", "Pin");
    await link(group(page, "Pinned"), "The oak").waitFor();
    assert.deepEqual((await gateway.call("/api/conversations/oak")).conversation.metadata, { pinned: true });
    await link(group(other, "Pinned"), "The oak").waitFor();
    await page.waitForFunction(() => document.activeElement.matches('.list a[href="#/c/oak"]')); // the focus follows the entry
    await accessible(page, "pinned");

    // By keyboard.
    await link(page, "The elm").focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await waitForFocus(page, "Rename");
    await accessible(page, "the menu of an entry");
    await page.keyboard.press("a");
    await waitForFocus(page, "Archive");
    await page.keyboard.press("Enter");
    await link(page, "The elm").waitFor({ state: "detached" });
    await link(other, "The elm").waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement.matches(".list a")); // the next entry
    await page.keyboard.press("Alt+ArrowUp");
    await page.getByText("I am the oak.").waitFor(); // the archive isn't in between

    // The archive: search finds it, and it is at the end of the list.
    await page.getByRole("searchbox").fill("elm");
    await link(group(page, "Archive"), "The elm").waitFor();
    await page.getByRole("searchbox").fill("");
    await other.getByRole("button", { name: "Archive 1" }).click();
    await link(group(other, "Archive"), "The elm").waitFor();
    assert.equal(await link(other, "The oak").count(), 0);
    await accessible(other, "the archive on a phone");
    await other.getByRole("button", { name: "Options for The elm" }).click();
    await other.getByRole("menuitem", { name: "Move out of the archive" }).click();
    await link(group(page, "Today"), "The elm").waitFor();
    await link(group(other, "Today"), "The elm").waitFor(); // an empty archive is left
    await chooseOption(page, "The oak", "Unpin");
    await group(other, "Pinned").waitFor({ state: "detached" });
    assert.equal((await gateway.call("/api/conversations/oak")).conversation.metadata?.pinned, undefined);
    await wantClean(other);
    await wantClean(page);
  });

  test("a conversation that waits for a person is marked, until it is answered or stopped", async () => {
    for (const id of ["waits", "stops"]) await gateway.call("/api/conversations", { id, title: `It ${id}`, agent: "demo" });
    const page = await open(gateway);
    const mark = (title) => page.locator(".list li", { has: link(page, title) }).getByRole("img", { name: "Awaiting approval" });
    for (const [id, end] of [["waits", (turn, request) => ({ type: "answer", turn, request, decision: "deny" })], ["stops", (turn) => ({ type: "stop", turn })]]) {
      const { turn } = await gateway.call(`/api/conversations/${id}/commands`, { type: "send", message: { text: "ask" } });
      await mark(`It ${id}`).waitFor();
      assert.equal((await gateway.call("/api/conversations")).conversations.find((c) => c.id === id).waiting, true);
      await accessible(page, "awaiting approval");
      const { transcript } = await gateway.transcript(id);
      await gateway.call(`/api/conversations/${id}/commands`, end(turn, transcript.turns.find((t) => t.id === turn).requests[0].id));
      await mark(`It ${id}`).waitFor({ state: "detached" });
    }
    await wantClean(page);
  });

  test("several conversations are archived and deleted together", async () => {
    for (const n of [1, 2, 3, 4]) await gateway.conversation(`batch-${n}`, `Batch ${n}`, [["assistant", `I am ${n}.`]]);
    const page = await open(gateway, { path: "/#/c/batch-4" });
    await chooseOption(page, "Batch 1", "Select");
    await page.waitForFunction(() => document.activeElement.matches("input:checked"));
    const bar = page.getByRole("group", { name: "Selection" });
    await bar.getByText("1 selected").waitFor();
    await page.getByRole("checkbox", { name: /Batch 2/ }).check();
    await accessible(page, "selection");
    await bar.getByRole("button", { name: "Archive" }).click();
    await bar.waitFor({ state: "detached" });
    await link(page, "Batch 1").waitFor({ state: "detached" });
    assert.equal(await link(page, "Batch 2").count(), 0);

    await chooseOption(page, "Batch 3", "Select");
    await page.getByRole("checkbox", { name: /Batch 4/ }).check();
    await bar.getByRole("button", { name: "Delete", exact: true }).click();
    await bar.getByText("Delete 2 conversations?").waitFor();
    await waitForFocus(page, "Cancel");
    await accessible(page, "asking before several are deleted");
    await page.keyboard.press("Escape");
    await bar.getByText("2 selected").waitFor();
    await bar.getByRole("button", { name: "Delete", exact: true }).click();
    await bar.getByRole("button", { name: "Delete", exact: true }).click();
    await bar.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "How can I help?" }).waitFor(); // the open one was among them
    const ids = (await gateway.call("/api/conversations")).conversations.map((c) => c.id);
    assert.deepEqual(["batch-1", "batch-2", "batch-3", "batch-4"].map((id) => ids.includes(id)), [true, true, false, false]);
    await wantClean(page);
  });

  test("the agents are a menu: arrows, Home, End, the first letter, Escape", async () => {
    const page = await open(gateway);
    const button = page.getByRole("button", { name: "Agent: test" });
    await button.focus();
    await page.keyboard.press("ArrowDown");
    await waitForFocus(page, "test"); // the selected one
    await accessible(page, "the agents");
    const [demo, selected] = ["demo", "test"].map((name) => page.getByRole("menuitemradio", { name: new RegExp(`^${name}`) }));
    assert.match(await demo.innerText(), /without a model/);
    assert.match(await selected.innerText(), /Available/);
    assert.equal(await selected.getAttribute("aria-checked"), "true");
    for (const [key, name] of [["ArrowDown", "demo"], ["ArrowDown", "test"], ["Home", "demo"], ["End", "test"], ["d", "demo"]]) {
      await page.keyboard.press(key);
      assert.equal(await focusedName(page), name, key);
    }
    await page.keyboard.press("Escape");
    await page.getByRole("menu").waitFor({ state: "detached" });
    assert.equal(await focusedName(page), "Agent: test");
    await page.keyboard.press("ArrowUp");
    await waitForFocus(page, "test");
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Agent: demo" }).waitFor();
    await waitForFocus(page, "Agent: demo");
    await page.getByRole("button", { name: "Agent: demo" }).click();
    await page.getByRole("heading", { name: "How can I help?" }).click();
    await page.getByRole("menu").waitFor({ state: "detached" }); // a click outside closes it
    await wantClean(page);
  });

  test("an agent that can't be reached is unavailable, and the menu says why", async () => {
    const faulty = await Gateway.start(["--agent", "dead=http://127.0.0.1:1/chat"]);
    try {
      await faulty.call("/api/conversations", { id: "c", agent: "dead" });
      await faulty.call("/api/conversations/c/commands", { type: "send", message: { text: "hi" } });
      const page = await open(faulty, { path: "/#/c/c" });
      await page.getByText("The agent can’t be reached").first().waitFor();
      await page.getByRole("button", { name: "Agent: dead" }).click();
      const item = page.getByRole("menuitemradio", { name: /^dead/ });
      await item.getByText("Unavailable").waitFor();
      assert.match(await item.innerText(), /refused/);
      await accessible(page, "an agent is unavailable");
      await page.context().close();
    } finally {
      await faulty.close();
    }
  });

  test("on a phone the menu of the header has everything, and titles are whole", async () => {
    const title = "A title that is much too long for one line of the list on a phone";
    await gateway.conversation("long", title, [["assistant", "I am long."]]);
    const page = await open(gateway, { path: "/#/c/long", ...phone });
    await page.getByText("I am long.").waitFor();
    await page.getByRole("button", { name: "More" }).click();
    const menu = page.getByRole("menu", { name: "More" });
    for (const name of ["Find in the conversation", "Save as Markdown", "Save as JSON"]) await menu.getByRole("menuitem", { name }).waitFor();
    await menu.getByRole("menuitemradio", { name: /^demo/ }).waitFor();
    await accessible(page, "the menu of the header on a phone");
    const box = await menu.boundingBox();
    assert.equal(Math.round(box.x + box.width), 360);
    assert.equal(Math.round(box.y + box.height), 740);
    await menu.getByRole("menuitem", { name: "Find in the conversation" }).click();
    await page.getByRole("textbox", { name: "Find in the conversation" }).waitFor();
    await page.getByRole("button", { name: /^Conversations/ }).click();
    const text = link(page, title).locator(".title");
    await text.waitFor();
    assert.deepEqual(await text.evaluate((e) => [e.scrollWidth <= e.clientWidth, e.scrollHeight <= e.clientHeight]), [true, true]);
    await accessible(page, "the list on a phone");
    await wantClean(page);
  });
}
