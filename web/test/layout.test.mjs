// Windows without room for the list and the inspector next to the conversation: what is on top, and what is reachable.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { ask, closeBrowser, composer, Gateway, idle, lacking, looks, open, wantClean } from "./harness.mjs";

const medium = { width: 800, height: 800 };
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

const rail = (page) => page.getByRole("navigation", { name: "Conversations" });
const opener = (page) => page.getByRole("button", { name: /^Conversations/ });
const searchBox = (page) => page.getByRole("searchbox", { name: "Find a conversation" });
const width = async (page) => Math.round((await rail(page).boundingBox()).width);
const focused = (page, locator) => locator.evaluate((e) => e === document.activeElement);
const inert = (page) => page.locator("[inert]").count();
const waitUntilHidden = (locator) => locator.waitFor({ state: "hidden" });

if (lacking) {
  test("the layout", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
    await gateway.conversation("garden", "Garden", [["user", "What to sow?"], ["assistant", "Peas."]]);
    await gateway.conversation("house", "House", [["user", "What to mend?"], ["assistant", "The roof."]]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("at a medium width the list is a strip of named buttons and opens over the page", async () => {
    const page = await open(gateway, { path: "/#/c/garden", viewport: medium });
    await page.getByText("Peas.").waitFor();
    assert.equal(await width(page), 56);
    for (const name of ["New conversation", "Overview", "Search and commands", "Settings", "Keyboard shortcuts"]) {
      const button = rail(page).getByRole("button", { name, exact: true });
      assert.ok((await button.getAttribute("title")).length > 0, `${name} has a tooltip`);
      const box = await button.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 56 && box.width >= 28 && box.height >= 28, `${name} fits: ${JSON.stringify(box)}`);
    }
    await waitUntilHidden(searchBox(page));
    assert.equal(await rail(page).getByRole("link").count(), 0, "what is not seen can't be reached");
    await page.getByRole("button", { name: "Conversations, some unread" }).waitFor(); // the other one

    await opener(page).focus();
    await page.keyboard.press("Enter");
    await searchBox(page).waitFor();
    assert.equal(await opener(page).getAttribute("aria-expanded"), "true");
    assert.equal(await width(page), 320);
    assert.equal((await page.locator("main").boundingBox()).x, 56, "the conversation stays where it is");
    assert.equal(await page.locator("main").evaluate((m) => m.inert), true);
    await page.keyboard.press("Escape");
    await waitUntilHidden(searchBox(page));
    assert.equal(await inert(page), 0);
    assert.ok(await focused(page, opener(page)));

    // Also if no element has the focus, and by a click outside.
    await opener(page).click();
    await searchBox(page).waitFor();
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("Escape");
    await waitUntilHidden(searchBox(page));
    await opener(page).click();
    await searchBox(page).waitFor();
    await page.mouse.click(700, 400);
    await waitUntilHidden(searchBox(page));
    assert.equal(await inert(page), 0);

    await opener(page).click();
    await rail(page).getByRole("link", { name: "House" }).click();
    await page.getByText("The roof.").waitFor();
    await waitUntilHidden(searchBox(page));
    assert.equal(await inert(page), 0);
    await wantClean(page);
  });

  test("when the window gets wide enough, the list is next to the conversation", async () => {
    const page = await open(gateway, { path: "/#/c/garden", viewport: medium });
    await opener(page).click();
    await searchBox(page).waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.waitForFunction(() => !document.querySelector("[inert]") && !document.querySelector(".shade"));
    assert.equal(await width(page), 248);
    await searchBox(page).waitFor();
    await opener(page).waitFor({ state: "hidden" });
    await composer(page).fill("there");
    await wantClean(page);
  });

  test("at a medium width the inspector covers the conversation", async () => {
    const page = await open(gateway, { viewport: medium });
    await ask(page, "ask");
    await page.locator(".ask").waitFor();
    const inspectButton = page.getByRole("button", { name: "Inspect the current answer" });
    const inside = page.getByRole("complementary", { name: "Answer details" });
    await inspectButton.click();
    await inside.getByRole("heading", { name: "Answer details" }).waitFor();
    const place = await inside.boundingBox();
    assert.ok(place.x >= 56 && Math.round(place.x + place.width) === 800, JSON.stringify(place));
    assert.equal(await page.locator(".talk").evaluate((e) => e.inert), true);
    // Escape closes it, wherever the focus is, and stops nothing.
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("Escape");
    await waitUntilHidden(inside);
    assert.equal(await inert(page), 0);
    assert.ok(await focused(page, inspectButton));
    await page.keyboard.press("Enter");
    await inside.waitFor();
    await page.keyboard.press("Escape");
    await waitUntilHidden(inside);
    assert.ok(await focused(page, inspectButton));
    await inspectButton.click();
    await inside.waitFor();
    await page.mouse.click(200, 400);
    await waitUntilHidden(inside);
    await page.locator(".ask").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText(/^Stopped by you/).waitFor();
    await wantClean(page, { console: /404/ });
  });

  for (const [label, options] of [["a medium width", { viewport: medium }], ["a phone", phone]]) {
    test(`at ${label} opening a layer from the list closes the list`, async () => {
      const page = await open(gateway, { path: "/#/c/garden", ...options });
      await page.getByText("Peas.").waitFor();
      for (const [button, layer] of [["Settings", "Settings"], ["Keyboard shortcuts", "Keyboard shortcuts"], ["Search and commands", "Search and commands"], ["Settings", "Settings"]]) {
        await opener(page).click();
        await searchBox(page).waitFor();
        await rail(page).getByRole("button", { name: button, exact: true }).click();
        const sheet = page.getByRole("dialog", { name: layer });
        await sheet.waitFor();
        await page.waitForFunction(() => !document.querySelector(".layout[data-rail]"));
        await page.keyboard.press("Escape");
        await waitUntilHidden(sheet);
        assert.equal(await inert(page), 0, button);
        assert.ok(await focused(page, opener(page)), `${button}: the focus goes back to where the list was opened`);
      }
      await opener(page).click();
      await rail(page).getByRole("button", { name: "Overview" }).click();
      await page.getByRole("region", { name: "Live turns" }).waitFor();
      await waitUntilHidden(searchBox(page));
      assert.equal(await inert(page), 0);
      await wantClean(page);
    });
  }

  for (const [label, options] of [["a medium width", { viewport: medium }], ["a phone", phone]]) {
    test(`at ${label} related elements are aligned and not covered`, async () => {
      const page = await open(gateway, { path: "/#/c/house", ...options });
      await page.getByText("The roof.").waitFor();
      const question = page.getByRole("article").filter({ hasText: "What to mend?" });
      const [field, log, message] = await Promise.all([page.locator(".composer .field"), page.locator(".log > .column"), question.locator(".bubble")].map((l) => l.boundingBox()));
      const reply = await page.getByRole("article").filter({ hasText: "The roof." }).boundingBox();
      assert.ok(Math.abs(field.x - reply.x) <= 1 && Math.abs(field.x + field.width - reply.x - reply.width) <= 1, `the composer is aligned with the answers: ${JSON.stringify([field, log, reply])}`);
      assert.ok(Math.abs(field.x + field.width - message.x - message.width) <= 1 && message.x > field.x + 20, `a question stands at the right: ${JSON.stringify([field, message])}`);
      const middle = async (l) => { const b = await l.boundingBox(); return b.y + b.height / 2; };
      assert.ok(Math.abs(await middle(composer(page)) - await middle(page.getByRole("button", { name: "Send", exact: true }))) <= 1, "the words stand beside the button");
      if (options === phone) {
        const [acts, next] = await Promise.all([question.locator(".acts"), page.getByText("The roof.")].map((l) => l.boundingBox()));
        assert.ok(acts.y >= message.y + message.height && acts.y + acts.height <= next.y, `the buttons of a message cover nothing: ${JSON.stringify([message, acts, next])}`);
      }
      await wantClean(page);
    });
  }

  for (const [theme, isNarrow] of looks) {
    const w = isNarrow ? 800 : 1100;
    test(`accessible at ${w} px: ${theme}`, async () => {
      const page = await open(gateway, { colorScheme: theme, viewport: { width: w, height: 800 } });
      await accessible(page, "empty");
      await ask(page, "tool");
      await idle(page);
      await accessible(page, "an answer");
      await opener(page).click();
      await searchBox(page).waitFor();
      await accessible(page, "the list");
      await page.keyboard.press("Escape");
      await page.getByRole("article").filter({ hasText: "There are 20 files." }).getByRole("button", { name: "Inspect" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("treeitem").nth(2).waitFor();
      await accessible(page, "the inspector");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Overview" }).click();
      await page.getByRole("region", { name: "Live turns" }).waitFor();
      await accessible(page, "the overview");
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "it is not wider than the window");
      await wantClean(page, { console: /404/ });
    });
  }
}
