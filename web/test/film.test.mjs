// Nothing flickers during a turn: shown elements stay, and don't lose height, especially when the answer becomes complete.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { answer, ask, closeBrowser, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { film } from "./real/film.mjs";

// Runs in the page after film(): compares the last state of a growing answer with the complete one.
function ends() {
  const answers = new Map();
  window.ends = [];
  const inspect = () => {
    for (const a of document.querySelectorAll("article.assistant[data-message]")) {
      const state = { busy: a.getAttribute("aria-busy") === "true" || !!a.querySelector(".acts[data-live]"), a, height: a.offsetHeight, parts: [...a.children].filter((e) => !e.matches("h2, .acts, .turn-end")) };
      const before = answers.get(a.dataset.message);
      if (before?.busy && !state.busy) window.ends.push({ message: a === before.a, parts: before.parts.length > 0 && before.parts.every((e, i) => e === state.parts[i]), count: state.parts.length - before.parts.length, lost: Math.max(0, before.height - state.height) });
      answers.set(a.dataset.message, state);
    }
  };
  new MutationObserver(inspect).observe(document, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["aria-busy", "data-live"] });
}

if (lacking) {
  test("frames of a turn", { skip: lacking }, () => {});
} else {
  let gateway;
  let folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "leat-film-"));
    gateway = await Gateway.start(["--agent", `gallery=plugin:node ${fileURLToPath(new URL("gallery.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const filmed = async (id, agent) => {
    await gateway.call("/api/conversations", { id, agent });
    const page = await open(gateway, { path: `/#/c/${id}` });
    await page.context().addInitScript(film);
    await page.context().addInitScript(ends);
    await page.reload();
    await page.locator('.connection[data-state="connected"]').waitFor();
    return page;
  };
  // Returns the recorded scenes of the answer, after the checks.
  const filmOf = async (page) => {
    const { flickers, ends, scenes } = await page.evaluate(() => ({ flickers: window.flickers, ends: window.ends, scenes: window.scenes }));
    assert.deepEqual(flickers, []);
    assert.deepEqual(ends, [{ message: true, parts: true, count: 0, lost: 0 }]);
    return scenes.map((s) => s.findLast((m) => !m.mine)).filter(Boolean);
  };

  test("reasoning, a tool, a status, text and the end: no part is rendered twice, no height is lost", async () => {
    const page = await filmed("parts", "gallery");
    await ask(page, `steps ${folder}`);
    const texts = { begin: "", reasoned: "Reasoning", more: "bash", given: "", output: "", done: "", packed: "Packing…", sent: "Sending…", end: "All is built." };
    for (const [gate, words] of Object.entries(texts)) {
      if (words) await answer(page).getByText(words).first().waitFor();
      writeFileSync(join(folder, gate), "");
    }
    await idle(page);
    const scenes = await filmOf(page);
    // The parts were seen while they grew.
    assert.ok(scenes.filter((m) => m.growing).length >= 3);
    assert.deepEqual(scenes.at(-1).parts, ["reasoning", "tool", "div", "text"]);
    assert.equal(scenes.at(-1).growing, false);
    await wantClean(page);
  });

  test("Markdown of every kind: blocks and height stay when the answer is complete", async () => {
    const page = await filmed("words", "test");
    await ask(page, "long 2");
    await answer(page).getByText("Section 1", { exact: true }).waitFor();
    await idle(page);
    const scenes = await filmOf(page);
    assert.ok(scenes.some((m) => m.growing));
    assert.deepEqual(scenes.at(-1).parts, ["text"]);
    await wantClean(page);
  });
}
