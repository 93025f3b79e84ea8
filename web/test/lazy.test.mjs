// Parts of the page that are fetched when they are first wanted, and can't be: as after an upgrade of the gateway under an open page, or
// without a connection.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { answer, ask, closeBrowser, composer, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const noise = { console: /ERR_FAILED|Failed to load resource|Failed to fetch dynamically imported module|error occurred in|Unable to preload/ };

// How each part is asked for, and what shows that it is there.
const parts = {
  Settings: [(page) => page.locator(".rail").getByRole("button", { name: "Settings" }).click(), (page) => page.getByRole("dialog", { name: "Settings" })],
  Palette: [(page) => page.keyboard.press("Control+k"), (page) => page.getByRole("dialog").getByRole("combobox")],
  Keys: [(page) => page.locator(".rail").getByRole("button", { name: "Keyboard shortcuts" }).click(), (page) => page.getByRole("dialog", { name: "Keyboard shortcuts" })],
  Find: [(page) => page.getByRole("button", { name: "Find in the conversation" }).click(), (page) => page.getByRole("textbox", { name: "Find in the conversation" })],
  Inspector: [(page) => answer(page).getByRole("button", { name: "Inspect" }).click(), (page) => page.getByRole("tree", { name: "Spans" })],
  Voice: [(page) => page.keyboard.press("Alt+v"), (page) => page.getByRole("region", { name: "Voice mode" })],
  Overview: [(page) => page.locator(".rail").getByRole("button", { name: "Overview" }).click(), (page) => page.getByRole("heading", { name: "Overview" })],
};

if (lacking) {
  test("chunks of the page", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  for (const [name, [want, there]] of Object.entries(parts)) {
    test(`${name}, if it can't be loaded, leaves the page usable and loads after a reload`, async () => {
      const page = await open(gateway);
      await ask(page, "echo what was said");
      await idle(page);
      await composer(page).fill("a draft");
      let refusals = 0;
      await page.route(new RegExp(`/ui/${name}-[^/]*\\.js$`), (route) => {
        refusals++;
        return route.abort();
      });
      await want(page);
      const alert = page.getByRole("alert").filter({ hasText: "This part of the page can’t be loaded." });
      await alert.waitFor();
      assert.ok(refusals > 0, "it was asked for");
      assert.equal(await page.locator(".rail .list a").count() > 0, true, "the list is there");
      if (name !== "Overview") {
        assert.match(await answer(page).innerText(), /what was said/);
        assert.equal(await composer(page).inputValue(), "a draft");
        // The page still works.
        await composer(page).fill("");
        await ask(page, "echo and on");
        await idle(page);
        assert.match(await answer(page).innerText(), /and on/);
      }
      await page.unrouteAll();
      await Promise.all([page.waitForEvent("load"), alert.getByRole("button", { name: "Reload the page" }).click()]);
      await page.locator('.connection[data-state="connected"]').or(there(page)).first().waitFor();
      if (name !== "Overview") {
        await answer(page).waitFor();
        await want(page);
      }
      await there(page).waitFor();
      assert.equal(await alert.count(), 0);
      await wantClean(page, noise);
    });
  }
}
