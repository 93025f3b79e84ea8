// The pictures in docs/images: SCREENSHOTS=1 node --test test/pictures.test.mjs creates them.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { ask, closeBrowser, Gateway, idle, lacking, looks, open, wantClean } from "./harness.mjs";

const images = fileURLToPath(new URL("../../docs/images", import.meta.url));
const show = `plugin:node ${fileURLToPath(new URL("show.mjs", import.meta.url))}`;
const skip = lacking || (process.env.SCREENSHOTS ? "" : "writes docs/images; wanted by SCREENSHOTS=1");

if (skip) {
  test("the pictures of the dashboard", { skip }, () => {});
} else {
  mkdirSync(images, { recursive: true });
  after(closeBrowser);
  const toEnd = async (page) => {
    const button = page.getByRole("button", { name: /Jump to end| new/ });
    if (await button.count()) await button.click();
    await page.waitForFunction(() => {
      const l = document.querySelector(".log");
      return l.scrollHeight - l.scrollTop - l.clientHeight <= 1;
    });
  };

  for (const [theme, phone] of looks) {
    const name = `${theme}-${phone ? "phone" : "wide"}`;
    test(`pictures: ${name}`, async () => {
      const gateway = await Gateway.start(["--agent", `ops=${show}`, "--agent", `notes=${show}`, "--agent", "build=http://127.0.0.1:9/chat", "--default-agent", "ops"]);
      after(() => gateway.close());
      for (const [id, title] of [["c1", "Release notes for 2.4"], ["c2", "Disk alarms of db-3"], ["c3", "Certificate renewal"]]) await gateway.conversation(id, title, [["user", "How far are we?"], ["assistant", "All is done."]]);
      const send = async (id, title, text, agent = "ops") => {
        await gateway.call("/api/conversations", { id, title, agent });
        await gateway.call(`/api/conversations/${id}/commands`, { type: "send", message: { text } });
      };
      const page = await open(gateway, { colorScheme: theme, viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 800 } });
      const shot = (label) => page.screenshot({ path: join(images, `${label}-${name}.png`) });
      await shot("new");
      await ask(page, "Why is the nightly backup so slow?");
      await idle(page);
      await page.locator(".tool").first().getByRole("button").first().click();
      await toEnd(page);
      await page.mouse.move(0, 0);
      await shot("tools");
      await page.locator(".tool").first().getByRole("button").first().click();
      await toEnd(page);
      await page.getByRole("article").last().hover();
      await page.getByRole("article").last().getByRole("button", { name: "Inspect" }).click();
      await page.getByRole("treeitem", { name: /^Tool bash/ }).waitFor();
      if (!phone) await page.getByRole("treeitem", { name: /^Tool bash/ }).click();
      await page.mouse.move(0, 0);
      await shot("inspector");
      await page.keyboard.press("Escape");
      await ask(page, "Remove what is older than 30 days.");
      await page.getByRole("button", { name: "Allow" }).waitFor();
      await toEnd(page);
      await shot("approval");
      await page.getByRole("button", { name: "Deny" }).click();
      await idle(page);
      if (phone) {
        await page.getByRole("button", { name: "Conversations" }).click();
        await page.getByRole("searchbox").waitFor();
        await shot("list");
      }
      await page.getByRole("button", { name: "Overview" }).click();
      await page.getByRole("region", { name: "Live turns" }).waitFor();
      const other = await open(gateway);
      for (const [i, host] of ["web-1", "web-2", "db-1", "db-2", "mail", "cache"].entries()) {
        await send(`s${i}`, `Backup of ${host}`, `Summarise ${2 + i}`, i % 2 ? "notes" : "ops");
        if (i === 2) await send("f", "Log of web-2", "Fetch the log", "notes");
        await other.evaluate((id) => { location.hash = `#/c/${id}`; }, `s${i}`);
        await page.waitForFunction((n) => document.querySelector(".tile .sparkline path:not([class])").getAttribute("d").split(/[ML]/).length > n, 4 + 4 * i);
      }
      await send("r", "Backup of all hosts", "Summarise 40");
      await other.evaluate(() => { location.hash = "#/c/r"; });
      await page.getByRole("region", { name: "Open turns" }).getByRole("link").first().waitFor();
      await page.waitForFunction(() => document.querySelector(".tile .sparkline path:not([class])").getAttribute("d").split(/[ML]/).length > 30);
      await shot("overview");
      await wantClean(other);
      await wantClean(page);
    });
  }
}
