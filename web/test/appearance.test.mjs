// The dashboard's appearance and accessibility.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { ask, chooseAgent, closeBrowser, composer, current, Gateway, idle, lacking, looks, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("the dashboard's appearance", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("an empty conversation introduces its agent, and a suggestion is sent by a click", async () => {
    const demoGateway = await Gateway.start(["--agent", "demo"]);
    try {
      const page = await open(demoGateway);
      const suggestions = page.getByRole("list", { name: "Suggestions" });
      await page.getByRole("button", { name: "Agent: test" }).waitFor();
      assert.equal(await suggestions.count(), 0, "this agent has none");
      await chooseAgent(page, "demo");
      await page.getByText("without a model").waitFor();
      assert.equal(await suggestions.getByRole("button").count(), 4);
      const [field, window] = await page.evaluate(() => [document.querySelector(".composer .field").getBoundingClientRect(), { width: innerWidth, height: innerHeight }].map((r) => r.toJSON?.() ?? r));
      assert.ok(field.top > window.height / 4 && field.bottom < 3 * window.height / 4, `the composer is in the middle: ${JSON.stringify(field)}`);
      await composer(page).fill("a draft");
      await suggestions.getByRole("button", { name: "What can you do?" }).click();
      await page.getByText("I'm the demo agent").waitFor();
      assert.equal(await composer(page).inputValue(), "a draft", "a suggestion is sent alone");
      await page.waitForFunction(() => document.querySelector(".composer").getBoundingClientRect().bottom === innerHeight);
      await wantClean(page);
    } finally {
      await demoGateway.close();
    }
  });

  for (const [theme, phone] of looks) {
    const name = `${theme}, ${phone ? "phone" : "wide"}`;
    test(`accessible in every state: ${name}`, async () => {
      const page = await open(gateway, { colorScheme: theme, viewport: phone ? { width: 360, height: 740 } : { width: 1280, height: 800 } });
      await accessible(page, "empty");
      await ask(page, "long 2");
      await page.getByText("Section 1", { exact: true }).waitFor();
      await accessible(page, "streaming");
      await idle(page);
      await ask(page, "tool");
      await idle(page);
      await page.locator(".tool").first().getByRole("button").first().click();
      await accessible(page, "tools");
      await ask(page, "fail");
      await idle(page);
      await ask(page, "ask");
      await page.getByRole("button", { name: "Allow" }).waitFor();
      await accessible(page, "an approval and an error");
      await page.getByRole("button", { name: "Deny" }).click();
      await idle(page);
      await page.getByRole("article").filter({ hasText: "There are 20 files." }).getByRole("button", { name: "Inspect" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("treeitem").nth(2).waitFor();
      await accessible(page, "the trace");
      await page.getByRole("tab", { name: "Events" }).click();
      await page.getByRole("slider").waitFor();
      await accessible(page, "the events");
      await page.keyboard.press("Escape");
      if (phone) {
        await page.getByRole("button", { name: "Conversations" }).click();
        await page.getByRole("searchbox").waitFor();
        await accessible(page, "the rail");
      }
      await page.getByRole("button", { name: "Overview" }).click();
      await page.getByRole("region", { name: "Live turns" }).waitFor();
      await page.waitForFunction(() => document.querySelector(".tile .value")?.textContent !== "–");
      await accessible(page, "the overview");
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "it is not wider than the window");
      await wantClean(page, { console: /404/ });
    });

    if (!phone) {
      for (const width of [768, 1024, 1920]) {
        test(`aligned at ${width} px: ${theme}`, async () => {
          const page = await open(gateway, { colorScheme: theme, viewport: { width, height: 900 } });
          const box = async (locator) => ({ ...(await locator.boundingBox()) });
          const fits = async (label) => {
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector(".log").scrollWidth <= document.querySelector(".log").clientWidth), true, `${label}: not wider than its place`);
            const [list, log, write] = await Promise.all([page.getByRole("navigation", { name: "Conversations" }), page.getByRole("log"), composer(page)].map(box));
            assert.ok(list.x + list.width <= log.x, `${label}: the list is next to the conversation`);
            assert.ok(log.y + log.height <= write.y && write.y + write.height <= 900, `${label}: one writes below the conversation`);
            assert.ok(write.x >= log.x && write.x + write.width <= width && write.width >= 240, `${label}: there is room to write, ${JSON.stringify(write)}`);
          };
          await ask(page, "long 1");
          await idle(page);
          await ask(page, "tool");
          await idle(page);
          await fits("an answer");
          await page.getByRole("article").filter({ hasText: "There are 20 files." }).getByRole("button", { name: "Inspect" }).focus();
          await page.keyboard.press("Enter");
          await page.getByRole("treeitem").nth(2).waitFor();
          await page.getByRole("tab", { name: "Events" }).click();
          await page.getByRole("slider").waitFor();
          await page.keyboard.press("Escape");
          await page.getByRole("slider").waitFor({ state: "detached" });
          await fits("when it was looked inside");
          await wantClean(page, { console: /404/ });
        });
      }
    }

    test(`accessible in error states: ${name}`, async () => {
      const token = "a-token-of-the-tests-that-is-long-enough";
      const privateGateway = await Gateway.start([], { LEAT_API_TOKEN: token });
      try {
        const page = await open(privateGateway, { signedOut: true, colorScheme: theme, viewport: phone ? { width: 360, height: 740 } : { width: 1280, height: 800 } });
        const state = (kind) => page.locator(`.connection[data-kind="${kind}"]`).waitFor({ timeout: 60_000 });
        const fits = async (label) => {
          await accessible(page, label);
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${label}: not wider than the window`);
        };
        const field = page.getByLabel("Access token");
        await field.waitFor();
        await fits("signing in");
        await field.fill("not it");
        await page.keyboard.press("Enter");
        await page.getByRole("alert").getByText("Invalid token").waitFor();
        await fits("a token that is refused");
        await field.fill(token);
        await page.keyboard.press("Enter");
        await page.locator('.connection[data-state="connected"]').waitFor();

        await page.evaluate(() => { location.hash = "#/c/there-is-none"; });
        await page.getByText("Conversation not found, or you don’t have access.").waitFor();
        await fits("a conversation that is not there");
        await page.getByRole("button", { name: "New conversation" }).last().click();
        await ask(page, "echo soon gone");
        await idle(page);
        const id = current(page);
        await page.evaluate((path) => fetch(path, { method: "DELETE" }), `/api/conversations/${id}`);
        await page.getByText("This conversation was deleted.").waitFor();
        await fits("a conversation that was deleted");

        await page.getByRole("button", { name: "New conversation" }).last().click();
        page.expected = 0; // of a separate conversation
        await ask(page, "echo here to stay");
        await idle(page);
        await page.context().setOffline(true);
        await privateGateway.kill();
        await state("offline");
        await composer(page).fill("echo later");
        await composer(page).press("Enter");
        await page.getByText("Waiting to be sent").waitFor();
        await fits("offline, and a message waiting");
        await page.context().setOffline(false);
        await state("reconnecting");
        await fits("reconnecting");

        // The page is served, but its requests are not answered.
        await privateGateway.run();
        await page.route("**/api/auth/session", (r) => r.abort());
        await page.reload();
        await page.getByText("The gateway can’t be reached.").waitFor();
        await fits("a gateway that can’t be reached");
        await page.unroute("**/api/auth/session");
        await page.locator('.connection[data-state="connected"]').waitFor();
        await wantClean(page, { console: /401|404|net::ERR_|WebSocket connection/ });
      } finally {
        await privateGateway.close();
      }
    });
  }
}
