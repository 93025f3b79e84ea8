// The page writes nothing to the console unless its debug flag is set.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { answer, ask, closeBrowser, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("the console", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("warnings go to the console only while the flag is set", async () => {
    const page = await open(gateway);
    // If storage is full, messages are delivered, but would not survive a reload.
    await page.evaluate(() => {
      const setItem = Storage.prototype.setItem;
      window.refused = 0;
      Storage.prototype.setItem = function (name, value) {
        if (!name.startsWith("leat:outbox:")) return setItem.call(this, name, value);
        window.refused++;
        throw new DOMException("it is full", "QuotaExceededError");
      };
    });
    await ask(page, "echo unheard");
    await idle(page);
    assert.ok(await page.evaluate(() => window.refused) > 0, "there was something to tell");
    assert.match(await answer(page).innerText(), /unheard/);
    assert.deepEqual(page.said.filter((s) => !s.startsWith("verbose")), []);

    await page.evaluate(() => { localStorage["leat.debug"] = "1"; });
    const message = page.waitForEvent("console", { timeout: 60_000 });
    await ask(page, "echo heard");
    assert.match((await message).text(), /^leat: the message could not be stored and would be lost by a reload: QuotaExceededError: it is full/);
    await idle(page);
    assert.deepEqual(page.said.filter((s) => !/^verbose|^warning: leat: the message could not be stored/.test(s)), []);

    const before = page.said.length;
    await page.evaluate(() => localStorage.removeItem("leat.debug"));
    await ask(page, "echo unheard again");
    await idle(page);
    assert.deepEqual(page.said.slice(before).filter((s) => !s.startsWith("verbose")), []);
    await wantClean(page, { console: /would be lost by a reload/ });
  });
}
