// Saving a conversation as a file, copying a message, and playing a video.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { answer, ask, closeBrowser, copy, current, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const patience = { timeout: 60_000 };

if (lacking) {
  test("export", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `gallery=plugin:node ${fileURLToPath(new URL("gallery.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  /** Presses a button and returns the downloaded file. */
  async function saved(page, name) {
    const [download] = await Promise.all([page.waitForEvent("download", patience), page.getByRole("button", { name }).click()]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  }

  test("a conversation is saved as JSON and as Markdown, with its tools and with messages that aren't loaded", async () => {
    const texts = Array.from({ length: 300 }, (_, i) => [i % 2 ? "assistant" : "user", `Line ${i} of old.`]);
    await gateway.conversation("whole", "Ends & means: a plan", texts);
    const page = await open(gateway, { path: "/#/c/whole" });
    await page.getByText("Line 299 of old.").waitFor();
    await ask(page, "tool");
    await idle(page);
    const json = await saved(page, "Save as JSON");
    assert.equal(json.name, "Ends-means-a-plan.json");
    const { transcript } = await gateway.call("/api/conversations/whole/transcript");
    const exported = JSON.parse(json.text);
    assert.equal(exported.id, "whole");
    assert.equal(exported.title, "Ends & means: a plan");
    const summariesOf = (messages) => messages.map((m) => [m.id, m.role, ...m.parts.map((p) => p.text ?? p.output ?? "")]);
    assert.equal(exported.messages.length, 302);
    assert.deepEqual(summariesOf(exported.messages).slice(-transcript.messages.length), summariesOf(transcript.messages));
    assert.deepEqual(exported.messages.slice(0, 300).map((m) => m.parts[0].text), texts.map(([, text]) => text));
    assert.deepEqual(exported.turns.map((t) => t.outcome), ["completed"]);

    const markdown = await saved(page, "Save as Markdown");
    assert.equal(markdown.name, "Ends-means-a-plan.md");
    assert.match(markdown.text, /^# Ends & means: a plan\n\n## You, \d{4}-\d\d-\d\dT[\d:.]+Z\n\nLine 0 of old\.\n\n## Agent, /);
    assert.deepEqual([...markdown.text.matchAll(/Line (\d+) of old/g)].map((m) => Number(m[1])), texts.map((_, i) => i));
    assert.match(markdown.text, /\*Tool bash, done\*\n\n```\n\{"command":"ls -l"\}\n```\n\n```\nfile 1\nfile 2\n/);
    assert.match(markdown.text, /\*Tool read, failed\*/);
    assert.match(markdown.text, /There are 20 files\.\n$/);
    await wantClean(page);
  });

  test("copying a message copies its Markdown source", async () => {
    const page = await open(gateway, { permissions: ["clipboard-read", "clipboard-write"] });
    await ask(page, "echo **bold** and `code`, twice");
    await idle(page);
    const copied = async (article) => {
      await article.hover();
      await copy(page, article.getByRole("button", { name: "Copy message" }));
      return page.evaluate(() => navigator.clipboard.readText());
    };
    assert.equal(await copied(answer(page)), "**bold** and `code`, twice");
    assert.equal(await copied(page.getByRole("article").first()), "echo **bold** and `code`, twice");
    await wantClean(page);
  });

  for (const [width, height] of [[1280, 800], [360, 740]]) {
    test(`a video plays inline, ${width} px wide`, async () => {
      const id = `film-${width}`;
      await gateway.call("/api/conversations", { id, agent: "gallery" });
      const page = await open(gateway, { path: `/#/c/${id}`, viewport: { width, height } });
      await ask(page, "film");
      await idle(page);
      assert.equal(current(page), id);
      await answer(page).getByText("colours.webm").waitFor(patience);
      // ARIA has no role for a video; a screen reader uses its name.
      const film = answer(page).getByLabel("colours.webm", { exact: true });
      await page.waitForFunction((v) => v.readyState >= 1, await film.elementHandle(), patience);
      assert.deepEqual(await film.evaluate((v) => [v.videoWidth, v.videoHeight, v.controls, v.paused, v.error]), [32, 18, true, true, null]);
      await film.evaluate((v) => new Promise((resolve, reject) => {
        v.addEventListener("ended", resolve);
        v.muted = true;
        v.play().catch(reject);
      }));
      const box = await film.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width && box.height > 0, JSON.stringify(box));
      assert.equal(await answer(page).getByRole("link", { name: /colours\.webm/ }).getAttribute("download"), "colours.webm");
      await accessible(page, "a film");
      await wantClean(page);
    });
  }
}
