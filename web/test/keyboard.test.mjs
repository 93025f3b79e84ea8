// Keyboard and screen readers: shortcuts, layers, focus, search, announcements, and writing while an answer runs.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { allowed, answer, articles, ask, chooseAgent, closeBrowser, composer, current, editor, Gateway, idle, lacking, looks, open, wantClean } from "./harness.mjs";

const networkErrors = /ERR_CONNECTION_REFUSED|WebSocket connection|ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_RESET|Failed to load resource/;

/** Waits for a condition in the page, with time for a slow machine. */
const waitFor = (page, f, arg) => page.waitForFunction(f, arg, { timeout: 60_000 });

const focused = (page) => page.evaluate(() => {
  const e = document.activeElement;
  return e.getAttribute("aria-label") ?? e.closest("label")?.innerText ?? e.innerText?.trim() ?? e.tagName;
});

if (lacking) {
  test("keys", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `steered=plugin:node ${fileURLToPath(new URL("steered.mjs", import.meta.url))}`]);
    await gateway.conversation("harvest", "The harvest", [["user", "When?"], ["assistant", "In autumn."]]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("the palette finds conversations, agents and actions", async () => {
    await gateway.conversation("seeds", "Seeds", [["user", "Which?"], ["assistant", "All of them."]]);
    const page = await open(gateway, { path: "/#/c/seeds" });
    await page.getByText("All of them.").waitFor();
    await page.getByRole("link", { name: /The harvest/ }).waitFor(); // the palette offers what the list has
    await composer(page).fill("a draft");
    await page.keyboard.press("Control+k");
    const box = page.getByRole("combobox", { name: "Search and commands" });
    await waitFor(page, () => document.activeElement?.getAttribute("role") === "combobox");
    const activeOption = () => box.evaluate((e) => document.getElementById(e.getAttribute("aria-activedescendant"))?.innerText);
    const firstOption = await activeOption();
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await activeOption(), firstOption);
    assert.equal(await page.getByRole("dialog").getByRole("option", { selected: true }).count(), 1);
    await page.keyboard.press("ArrowUp");
    assert.equal(await activeOption(), firstOption);
    await box.fill("harv");
    await page.getByRole("option", { name: /The harvest/, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("In autumn.").waitFor();
    assert.equal(current(page), "harvest");
    // With an agent.
    await page.keyboard.press("Control+k");
    await box.fill("new conversation with steered");
    await page.getByRole("option", { name: /steered/, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "How can I help?" }).waitFor();
    await ask(page, "once more");
    await page.getByText(/Begun: once more/).waitFor();
    const { conversation } = await gateway.call(`/api/conversations/${current(page)}`);
    assert.equal(conversation.agent, "steered");
    // Escape closes it and returns the focus.
    await idle(page);
    await page.keyboard.press("Control+k");
    await box.waitFor();
    await page.keyboard.press("Escape");
    await box.waitFor({ state: "detached" });
    assert.equal(await focused(page), "Message");
    await page.goto(`${gateway.url}/#/c/seeds`);
    await page.getByText("All of them.").waitFor();
    assert.equal(await composer(page).inputValue(), "a draft");
    await wantClean(page);
  });

  test("keyboard shortcuts, their help, and the page without them", async () => {
    await gateway.conversation("older", "Older", [["assistant", "I am older."]]);
    await gateway.conversation("newer", "Newer", [["assistant", "I am newer."]]);
    const page = await open(gateway, { path: "/#/c/newer" });
    await page.getByText("I am newer.").waitFor();
    await page.getByRole("link", { name: /Older/ }).waitFor();
    await page.keyboard.press("Alt+ArrowDown");
    await page.getByText("I am older.").waitFor();
    await page.keyboard.press("Alt+ArrowUp");
    await page.getByText("I am newer.").waitFor();
    await page.keyboard.press("Control+Shift+O");
    await page.getByRole("heading", { name: "How can I help?" }).waitFor();
    await waitFor(page, () => document.activeElement?.id === "composer");
    // A question mark is text inside a field, and opens the shortcuts elsewhere.
    await page.keyboard.type("?");
    assert.equal(await composer(page).inputValue(), "?");
    await composer(page).fill("");
    const opener = page.getByRole("button", { name: "New conversation" });
    await opener.focus();
    await page.keyboard.press("?");
    const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await sheet.waitFor();
    assert.match(await sheet.innerText(), /stop the answer/);
    assert.equal(await page.locator("#root").evaluate((e) => e.inert), true, "what lies below can't be reached");
    assert.equal(await page.locator("#announcer").evaluate((e) => !e.closest("[inert]")), true, "but heard");
    await sheet.getByRole("checkbox", { name: "Use keyboard shortcuts" }).uncheck();
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    assert.match(await focused(page), /New conversation/);
    // With shortcuts off, only keys of fields work, also after a reload.
    await page.reload();
    await page.locator('.connection[data-state="connected"]').waitFor();
    await opener.focus();
    await page.keyboard.press("?");
    await page.keyboard.press("Control+k");
    await page.keyboard.press("Alt+ArrowDown");
    await ask(page, "echo still sent by Enter");
    await idle(page);
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("dialog", { name: "Settings" }).getByRole("checkbox", { name: /Use keyboard shortcuts/ }).check();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.match(await focused(page), /Settings/);
    await page.keyboard.press("?");
    await sheet.waitFor();
    await wantClean(page);
  });

  test("Escape closes the top layer, then stops; arrow up edits the last message; Alt+A goes to the pending request", async () => {
    const page = await open(gateway);
    await ask(page, "long 4000");
    await page.getByText("Section 1", { exact: true }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await page.locator(".log").getAttribute("data-open"), "1", "the answer continues");
    await page.keyboard.press("Escape");
    await page.getByText(/Stopped by you/).waitFor();
    await idle(page);
    await page.evaluate(() => { window.field = document.getElementById("composer"); });
    await page.keyboard.press("ArrowUp");
    await editor(page).waitFor();
    assert.equal(await editor(page).inputValue(), "long 4000");
    assert.equal(await focused(page), "Edit your message");
    await page.keyboard.press("Escape");
    await editor(page).waitFor({ state: "detached" });
    assert.equal(await focused(page), "Message", "the focus is where the editing began");
    await composer(page).fill("kept");
    await page.getByRole("article").first().hover();
    await page.getByRole("button", { name: "Edit" }).click();
    await editor(page).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await editor(page).waitFor({ state: "detached" });
    assert.equal(await composer(page).inputValue(), "kept", "editing leaves what was written");
    await composer(page).fill("");
    await ask(page, "ask");
    await page.getByRole("button", { name: "Deny" }).waitFor();
    assert.equal(await focused(page), "Message", "nothing takes the focus");
    await page.keyboard.press("Alt+a");
    assert.match(await focused(page), /Deny/);
    await page.keyboard.press("Enter");
    await page.getByText("Kept.").waitFor();
    await idle(page);
    assert.equal(await page.evaluate(() => window.field === document.getElementById("composer") && !window.field.disabled), true, "it is the same field throughout");
    await wantClean(page);
  });

  test("find in a conversation of ten thousand messages, older pages too", async () => {
    const id = "many";
    await gateway.call("/api/conversations", { id, title: "Many" });
    const messages = Array.from({ length: 10_000 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", text: i % 4000 === 7 ? `Number ${i} has a **golden** needle.` : `Number ${i}, hay.` }));
    await gateway.call(`/api/conversations/${id}/import`, { messages });
    const page = await open(gateway, { path: `/#/c/${id}` });
    await page.getByText("Number 9999, hay.").waitFor();
    await page.keyboard.press("Control+Shift+f");
    const field = page.getByRole("textbox", { name: "Find in the conversation" });
    const wantShown = async (n) => {
      await waitFor(page, (text) => {
        const log = document.querySelector(".log").getBoundingClientRect();
        const a = [...document.querySelectorAll("article.message.found")].find((e) => e.innerText.includes(text));
        const box = a?.getBoundingClientRect();
        return box && box.top >= log.top && box.bottom <= log.bottom && CSS.highlights.get("found-now")?.size === 1 && [...CSS.highlights.get("found-now")][0].toString() === "golden needle";
      }, `Number ${n} `);
      assert.ok(await articles(page).count() <= 330, "only what is near is drawn");
    };
    await allowed(page, "go", async () => { // far enough that the message is not rendered any more
      await field.fill("Golden needle");
      await page.getByRole("search").getByText("3 of 3").waitFor({ timeout: 60_000 });
      await page.getByText("Number 8007 has a golden needle.").waitFor();
      await wantShown(8007);
      await page.keyboard.press("Enter");
      await page.getByRole("search").getByText("2 of 3").waitFor();
      await wantShown(4007);
      await page.getByRole("button", { name: "Previous match" }).click();
      await wantShown(7);
      await page.getByRole("button", { name: "Next match" }).click();
      await wantShown(4007);
    });
    await field.fill("no such words");
    await page.getByRole("search").getByText("No results").waitFor();
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
    await waitFor(page, () => CSS.highlights.size === 0);
    assert.equal(await focused(page), "Message");
    await wantClean(page);
  });

  test("while an answer runs, a message can steer it, follow it or replace it, and a queued one can be changed or removed", async () => {
    const page = await open(gateway);
    await chooseAgent(page, "steered");
    await ask(page, "work");
    await page.getByText(/Begun: work/).waitFor();
    await composer(page).fill("more salt");
    await page.getByRole("button", { name: "Send now" }).waitFor();
    await page.getByRole("button", { name: "Queue", exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("You said more salt.").waitFor();
    await page.getByText("Added to the current answer").first().waitFor();
    // After it.
    await composer(page).fill("once, never mind");
    await page.keyboard.press("Control+Enter");
    const waits = page.getByRole("article").filter({ hasText: "Queued" });
    await waits.filter({ hasText: "never mind" }).getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Cancelled before an agent received it").waitFor();
    await composer(page).fill("once wrogn");
    await page.keyboard.press("Control+Enter");
    await waits.filter({ hasText: "wrogn" }).getByRole("button", { name: "Edit", exact: true }).first().click();
    await waitFor(page, () => document.getElementById("composer").value === "once wrogn");
    await composer(page).fill("once right");
    await page.keyboard.press("Control+Enter");
    await waits.filter({ hasText: "once right" }).waitFor();
    await composer(page).fill("end of it");
    await page.keyboard.press("Enter");
    await page.getByText(/Begun: once right/).waitFor();
    page.expected = 0;
    await idle(page);
    assert.match(await answer(page).innerText(), /History of work, more salt\./, "a discarded message reaches no agent");
    // One that takes nothing meanwhile.
    await chooseAgent(page, "test");
    await ask(page, "long 4000");
    await page.getByText("Section 1", { exact: true }).waitFor();
    await composer(page).fill("echo after it");
    await page.keyboard.press("Enter");
    await waits.filter({ hasText: "after it" }).waitFor();
    await composer(page).fill("echo at once");
    await page.getByRole("button", { name: "Queue", exact: true }).waitFor();
    await page.getByRole("button", { name: "Stop and send" }).click();
    await page.getByText(/Stopped/).first().waitFor();
    page.expected = 0;
    await waitFor(page, () => [...document.querySelectorAll("article.assistant")].at(-1)?.innerText.includes("at once"));
    await idle(page);
    await wantClean(page);
  });

  const listening = (page) => page.evaluate(() => {
    window.told = [];
    for (const id of ["announcer", "alarm"]) {
      new MutationObserver(() => {
        const text = document.getElementById(id).textContent;
        if (text) window.told.push({ id, at: performance.now(), text });
      }).observe(document.getElementById(id), { childList: true, characterData: true, subtree: true });
    }
  });

  for (const mode of ["end", "sentence", "off"]) {
    test(`answers are announced to screen readers: ${mode}`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), "leat-read-"));
      t.after(() => rmSync(folder, { recursive: true }));
      const page = await open(gateway, { reading: mode });
      await listening(page);
      await ask(page, `read ${folder}`);
      await waitFor(page, () => window.told.length > 0); // a page that sees the beginning and the end at once announces only the end
      writeFileSync(join(folder, "go"), "");
      await waitFor(page, () => window.told.some((t) => t.text.startsWith("Answer complete")));
      const announcements = await page.evaluate(() => window.told);
      assert.match(announcements.at(-1).text, /^Answer complete, \d+ words, .* seconds?\.$/);
      assert.equal(announcements[0].text, "The agent is answering.");
      announcements.forEach((t, i) => assert.ok(i === 0 || t.at - announcements[i - 1].at >= 490, "announcements are apart"));
      const sections = announcements.slice(1, -1);
      const text = sections.map((t) => t.text).join(" ");
      if (mode === "off") {
        assert.equal(text, "");
      } else {
        sections.forEach((t, i) => {
          assert.ok(t.text.length <= 400);
          assert.ok(i === 0 || t.at - sections[i - 1].at >= 2900, "stretches are seldom");
          // No half of a word: each stretch ends where a sentence, a heading or an item does.
          assert.match(t.text, /(?:[.!?]|Section \d|thing|with code|nested|words)$/);
        });
        const sectionText = (i) => `Section ${i} Some prose with bold, code and a link, long enough to wrap on a narrow screen and then some. first thing second thing with code nested third Table, 2 columns, 2 rows. Code block, 3 lines, go. quoted words`;
        assert.equal(text, `${sectionText(1)} ${sectionText(2)}`);
      }
      assert.equal(await page.locator(".log").getAttribute("aria-live"), "off");
      await wantClean(page);
    });
  }

  test("questions, failures and long tools are announced; the focus stays", async () => {
    const page = await open(gateway);
    await listening(page);
    await ask(page, "ask");
    await waitFor(page, () => window.told.some((t) => t.id === "alarm" && t.text.includes("May I delete the file?")));
    assert.equal(await focused(page), "Message");
    await page.getByRole("button", { name: "Allow" }).first().click();
    await idle(page);
    await ask(page, "fail");
    await waitFor(page, () => window.told.some((t) => t.id === "alarm" && t.text.includes("overloaded")));
    await idle(page);
    await chooseAgent(page, "steered");
    await ask(page, "tool");
    await waitFor(page, () => window.told.some((t) => t.text === "Tool digger is running."));
    page.expected--; // what ends it goes into it
    await ask(page, "end");
    await idle(page);
    await waitFor(page, () => window.told.some((t) => t.text.startsWith("Answer complete") && t.text.includes("1 tool")));
    const announcements = await page.evaluate(() => window.told);
    assert.equal(announcements.filter((t) => t.id === "alarm").length, 2, "each is told once");
    assert.equal(announcements.filter((t) => t.text.includes("is running")).length, 1);
    assert.ok(!announcements.some((t) => t.text.includes("bash")), "short tools are not told");
    await wantClean(page);
  });

  test("Tab reaches every control in order, and the log", async () => {
    await gateway.conversation("walk", "A walk", [["user", "First?"], ["assistant", "First. `code`"], ["user", "Second?"], ["assistant", "Second."]]);
    const page = await open(gateway, { path: "/#/c/walk" });
    await page.getByText("Second.", { exact: true }).waitFor();
    const place = () => page.evaluate(() => {
      const e = document.activeElement;
      if (e.matches(".skip")) return "skip";
      if (e.closest(".rail")) return "rail";
      if (e.closest(".top")) return "header";
      if (e.matches(".log")) return "log";
      if (e.matches(".to-end")) return "to the end";
      if (e.id === "composer") return "message";
      return e.closest(".composer") ? "composer" : e.closest(".log") ? "in the log" : "other";
    });
    await page.locator(".skip").focus();
    const stops = ["skip"];
    for (let i = 0; i < 300 && stops.at(-1) !== "message"; i++) {
      await page.keyboard.press("Tab");
      stops.push(await place());
    }
    assert.deepEqual(stops.filter((s, i) => s !== stops[i - 1]), ["skip", "rail", "header", "log", "composer", "message"]);
    assert.equal(stops.filter((s) => s === "log").length, 1);
    // Back from below it is the log again, not the last of its buttons.
    for (let i = 0; i < 10 && await place() !== "log"; i++) {
      await page.keyboard.press("Shift+Tab");
      assert.notEqual(await place(), "in the log");
    }
    assert.equal(await place(), "log");
    // Inside: arrows from message to message, Enter into one, Escape back, Tab on from any.
    const at = () => page.evaluate(() => document.activeElement.closest("article")?.innerText.match(/(First|Second)[?.]/)?.[0]);
    await page.keyboard.press("ArrowUp");
    assert.equal(await at(), "Second.");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("PageUp");
    assert.equal(await at(), "First.");
    await page.keyboard.press("ArrowDown");
    assert.equal(await at(), "Second?");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "BUTTON");
    const before = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    await page.keyboard.press("Tab");
    assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), before);
    assert.equal(await at(), "Second?", "it goes from button to button of the message");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.matches("article")), true);
    await page.keyboard.press("Tab");
    assert.equal(await place(), "composer");
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    assert.equal(await place(), "message");
    await wantClean(page);
  });

  test("the focus moves to the next control when its element is removed", async () => {
    for (const id of ["one", "two", "three"]) await gateway.conversation(`gone-${id}`, `Gone ${id}`, [["assistant", `I am ${id}.`]]);
    const page = await open(gateway, { path: "/#/c/gone-three" });
    await page.getByText("I am three.").waitFor();
    const entry = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: /Gone two/ }) });
    await entry.getByRole("link").focus();
    await page.keyboard.press("Tab");
    assert.match(await focused(page), /Options for Gone two/);
    await page.keyboard.press("Enter");
    await waitFor(page, () => document.activeElement.dataset.name === "Rename");
    await page.keyboard.press("Enter");
    await page.getByRole("textbox", { name: "Title" }).waitFor();
    await page.keyboard.press("Escape");
    await waitFor(page, () => document.activeElement.getAttribute("aria-label") === "Options for Gone two");
    await page.keyboard.press("ArrowUp");
    await waitFor(page, () => document.activeElement.dataset.name === "Delete");
    await page.keyboard.press("Enter");
    await waitFor(page, () => document.activeElement.innerText === "Cancel");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await waitFor(page, () => /Gone one/.test(document.activeElement.innerText));
    await page.getByText("Gone two").waitFor({ state: "detached" });
    // An attachment that is taken away leaves the focus where one writes.
    await page.getByLabel("Attach files").setInputFiles({ name: "list.txt", mimeType: "text/plain", buffer: Buffer.from("a list") });
    await page.getByText("6 B", { exact: true }).waitFor(); // the end of the upload moves the button
    await page.getByRole("button", { name: "Remove list.txt" }).click();
    await waitFor(page, () => document.activeElement.id === "composer");
    await wantClean(page);
  });

  test("on a phone the list is a modal sheet: Escape closes it and the focus returns", async () => {
    const page = await open(gateway, { path: "/#/c/harvest", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await page.getByText("In autumn.").waitFor();
    await page.getByRole("button", { name: "Conversations" }).focus();
    await page.keyboard.press("Enter");
    await waitFor(page, () => document.querySelector("main").inert && document.activeElement.closest(".rail"));
    await page.keyboard.press("Escape");
    await waitFor(page, () => !document.querySelector("main").inert && document.activeElement.getAttribute("aria-label") === "Conversations");
    // What can be touched is large enough.
    const small = await page.evaluate(() => [...document.querySelectorAll("main button:not(.link), main select, main .button, .rail button:not(.link)")]
      .filter((e) => e.getClientRects().length > 0 && (e.getBoundingClientRect().height < 43.5 || e.getBoundingClientRect().width < 43.5))
      .map((e) => `${e.getAttribute("aria-label") ?? e.innerText} ${Math.round(e.getBoundingClientRect().width)}x${Math.round(e.getBoundingClientRect().height)}`));
    assert.deepEqual(small, []);
    await wantClean(page);
  });

  for (const [name, options, css] of [
    ["at 320 px", { viewport: { width: 320, height: 256 * 2 } }, ""],
    ["with the text's spacing changed", { viewport: { width: 1280, height: 800 } }, "* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }"],
    ["with forced colours", { forcedColors: "active" }, ""],
    ["with more contrast", { contrast: "more" }, ""],
  ]) {
    test(`no text is clipped ${name}`, async () => {
      const page = await open(gateway, { path: "/#/c/harvest", ...options });
      if (css) await page.evaluate((text) => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(text);
        document.adoptedStyleSheets = [sheet];
      }, css);
      await ask(page, "tool");
      await idle(page);
      await ask(page, "long 1");
      await idle(page);
      await page.keyboard.press("Control+Shift+f");
      await page.getByRole("textbox", { name: "Find in the conversation" }).waitFor();
      const wide = () => page.evaluate(() => {
        const overflowing = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
        for (const e of document.querySelectorAll("main button, main select, main textarea, .sheet *, .find *")) {
          const box = e.getBoundingClientRect();
          if (box.width > 0 && !e.closest(".unseen, pre, .table, .log") && (box.right > innerWidth + 1 || box.left < -1)) overflowing.push(`${e.tagName} ${e.getAttribute("aria-label") ?? e.textContent}`);
        }
        for (const e of document.querySelectorAll("main button:not(.unseen), .sheet button")) {
          if (e.getClientRects().length > 0 && e.scrollHeight > e.clientHeight + 2 && getComputedStyle(e).overflow === "hidden") overflowing.push(`cut: ${e.textContent}`);
        }
        return overflowing;
      });
      assert.deepEqual(await wide(), []);
      await page.keyboard.press("Escape");
      for (const key of ["Control+k", "?"]) {
        if (key === "?") await page.locator(".log").focus();
        await page.keyboard.press(key);
        await page.getByRole("dialog").waitFor();
        assert.deepEqual(await wide(), [], key);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
      if (options.contrast) assert.equal(await page.evaluate(() => { const s = getComputedStyle(document.documentElement); return s.getPropertyValue("--muted") === s.getPropertyValue("--text"); }), true);
      if (options.forcedColors) assert.equal(await page.locator(".composer .field").evaluate((e) => getComputedStyle(e).borderTopStyle), "solid");
      await wantClean(page);
    });
  }

  test("with reduced motion only progress indicators move", async () => {
    const page = await open(gateway, { path: "/#/c/harvest" }); // the harness asks for reduced motion
    await ask(page, "long 4000");
    await page.getByText("Section 2", { exact: true }).waitFor();
    const animations = await page.evaluate(() => document.getAnimations().filter((a) => {
      const frames = a.effect.getKeyframes();
      return frames.some((f) => "transform" in f || "height" in f || "top" in f || "left" in f) && a.effect.getComputedTiming().duration > 0;
    }).map((a) => a.animationName ?? a.transitionProperty));
    assert.deepEqual(animations, []);
    await page.keyboard.press("Escape");
    await idle(page);
    await wantClean(page);
  });

  const pasted = (page, text) => page.evaluate((t) => {
    const data = new DataTransfer();
    data.setData("text/plain", t);
    const e = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    if (document.getElementById("composer").dispatchEvent(e)) document.execCommand("insertText", false, t); // what the browser does itself
  }, text);

  test("a large paste becomes a file, or text if the user wants; Ctrl+Shift+V keeps it text", async () => {
    const page = await open(gateway, { path: "/#/c/harvest" });
    await page.getByText("In autumn.").waitFor();
    const large = "one line of many\n".repeat(80);
    await composer(page).fill("Look: ");
    await composer(page).focus();
    await page.keyboard.press("End");
    await pasted(page, large);
    const attachments = page.getByRole("list", { name: "Attachments" });
    await attachments.getByText("pasted.txt").waitFor();
    await attachments.getByText(/^[\d.]+ kB$/).waitFor(); // the end of the upload moves the button
    assert.equal(await composer(page).inputValue(), "Look: ");
    await page.getByRole("button", { name: "Insert as text" }).click();
    await waitFor(page, (t) => document.getElementById("composer").value === t, `Look: ${large}`);
    await attachments.waitFor({ state: "detached" });
    await waitFor(page, () => document.activeElement.id === "composer");
    await composer(page).fill("");
    await page.evaluate(() => document.getElementById("composer").dispatchEvent(new KeyboardEvent("keydown", { key: "V", ctrlKey: true, shiftKey: true, bubbles: true })));
    await pasted(page, large);
    assert.equal(await composer(page).inputValue(), large);
    await composer(page).fill("");
    await pasted(page, "short");
    assert.equal(await composer(page).inputValue(), "short");
    await wantClean(page);
  });

  test("Enter that ends an IME composition sends nothing", async () => {
    const page = await open(gateway, { path: "/#/c/harvest" });
    await page.getByText("In autumn.").waitFor();
    const count = await articles(page).count();
    await composer(page).fill("にほん");
    // Safari's order: the composition has ended when its key comes, which has the code 229 then.
    await page.evaluate(() => {
      const f = document.getElementById("composer");
      f.dispatchEvent(new CompositionEvent("compositionend", { data: "日本", bubbles: true }));
      f.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }));
    });
    // And that of all others.
    const client = await page.context().newCDPSession(page);
    await client.send("Input.imeSetComposition", { text: "日本", selectionStart: 2, selectionEnd: 2 });
    await page.evaluate(() => document.getElementById("composer").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true })));
    await client.send("Input.insertText", { text: "日本" });
    assert.match(await composer(page).inputValue(), /日本/);
    assert.equal(await articles(page).count(), count);
    await page.keyboard.press("Enter");
    await waitFor(page, (n) => document.querySelectorAll("article.message").length > n, count);
    await idle(page);
    await wantClean(page);
  });

  test("the first message of a conversation survives offline, a reload, and further typing", async () => {
    const emptyGateway = await Gateway.start();
    try {
      const page = await open(emptyGateway);
      await emptyGateway.kill();
      await page.locator('.connection:not([data-state="connected"])').waitFor();
      await page.evaluate(() => { window.field = document.getElementById("composer"); });
      await composer(page).fill("echo the very first");
      await composer(page).press("Enter");
      await page.getByRole("article").getByText("echo the very first").waitFor();
      assert.equal(await focused(page), "Message");
      await page.keyboard.type("and more");
      assert.equal(await page.evaluate(() => window.field === document.getElementById("composer")), true);
      const id = current(page);
      const browserStorage = await page.evaluate(() => ({ ...localStorage }));
      assert.ok(Object.values(browserStorage).some((v) => v.includes("echo the very first")), "it is kept");
      // The page is loaded again by the gateway that is back: it knows nothing of the conversation yet.
      await page.goto("about:blank");
      await emptyGateway.run();
      await page.goto(`${emptyGateway.url}/#/c/${id}`);
      page.expected = 1;
      await idle(page);
      assert.match(await answer(page).innerText(), /the very first/);
      assert.equal(await articles(page).count(), 2);
      assert.equal(await composer(page).inputValue(), "and more");
      const { conversations } = await emptyGateway.call("/api/conversations");
      assert.equal(conversations.length, 1);
      await wantClean(page, { console: networkErrors });
    } finally {
      await emptyGateway.close();
    }
  });

  for (const [theme, phone] of looks) {
    test(`the layers are accessible: ${theme}, ${phone ? "phone" : "wide"}`, async () => {
      const page = await open(gateway, { path: "/#/c/harvest", colorScheme: theme, ...(phone && { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }) });
      await page.getByText("In autumn.").waitFor();
      if (phone) await page.getByRole("button", { name: "More" }).click();
      await page.getByRole(phone ? "menuitem" : "button", { name: "Find in the conversation" }).click();
      await page.getByRole("textbox", { name: "Find in the conversation" }).fill("autumn");
      await page.getByRole("search").getByText("1 of 1").waitFor();
      await accessible(page, "find");
      for (const name of ["Search and commands", "Settings", "Keyboard shortcuts"]) {
        if (phone) await page.getByRole("button", { name: "Conversations" }).click();
        await page.getByRole("button", { name, exact: true }).click();
        await page.getByRole("dialog").waitFor();
        await accessible(page, name);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is not wider than the page`);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
      await wantClean(page);
    });
  }
}
