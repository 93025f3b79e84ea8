// The trace of a turn in the inspector: its tree, details, search and JSON.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { answer, ask, closeBrowser, copy, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const traced = fileURLToPath(new URL("traced.mjs", import.meta.url));
const limit = 60_000;

/** Waits until f returns the expected value, or a true value if none is given. */
async function waitFor(label, f, expected) {
  let got;
  for (const end = Date.now() + limit; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) {
    got = await f();
    if (expected === undefined ? got : JSON.stringify(got) === JSON.stringify(expected)) return got;
  }
  throw new Error(`${label}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)}`);
}

const tree = (page) => page.getByRole("tree", { name: "Spans" });
const item = (page, name) => page.getByRole("treeitem", { name });

/** Returns the rows of the tree: level, text, and the place of the bar. */
const rows = (page) => tree(page).evaluate((t) => [...t.querySelectorAll('[role="treeitem"]')].map((r) => [r.ariaLevel, r.textContent, r.querySelector(".bar").style.cssText]));

/** Returns the levels and texts of the rows without durations. */
const labels = async (page) => (await rows(page)).map(([level, label]) => `${level} ${label.replace(/, (<?[\d.]+ m?s|\d+ min.*)$/, "")}`);

/** Returns the label of the selected row, to which the tree refers. */
const selected = (page) => tree(page).evaluate((t) => {
  const row = document.getElementById(t.getAttribute("aria-activedescendant"));
  return row.ariaSelected === "true" ? row.textContent : `${row.textContent} is not selected`;
});

