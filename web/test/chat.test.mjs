// The main features of the dashboard, in a real browser over the real gateway. net.test.mjs tests failures.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { answer, articles, ask, browser, chooseOption, closeBrowser, current, editor, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("the dashboard", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("send and receive", async () => {
    const page = await open(gateway);
    await ask(page, "echo one two three");
    await idle(page);
    assert.equal(await articles(page).count(), 2);
    assert.match(await articles(page).nth(0).innerText(), /echo one two three/);
    assert.match(await answer(page).innerText(), /one two three/);
    await page.getByRole("heading", { level: 1, name: "echo one two three", exact: true }).waitFor();
    await wantClean(page);
  });

  test("a reload during a tool call, and the tool's output", async () => {
    const page = await open(gateway);
    await ask(page, "tool");
    await page.locator(".tool").first().waitFor();
    await page.reload();
    await page.locator(".tool").first().waitFor();
    await idle(page);
    const tool = page.locator(".tool").first();
    await tool.getByRole("button").first().click();
    assert.match(await tool.innerText(), /ls -l/);
    assert.match(await tool.innerText(), /Show all 20 lines/);
    assert.match(await tool.innerText(), /file 20/);
    await tool.getByRole("button", { name: "Show all 20 lines" }).click();
    assert.match(await tool.innerText(), /file 1\n/);
    assert.match(await tool.locator(".field.bad").innerText(), /a warning/);
    const failed = page.locator(".tool").nth(1);
    await failed.getByRole("button").first().click();
    assert.match(await failed.innerText(), /no such file/);
    assert.match(await answer(page).innerText(), /Reasoned/);
    assert.match(await answer(page).innerText(), /There are 20 files\./);
    await wantClean(page);
  });

  test("an agent's error shows the cause and what to do", async () => {
    const page = await open(gateway);
    await ask(page, "fail");
    await page.locator(".turn-end", { hasText: "The model is overloaded." }).waitFor();
    assert.match(await answer(page).innerText(), /I begin, but/);
    assert.match(await answer(page).innerText(), /overloaded\. The partial answer is saved\. Try again\./);
    await idle(page);
    await wantClean(page);
  });

  test("stop", async () => {
    const page = await open(gateway);
    await ask(page, "long 4000");
    await page.getByText("Section 1", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText(/Stopped by you after/).waitFor();
    await idle(page);
    const length = await answer(page).getAttribute("data-len");
    await ask(page, "echo on");
    await idle(page);
    assert.equal(await page.locator("article.message.assistant").first().getAttribute("data-len"), length);
    await wantClean(page);
  });

  test("an approval, given from another browser", async () => {
    const page = await open(gateway);
    await ask(page, "ask");
    await page.getByText("May I delete the file?").first().waitFor();
    const other = await open(gateway, { path: `/#/c/${current(page)}` });
    assert.match(await other.locator(".ask").innerText(), /\/tmp\/x/);
    await other.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Deleted.").waitFor();
    await idle(page);
    assert.equal(await page.locator(".ask").count(), 0);
    await ask(page, "ask");
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByText("Kept.").waitFor();
    await idle(page);
    await wantClean(other);
    await wantClean(page);
  });

  test("a picture and a text are uploaded and downloaded", async () => {
    const page = await open(gateway);
    const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
    await page.locator("input[type=file]").setInputFiles([{ name: "dot.png", mimeType: "image/png", buffer: png }, { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("words") }]);
    await page.locator(".attachments li", { hasText: "dot.png" }).getByText(/ B$/).waitFor();
    await page.locator(".attachments li", { hasText: "note.txt" }).getByText(/ B$/).waitFor();
    await ask(page, "files");
    await idle(page);
    assert.match(await page.locator(".log").innerText(), /dot\.png image\/png 70; note\.txt text\/plain 5/);
    const pictures = page.locator(".log img");
    assert.equal(await pictures.count(), 2);
    for (const i of [0, 1]) assert.ok(await pictures.nth(i).evaluate((e) => e.decode().then(() => e.naturalWidth === 1)));
    await page.reload();
    await pictures.nth(1).waitFor();
    const href = await page.getByRole("link", { name: /note\.txt/ }).getAttribute("href");
    assert.equal(await (await fetch(new URL(href, gateway.url))).text(), "words");
    await wantClean(page);
  });

  test("a status and the statuses before it", async () => {
    const page = await open(gateway);
    await ask(page, "status");
    await idle(page);
    const status = page.getByRole("group", { name: "Status" });
    assert.match(await status.innerText(), /Now playing/);
    await status.getByRole("button").click();
    assert.deepEqual(await status.locator("ol li").allInnerTexts(), ["Looking up track…", "Searching for track…", "Setting up playback…"]);
    await wantClean(page);
  });

  test("edit and resend, rename, find, delete", async () => {
    const page = await open(gateway);
    await ask(page, "echo befroe");
    await idle(page);
    await articles(page).first().hover();
    await page.getByRole("button", { name: "Edit" }).click();
    await editor(page).fill("echo before");
    await editor(page).press("Enter");
    page.expected = 1;
    await page.waitForFunction(() => document.querySelector("article.assistant")?.innerText.includes("before"));
    await idle(page);
    assert.equal(await articles(page).count(), 2);
    await chooseOption(page, /befroe|before/, "Rename");
    await page.getByRole("textbox", { name: "Title" }).fill("A better name");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "A better name" }).waitFor();
    await page.getByRole("searchbox").fill("better");
    await page.waitForFunction(() => document.querySelectorAll(".list li").length === 1);
    await chooseOption(page, "A better name", "Delete");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No results for").waitFor();
    await page.context().close();
  });

  test("the inspector of an answer: figures, replay, events, frames", async () => {
    const page = await open(gateway);
    await ask(page, "echo one two three four");
    await idle(page);
    await answer(page).hover();
    await answer(page).getByRole("button", { name: "Inspect" }).click();
    const inside = page.getByRole("complementary", { name: "Answer details" });
    await inside.getByRole("tab", { name: "Events" }).click();
    await inside.getByText(/\d m?s, p99/).first().waitFor();
    await inside.getByRole("img", { name: /^\d+ events arrived in/ }).waitFor();
    const moment = inside.getByRole("slider", { name: "Moment of the answer" });
    const replay = inside.getByRole("region", { name: "The answer at that moment" });
    assert.match(await replay.innerText(), /one two three four/);
    const middle = Math.floor(Number(await moment.getAttribute("max")) / 2);
    await moment.fill(String(middle));
    assert.match(await replay.innerText(), /one/);
    assert.doesNotMatch(await replay.innerText(), /four/);
    assert.match(await moment.getAttribute("aria-valuetext"), new RegExp(`, event ${middle} of `));
    await inside.getByRole("combobox", { name: "Speed" }).selectOption("16");
    await inside.getByRole("button", { name: "Play", exact: true }).click();
    await page.waitForFunction(() => document.querySelector(".replay").innerText.includes("four"));
    await inside.getByRole("combobox", { name: "Kind" }).selectOption("part.append");
    assert.ok(await inside.locator("tbody tr").count() >= 3);
    await inside.getByRole("button", { name: "All frames" }).click();
    await inside.locator(".raw pre").first().waitFor();
    assert.match(await inside.locator(".raw").innerText(), /three/);
    for (const name of ["Save as a recording", "Save the agent’s frames"]) {
      const [download] = await Promise.all([page.waitForEvent("download"), inside.getByRole("button", { name }).click()]);
      assert.match(readFileSync(await download.path(), "utf8"), /three/);
    }
    await page.keyboard.press("Escape");
    await inside.waitFor({ state: "detached" });
    await page.waitForFunction(() => document.activeElement.getAttribute("aria-label") === "Inspect");
    await wantClean(page, { console: /404/ });
  });

  test("the page requests nothing from other hosts and obeys its content security policy", async () => {
    const page = await open(gateway);
    const res = await page.request.get(gateway.url);
    assert.match(res.headers()["content-security-policy"], /trusted-types 'none'/);
    await ask(page, "hostile");
    await idle(page);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator(".log script, .log iframe, .log svg:not(.icon), .log form, .log style, .log [onerror], .log [onload], .log [onclick]").count(), 0);
    for (const href of await page.locator(".log a").evaluateAll((links) => links.map((a) => a.href))) assert.match(href, /^(https?:|mailto:)/);
    assert.match(await page.locator(".log").innerText(), /U\+202E/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    await wantClean(page);
  });

  void browser;
}
