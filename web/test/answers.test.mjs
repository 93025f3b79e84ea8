// Answers: the row of actions, folded steps, formulas, diagrams, rich results and pictures.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { prose } from "./agent.mjs";
import { accessible } from "./axe.mjs";
import { allowed, answer, ask, closeBrowser, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

if (lacking) {
  test("answers", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `rich=plugin:node ${fileURLToPath(new URL("rich.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  let count = 0;
  async function begin(text, options) {
    const id = `answers-${++count}`;
    await gateway.call("/api/conversations", { id, agent: "rich" });
    const page = await open(gateway, { path: `/#/c/${id}`, ...options });
    await ask(page, text);
    return page;
  }

  test("the actions of the newest answer are visible, and the answer has its agent's name and cost", async () => {
    const page = await begin("words");
    await idle(page);
    const acts = answer(page).locator(".acts");
    await page.mouse.move(0, 0);
    for (const name of ["Copy message", "Try again", "Read aloud", "Inspect"]) await acts.getByRole("button", { name, exact: true }).waitFor();
    assert.equal(await acts.evaluate((e) => getComputedStyle(e).opacity), "1");
    assert.match(await acts.locator(".used").innerText(), /cost 0\.031$/);
    assert.equal(await answer(page).locator(".who").innerText(), "rich");
    await allowed(page, "go", async () => {
      await acts.getByRole("button", { name: "Try again" }).click();
      await page.locator("article.assistant", { hasText: "try 2" }).waitFor();
    });
    await idle(page);
    assert.equal(await page.locator("article.message").count(), 2);
    await accessible(page, "an answer");
    await wantClean(page);
  });

  test("an edit and a retry can be undone", async () => {
    const page = await begin("words");
    await idle(page);
    const firstAnswer = await answer(page).locator(".text").innerText();
    const undo = page.getByRole("button", { name: "Undo" });
    await allowed(page, "go", async () => {
      await answer(page).getByRole("button", { name: "Try again" }).click();
      await page.getByText("The earlier answer was removed.").waitFor();
      await undo.waitFor();
      await accessible(page, "a removal that can be undone");
      await undo.click();
      await page.locator("article.assistant", { hasText: firstAnswer }).waitFor();
    });
    await undo.waitFor({ state: "detached" });
    assert.equal(await page.locator("article.message").count(), 2);
    // While the new answer is running.
    await page.locator("article.user").hover();
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("textbox", { name: "Edit your message" }).fill("steps 3");
    await allowed(page, "go", async () => {
      await page.keyboard.press("Enter");
      await page.locator(".tool", { hasText: "tool-3" }).waitFor();
      await undo.focus();
      await page.keyboard.press("Enter");
      await page.locator("article.assistant", { hasText: firstAnswer }).waitFor();
    });
    assert.deepEqual([await page.getByText("tool-3").count(), await page.locator(".bubble", { hasText: /^words$/ }).count()], [0, 1]);
    await page.reload();
    await page.locator("article.assistant", { hasText: firstAnswer }).waitFor();
    await wantClean(page);
  });

  for (const [size, text] of [["short", "words of a question"], ["long", `words ${"and more ".repeat(60)}`]]) {
    test(`the mouse selects text in the bubble of a ${size} question`, async () => {
      const page = await begin(text);
      await idle(page);
      const box = await page.locator(".bubble .said").boundingBox();
      await page.mouse.move(box.x + 4, box.y + 6);
      await page.mouse.down();
      await page.mouse.move(box.x + 90, box.y + 8, { steps: 4 });
      await page.mouse.up();
      const selection = await page.evaluate(() => String(getSelection()));
      assert.ok(selection.length > 5 && text.includes(selection), `selected: ${JSON.stringify(selection)}`);
      await wantClean(page);
    });
  }

  test("many tool calls are one row, with the running one visible", async () => {
    const page = await begin("steps 12");
    await page.getByRole("button", { name: /^12 steps/ }).waitFor();
    assert.deepEqual(await page.locator(".tool:not(.steps) .name").allInnerTexts(), ["tool-12"]);
    await page.getByRole("button", { name: /^12 steps/ }).click();
    assert.equal(await page.locator(".tool:not(.steps)").count(), 12);
    await page.getByRole("button", { name: /^12 steps/ }).click();
    assert.equal(await page.locator(".tool:not(.steps)").count(), 1);
    await page.getByRole("button", { name: "Stop" }).click();
    await idle(page);
    await page.getByRole("button", { name: /^12 steps/ }).waitFor();
    await wantClean(page);
  });

  for (const theme of ["light", "dark"]) {
    test(`formulas and diagrams: ${theme}`, async () => {
      const page = await begin("maths", { colorScheme: theme });
      await idle(page);
      await page.waitForFunction(() => document.querySelectorAll(".drawn math").length === 3);
      await page.locator(".diagram[data-drawn]").waitFor();
      await page.getByText("This diagram can’t be drawn").waitFor();
      assert.match(await answer(page).innerText(), /costs \$5 to US\$ 7/);
      assert.match(await answer(page).locator(".formula").last().innerText(), /\\frac\{a/, "what is no formula stays text");
      const drawing = page.frameLocator(".diagram[data-drawn] iframe");
      await drawing.locator("svg").waitFor();
      assert.match(await drawing.locator("svg").textContent(), /Gateway/);
      await accessible(page, "formulas and diagrams");
      await page.locator(".formula-block").first().getByRole("button", { name: "Source" }).click();
      await page.locator(".formula-block pre", { hasText: "\\int_0" }).waitFor();
      await page.locator(".diagram[data-drawn]").getByRole("button", { name: "Source" }).click();
      await page.locator(".diagram pre", { hasText: "flowchart" }).waitFor();
      await wantClean(page);
    });
  }

  test("an app of a tool: its frame reaches nothing, its messages are answered, and its requests need consent", async () => {
    const responses = [];
    const page = await begin("app", { prepare: (p) => p.on("response", (r) => responses.push(r.url())) });
    await idle(page);
    const app = page.getByRole("figure", { name: "App: Clock" });
    const frame = page.frameLocator(".app iframe");
    await frame.getByText("initialized by Leat, input 7, result 12:00").waitFor();
    assert.equal(await frame.locator("#origin").innerText(), "null");
    assert.equal(await frame.locator("#reach").innerText(), "blocked blocked blocked");
    await accessible(page, "an app");
    await frame.getByRole("button", { name: "Call" }).click();
    const request = app.getByRole("group", { name: "Request of the app" });
    await request.getByText("reset").waitFor();
    await request.getByRole("button", { name: "Deny" }).click();
    await frame.getByText("error: the person refused").waitFor();
    await frame.getByRole("button", { name: "Call" }).click();
    await request.getByRole("button", { name: "Allow once" }).click();
    page.expected++;
    await page.locator("article.user", { hasText: "Please call the tool reset" }).waitFor();
    await frame.getByText("The agent was asked to call reset.").waitFor();
    await idle(page);
    await app.getByRole("button", { name: "View source" }).click();
    await app.getByRole("group", { name: "Source" }).waitFor();
    await app.getByRole("button", { name: "View source" }).click();
    await app.getByRole("button", { name: "Turn apps off" }).click();
    await app.getByText("Apps are turned off.").waitFor();
    assert.equal(await page.locator(".app iframe").count(), 0);
    assert.deepEqual(responses.filter((url) => !url.startsWith(gateway.url)), []);
    assert.deepEqual(page.elsewhere.splice(0), ["https://evil.example/x.png"], "the browser reports the picture as requested, but blocks it");
    await wantClean(page, { console: /Content Security Policy|Fetch API cannot load https:..evil\.example/ });
  });

  test("results are shown as what they are", async () => {
    const page = await begin("results");
    await idle(page);
    for (const name of ["weather", "patch", "export", "plot"]) await page.locator(".tool > .row", { hasText: name }).click();
    await page.locator(".output .json .key", { hasText: "place" }).waitFor();
    assert.equal(await page.locator(".output .diff .added").textContent(), "+new\n");
    const heads = page.locator(".output .table th");
    await heads.nth(1).waitFor();
    assert.deepEqual(await heads.allTextContents(), ["city", "degrees"]);
    await page.locator(".output .pictures img").waitFor();
    await accessible(page, "results");
    await page.locator(".output", { has: page.locator(".table") }).getByRole("button", { name: "Source of the output" }).click();
    assert.match(await page.getByRole("group", { name: "Source" }).textContent(), /^city,degrees/);
    await wantClean(page);
  });

  test("an answer is accessible wherever it was stopped", async () => {
    const text = prose(1);
    // After the first three characters of each line, and after the whole line: a heading, a fence or a table that has only begun.
    const cuts = [...text.matchAll(/^.*\n/gm)].flatMap((m) => [1, 2, 3, m[0].length].map((n) => text.slice(0, m.index + n)));
    const answers = [...new Set(cuts)];
    for (let i = 0; i < answers.length; i += 40) {
      const part = answers.slice(i, i + 40);
      const page = await open(gateway, { path: `/#/c/${await gateway.conversation(`stopped-${i}`, "Stopped", part.map((t) => ["assistant", t]))}` });
      await page.locator("article.message").nth(part.length - 1).waitFor();
      await accessible(page, `from ${i}`);
      await wantClean(page);
    }
  });

  test("a picture opens in a lightbox, and closing it returns the focus", async () => {
    const page = await begin("picture", { viewport: { width: 390, height: 800 } });
    await idle(page);
    const picture = page.getByRole("button", { name: "Enlarge wide.png" });
    await page.waitForFunction(() => document.querySelector(".media.image[data-sized]"));
    const box = await picture.boundingBox();
    assert.ok(Math.abs(box.width / box.height - 4) < 0.1, `it has its aspect ratio: ${JSON.stringify(box)}`);
    await picture.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "wide.png" });
    await dialog.getByRole("img", { name: "wide.png" }).waitFor();
    await accessible(page, "the lightbox");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.ok(await picture.evaluate((e) => e === document.activeElement));
    await wantClean(page);
  });
}