if (lacking) {
  test("the trace", { skip: lacking }, () => {});
} else {
  let gateway;
  let folder;
  let n = 0;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "leat-trace-"));
    gateway = await Gateway.start(["--agent", `ops=plugin:node ${traced}`, "--default-agent", "ops"]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
    if (folder) rmSync(folder, { recursive: true });
  });

  /** Creates a conversation, whose agent waits for files in a folder, and opens it. */
  async function begin(options = {}) {
    const id = `c${++n}`;
    const dir = mkdtempSync(join(folder, "turn-"));
    await gateway.call("/api/conversations", { id, title: "Backup" });
    const page = await open(gateway, { path: `/#/c/${id}`, ...options });
    return { id, page, dir, mark: (name) => writeFileSync(join(dir, name), "") };
  }

  /** Runs a whole turn, and opens its trace. */
  async function finished(options = {}) {
    const { id, page, dir, mark } = await begin(options);
    mark("tools");
    mark("end");
    await gateway.call(`/api/conversations/${id}/commands`, { type: "send", message: { text: `work ${dir}` } });
    await page.getByRole("button", { name: "Allow" }).click();
    await idle(page);
    await page.locator("article.message.assistant").filter({ hasText: "One flag" }).getByRole("button", { name: "Inspect" }).first().click();
    await item(page, /^Step 3/).waitFor();
    await waitFor("the turn has ended", async () => (await labels(page))[0], "1 Turn ops, done");
    return { id, page };
  }

  const complete = [
    "1 Turn ops, done", "2 Step 1, bash, read_file, done", "3 Reasoning, The duration jumped on one day. The log of the timer and the unit file should show why., done",
    "3 Tool bash, journalctl -u backup --since -8d, done", "3 Tool read_file, /etc/systemd/system/backup.service, done", "3 Status, Asked the reader, done",
    "3 Turn reader, done", "4 Step 1, search, done", "5 Tool search, read-data, failed", "4 Step 2, The manual: --read-data reads every pack., done", "5 Text, The manual: --read-data reads every pack., done",
    "2 Step 2, edit, done", "3 Tool edit, /etc/systemd/system/backup.service, done", "4 Question Approval, May I change the unit file?, done",
    "2 Step 3, The check after the backup reads every pack since last week. **One flag** made it slow., done", "3 Text, The check after the backup reads every pack since last week. **One flag** made it slow., done",
  ];

  for (const theme of ["light", "dark"]) {
    test(`a trace grows while the turn runs, and is the same after a reload: ${theme}`, async () => {
      const { id, page, dir, mark } = await begin({ colorScheme: theme });
      await ask(page, `work ${dir}`);
      await page.getByRole("button", { name: "Inspect the current answer" }).click();
      await waitFor("two tools run", async () => (await labels(page).catch(() => [])).map((l) => l.split(", ").at(-1)), ["running", "running", "done", "running", "running"]);
      // Each of two parallel tools has a row, and their bars overlap.
      const [a, b] = await Promise.all([/^Tool bash/, /^Tool read_file/].map((name) => item(page, name).locator(".bar").boundingBox()));
      assert.ok(a.y + a.height <= b.y && Math.max(a.x, b.x) < Math.min(a.x + a.width, b.x + b.width), JSON.stringify([a, b]));
      // The duration of a running turn grows without events.
      const duration = await page.locator(".trace .summary dd").first().innerText();
      await waitFor("time passes", async () => (await page.locator(".trace .summary dd").first().innerText()) !== duration);
      await accessible(page, "a trace that grows");

      mark("tools");
      await item(page, /^Question Approval.*awaiting an answer/).waitFor();
      await item(page, /^Tool edit.*awaiting an answer/).waitFor();
      await page.getByRole("button", { name: "Allow" }).click();
      await item(page, /^Question Approval.*done/).waitFor();
      mark("end");
      await idle(page);
      await waitFor("all of it", () => labels(page), complete);
      await page.locator(".inspector header").getByText("running").waitFor({ state: "detached" });

      // A page that has seen nothing of it shows the same.
      const { transcript } = await gateway.transcript(id);
      const turn = transcript.turns.find((t) => !t.parent).id;
      const other = await open(gateway, { colorScheme: theme, path: `/#/c/${id}?turn=${turn}` });
      await waitFor("all of it, later", () => labels(other), complete);
      const expected = await rows(other);
      await waitFor("the live trace is the same", () => rows(page), expected);
      await page.evaluate(([c, t]) => { location.hash = `#/c/${c}?turn=${t}`; }, [id, turn]);
      await page.reload();
      await waitFor("the reloaded trace is the same", () => rows(page).catch(() => []), expected);
      assert.deepEqual((await page.locator(".trace .summary dd").allInnerTexts()).slice(3), ["3", "4", "2.3K in, 248 out", "0.031"]);
      await accessible(page, "a trace");
      await wantClean(other);
      await wantClean(page);
    });
  }

  test("the tree of spans works by keyboard", async () => {
    const { page } = await finished();
    await tree(page).focus();
    assert.match(await selected(page), /^Turn ops/);
    const press = async (key, expected) => {
      await page.keyboard.press(key);
      await waitFor(`after ${key}`, async () => expected.test(await selected(page)));
    };
    await press("ArrowUp", /^Turn ops/);
    await press("ArrowDown", /^Step 1, bash/);
    await press("ArrowRight", /^Reasoning/);
    await press("ArrowRight", /^Reasoning/);
    await press("ArrowLeft", /^Step 1, bash/);
    await press("ArrowLeft", /^Step 1, bash/);
    await waitFor("it is folded", () => item(page, /^Step 1\W+bash/).getAttribute("aria-expanded"), "false");
    assert.equal(await item(page, /^Reasoning/).count(), 0);
    await press("ArrowDown", /^Step 2, edit/);
    await press("ArrowUp", /^Step 1, bash/);
    await press("ArrowRight", /^Step 1, bash/);
    await item(page, /^Reasoning/).waitFor();
    await press("End", /^Text, The check/);
    await press("Home", /^Turn ops/);
    await press("ArrowLeft", /^Turn ops/);
    await press("r", /^Reasoning/);
    await press("Home", /^Turn ops/);
    // In one task, because keys with a pause between them are separate searches.
    await tree(page).evaluate((t) => [..."read"].forEach((key) => t.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))));
    await waitFor("typing goes to a name", async () => /^Tool read_file/.test(await selected(page)));
    const details = page.getByRole("region", { name: "Span details" });
    await details.getByText("ExecStartPost=restic check").waitFor();
    await page.keyboard.press("Enter");
    await waitFor("Enter goes to the details", () => details.evaluate((d) => d === document.activeElement));
    // A click on the triangle folds and doesn't select.
    await item(page, /^Turn reader/).locator(".twist").click();
    await waitFor("it is folded", () => item(page, /^Turn reader/).getAttribute("aria-expanded"), "false");
    assert.match(await selected(page), /^Tool read_file/);
    // If the selected span is folded away, the one around it is selected.
    await item(page, /^Step 1\W+bash/).locator(".twist").click();
    await waitFor("the step is selected", async () => /^Step 1, bash/.test(await selected(page)));
    await wantClean(page);
  });

  test("the details of spans: errors, times, tokens, attributes", async () => {
    const { page } = await finished();
    const details = page.getByRole("region", { name: "Span details" });
    const fact = (name) => details.locator(".facts div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd").innerText();
    assert.equal(await fact("Tokens"), "2,310 in, 248 out");
    assert.equal(await fact("Cached"), "1,900");
    assert.equal(await fact("Model"), "large-2");
    await item(page, /^Tool search/).click();
    await details.getByText("no index of the manual").waitFor();
    assert.match(await fact("Start"), /^\+\d/);
    assert.match(await fact("Duration"), /^[\d.]+ m?s$/);
    await details.getByText("Attributes", { exact: true }).click();
    await details.getByText("gen_ai.tool.name", { exact: true }).waitFor();
    await accessible(page, "a failed span");
    await item(page, /^Status/).click();
    await details.getByText("Asking the reader…").waitFor();
    await item(page, /^Turn reader/).click();
    await waitFor("the subagent's tokens", () => fact("Tokens"), "310 in, 24 out");
    await wantClean(page);
  });

  test("search in spans", async () => {
    const { page } = await finished();
    const field = page.getByRole("searchbox", { name: "Search in spans" });
    const count = page.getByRole("search", { name: "Spans" }).getByRole("status");
    await item(page, /^Turn reader/).locator(".twist").click();
    await field.fill("READ-DATA");
    await waitFor("hits", () => count.innerText(), "4 hits");
    await item(page, /^Tool read_file.*found in output/).waitFor();
    const next = async (key, expected, text) => {
      await page.keyboard.press(key);
      await waitFor(`after ${key}`, async () => expected.test(await selected(page)));
      assert.equal(await count.innerText(), text);
    };
    await field.focus();
    await next("Enter", /^Tool read_file/, "1 of 4");
    await next("Enter", /^Tool search/, "2 of 4"); // inside the folded turn, which opens
    await next("Enter", /^Text, The manual/, "3 of 4");
    await next("Enter", /^Tool edit/, "4 of 4");
    await next("Enter", /^Tool read_file/, "1 of 4");
    await next("Shift+Enter", /^Tool edit/, "4 of 4");
    await page.getByRole("button", { name: "Next hit" }).click();
    await waitFor("the first again", async () => /^Tool read_file/.test(await selected(page)));
    await field.fill("nowhere");
    await waitFor("no hits", () => count.innerText(), "No hits");
    await accessible(page, "a search without hits");
    await field.press("Escape");
    assert.equal(await field.inputValue(), "");
    await tree(page).waitFor();
    await wantClean(page);
  });

  test("a trace is copied as JSON", async () => {
    const { id, page } = await finished({ permissions: ["clipboard-read", "clipboard-write"] });
    await copy(page, page.getByRole("button", { name: "Copy trace as JSON" }));
    const json = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(json["gen_ai.conversation.id"], id);
    assert.deepEqual(json.spans.map((s) => s.kind), ["turn", "step", "reasoning", "tool", "tool", "status", "turn", "step", "tool", "step", "text", "step", "tool", "question", "step", "text"]);
    const byId = new Map(json.spans.map((s) => [s.id, s]));
    for (const s of json.spans) assert.equal(s.parent === undefined ? s.kind : byId.get(s.parent) && "known", s.parent === undefined ? "turn" : "known");
    assert.equal(json.spans[0].attributes["gen_ai.usage.input_tokens"], 2310);
    assert.equal(json.spans[0].attributes["leat.usage.cost"], 0.0312);
    const failed = json.spans.find((s) => s.name === "search");
    assert.deepEqual([failed.state, failed.error, failed.input, failed.attributes["error.type"], failed.attributes["gen_ai.tool.call.id"]], ["failed", { code: "no_index", message: "no index of the manual" }, '{"query":"read-data"}', "no_index", "s1"]);
    assert.equal(failed.duration, failed.end - failed.start);
    await wantClean(page);
  });

  test("words explain themselves on focus and under the pointer", async () => {
    const { page } = await finished();
    const word = page.locator(".trace .summary").getByRole("button", { name: "First token" });
    const tip = page.getByRole("tooltip").filter({ hasText: "until the first output arrived" }).first();
    await word.focus();
    await tip.waitFor();
    const box = await tip.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 1280 && box.y + box.height <= 800, JSON.stringify(box));
    assert.match(await word.evaluate((w) => document.getElementById(w.getAttribute("aria-describedby")).textContent), /^The time until the first output/);
    await accessible(page, "a tooltip");
    await page.keyboard.press("Escape");
    await tip.waitFor({ state: "hidden" });
    assert.ok(await tree(page).isVisible(), "Escape hides the tooltip, and nothing else");
    await page.locator(".trace .summary").getByRole("button", { name: "Tokens" }).hover();
    await page.getByRole("tooltip").filter({ hasText: "Providers charge by them" }).first().waitFor();
    await page.mouse.move(10, 700);
    await page.getByRole("tooltip").filter({ hasText: "Providers charge by them" }).first().waitFor({ state: "hidden" });
    await wantClean(page);
  });

  test("the tabs follow the arrow keys", async () => {
    const { page } = await finished();
    const tab = (name) => page.getByRole("tab", { name });
    await tab("Trace").focus();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("slider").waitFor();
    assert.deepEqual(await tab("Events").evaluate((t) => [t.ariaSelected, t === document.activeElement]), ["true", true]);
    await accessible(page, "the events");
    await page.keyboard.press("ArrowRight");
    await tree(page).waitFor();
    await page.keyboard.press("End");
    await page.getByRole("slider").waitFor();
    await page.keyboard.press("Home");
    await tree(page).waitFor();
    assert.equal(await page.getByRole("tabpanel").getAttribute("aria-labelledby"), await tab("Trace").getAttribute("id"));
    await wantClean(page);
  });

  for (const theme of ["light", "dark"]) {
    test(`on a phone the bars are below the names, and the details are a sheet: ${theme}`, async () => {
      const { page } = await finished({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: theme });
      const row = item(page, /^Tool bash/);
      const [name, bar, box] = await Promise.all([row.locator(".name").boundingBox(), row.locator(".bar").boundingBox(), row.boundingBox()]);
      assert.ok(name.y + name.height <= bar.y && box.height >= 44 && box.width >= 370, JSON.stringify([name, bar, box]));
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      assert.equal(await page.getByRole("region", { name: "Span details" }).count(), 0);
      await accessible(page, "a trace on a phone");
      await row.tap();
      const sheet = page.getByRole("dialog", { name: "Span details" });
      await sheet.getByText("journalctl -u backup --since -8d").first().waitFor();
      await accessible(page, "the details on a phone");
      const place = await sheet.boundingBox();
      assert.ok(place.x === 0 && place.width === 390 && Math.round(place.y + place.height) === 844, JSON.stringify(place));
      await sheet.getByRole("button", { name: "Close" }).tap();
      await sheet.waitFor({ state: "detached" });
      assert.match(await selected(page), /^Tool bash/);
      await wantClean(page);
    });
  }

  test("a trace of a thousand spans renders only what is visible", async () => {
    const { page } = await begin();
    await ask(page, "tools 500");
    await idle(page);
    await answer(page).getByRole("button", { name: "Inspect" }).click();
    await item(page, /^Step 1\b/).waitFor();
    await waitFor("all steps", () => item(page, /^Step 1\b/).getAttribute("aria-setsize"), "500");
    const rendered = () => tree(page).locator('[role="treeitem"]').count();
    assert.ok(await rendered() < 60, `${await rendered()} rows`);
    await page.evaluate(() => { window.longTasks.length = 0; });
    const frames = await tree(page).evaluate(async (t) => {
      const times = [];
      for (let last = performance.now(), y = 0; y < t.scrollHeight; y += 400) {
        t.scrollTop = y;
        const time = await new Promise(requestAnimationFrame);
        times.push(time - last);
        last = time;
      }
      return times.toSorted((x, y) => x - y);
    });
    console.log(`# 1,001 spans: ${frames.length} frames of a scroll, median ${Math.round(frames[Math.floor(frames.length / 2)])} ms, longest ${Math.round(frames.at(-1))} ms`);
    await item(page, /^Tool tool_499/).waitFor();
    assert.ok(await rendered() < 60, `${await rendered()} rows`);
    await tree(page).focus();
    await page.keyboard.press("End");
    await waitFor("the last span", async () => /^Tool tool_499/.test(await selected(page)));
    await page.keyboard.press("Home");
    await waitFor("the turn", async () => /^Turn ops/.test(await selected(page)));
    await wantClean(page);
  });
}
