// The dashboard's states, one after another, in the running program: axe finds nothing, and nothing overflows, is cut off or is out of
// reach. Wide and phone, light and dark: two of the four by default, all with LEAT_FULL=1. LEAT_SCREENSHOTS=FOLDER writes a picture of
// each state.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { ask, browser, closeBrowser, composer, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { faultsOfLayout } from "./layoutFaults.mjs";

const plugin = (name, file) => `${name}=plugin:node ${fileURLToPath(new URL(file, import.meta.url))}`;
const variants = [["light", "wide"], ["dark", "phone"], ["light", "phone"], ["dark", "wide"]].slice(0, process.env.LEAT_FULL ? 4 : 2);
const sizes = { wide: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const folder = process.env.LEAT_SCREENSHOTS;

if (lacking) {
  test("the dashboard's states", { skip: lacking }, () => {});
} else {
  let gateway, empty, locked, gates;
  let count = 0;
  before(async () => {
    gates = mkdtempSync(join(tmpdir(), "leat-states-"));
    if (folder) mkdirSync(folder, { recursive: true });
    await browser();
    empty = await Gateway.start(["--agent", "demo"]);
    locked = await Gateway.start([], { LEAT_API_TOKEN: "a-token-of-the-tests-that-is-long-enough" });
    gateway = await Gateway.start(["--agent", plugin("gallery", "gallery.mjs"), "--agent", plugin("rich", "rich.mjs"), "--agent", plugin("helper", "show.mjs")]);
    for (const [i, title] of ["Backups are slow since Tuesday", "A plan for the garden", "Why is the sky blue, and why is it red in the evening? A long title that has no room in the list", "Recipe"].entries()) {
      await gateway.conversation(`old-${i}`, title, [["user", "A question."], ["assistant", "An answer."]]);
    }
  });
  after(async () => {
    await closeBrowser();
    await Promise.all([gateway, empty, locked].map((g) => g?.close()));
    rmSync(gates, { recursive: true, force: true });
  });

  for (const [theme, size] of variants) {
    const options = { colorScheme: theme, viewport: sizes[size] };
    const phone = size === "phone";
    const faults = []; // of the states of a test

    /** Checks the state of a page, and writes its picture. */
    async function check(page, name) {
      await page.evaluate(() => document.fonts.ready);
      if (folder) await page.screenshot({ path: join(folder, `${name}-${theme}-${size}.png`) });
      for (const fault of await page.evaluate(faultsOfLayout)) faults.push(`${name}: ${fault}`);
      await accessible(page, name).catch((err) => faults.push(err.message));
    }

    /** Opens a new conversation with an agent, and sends it messages. */
    async function begin(agent, ...texts) {
      const id = `state-${++count}`;
      await gateway.call("/api/conversations", { id, agent });
      const page = await open(gateway, { ...options, path: `/#/c/${id}` });
      for (const [i, text] of texts.entries()) {
        await ask(page, text);
        if (i < texts.length - 1) await idle(page);
      }
      return page;
    }

    const stop = async (page) => {
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await idle(page);
    };
    const state = (name, run) => test(`${name}, ${theme}, ${size}`, async () => {
      faults.length = 0;
      await run();
      assert.deepEqual(faults, []);
    });

    state("the first visit", async () => {
      const page = await open(empty, options);
      await page.getByRole("heading", { name: "How can I help?" }).waitFor();
      await check(page, "01-first-visit");
      await composer(page).fill("What can you do?");
      await check(page, "02-typed");
      await wantClean(page);
    });

    state("a new conversation", async () => {
      const page = await open(gateway, options);
      await page.getByRole("heading", { name: "How can I help?" }).waitFor();
      await check(page, "03-new");
      if (phone) {
        await page.getByRole("button", { name: /^Conversations/ }).click();
        await page.getByRole("searchbox").waitFor();
        await check(page, "04-list");
      }
      await wantClean(page);
    });

    state("a growing answer", async () => {
      const page = await begin("test", "long 400");
      await page.getByText("Section 3", { exact: true }).waitFor();
      await check(page, "05-growing");
      await composer(page).fill("another question");
      await composer(page).press("Enter");
      await page.getByText("another question").waitFor();
      await check(page, "06-queued");
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await page.getByText("no script another").or(page.getByText(/^Stopped/)).first().waitFor();
      await wantClean(page);
    });

    state("formulas and diagrams", async () => {
      const page = await begin("rich", "maths");
      await idle(page);
      await page.locator("iframe").first().waitFor();
      await check(page, "07-formulas");
      await wantClean(page);
    });

    state("reasoning and tools that run", async () => {
      const id = join(gates, `${++count}`);
      mkdirSync(id);
      const page = await begin("gallery", `steps ${id}`);
      const go = (gate) => writeFileSync(join(id, gate), "");
      go("begin");
      await page.getByText("Reasoning", { exact: false }).first().waitFor();
      await check(page, "08-reasoning");
      for (const gate of ["reasoned", "more", "given"]) go(gate);
      await page.locator(".tool", { hasText: "make all -j2" }).waitFor();
      await page.locator(".tool").getByRole("button").first().click();
      await page.getByText("built 15").waitFor();
      await check(page, "09-tool-runs");
      for (const gate of ["output", "done", "packed", "sent", "end"]) go(gate);
      await idle(page);
      await check(page, "10-tool-done");
      await wantClean(page);
    });

    state("many tools", async () => {
      const page = await begin("rich", "steps 12");
      await page.getByRole("button", { name: /^12 steps/ }).waitFor();
      await check(page, "11-steps");
      await stop(page);
      await check(page, "12-stopped");
      await wantClean(page);
    });

    state("every part", async () => {
      const page = await begin("gallery", "gallery");
      await idle(page);
      await page.getByText("That is all.").waitFor();
      await check(page, "13-parts");
      for (const row of await page.locator(".tool > .row, .data > .row").all()) await row.click();
      await page.locator(".tool").first().scrollIntoViewIfNeeded();
      await check(page, "14-parts-open");
      await wantClean(page);
    });

    state("rich results", async () => {
      const page = await begin("rich", "results");
      await idle(page);
      for (const row of await page.locator(".tool > .row").all()) await row.click();
      await check(page, "15-results");
      await wantClean(page);
    });

    state("an app", async () => {
      const page = await begin("rich", "app");
      await idle(page);
      await page.frameLocator(".app iframe").getByText("initialized by").waitFor();
      await check(page, "16-app");
      page.elsewhere.length = 0; // the app tries, and its policy refuses
      await wantClean(page, { console: /evil\.example|ERR_|Content Security Policy|Refused/ });
    });

    state("a picture", async () => {
      const page = await begin("rich", "picture");
      await idle(page);
      await check(page, "17-picture");
      await page.getByRole("button", { name: /wide\.png/ }).click();
      await page.getByRole("dialog").waitFor();
      await check(page, "18-lightbox");
      await wantClean(page);
    });

    state("a question", async () => {
      const page = await begin("gallery", `ask ${JSON.stringify({ tool: "deploy", prompt: "May I deploy to production?", data: { target: "production", force: true } })}`);
      await page.getByRole("button", { name: "Deny" }).waitFor();
      await check(page, "19-question");
      await page.getByRole("button", { name: "Deny" }).click();
      await idle(page);
      await check(page, "20-answered");
      await wantClean(page);
    });

    state("a failure", async () => {
      const page = await begin("test", "fail");
      await idle(page);
      await check(page, "21-failed");
      await wantClean(page);
    });

    state("editing", async () => {
      const page = await begin("test", "echo a short answer");
      await idle(page);
      await page.locator("article.user").hover();
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.getByRole("textbox", { name: "Edit your message" }).waitFor();
      await check(page, "22-editing");
      await page.keyboard.press("Escape");
      await composer(page).fill("answer");
      await page.getByLabel("Attach files").setInputFiles([
        { name: "list.txt", mimeType: "text/plain", buffer: Buffer.from("a list") },
        { name: "a-report-with-a-name-that-is-far-too-long-for-its-place.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7 report") },
      ]);
      await page.locator(".attachments li").nth(1).getByText(/ B$/).waitFor();
      await check(page, "23-attached");
      await wantClean(page);
    });

    state("panels", async () => {
      const page = await open(gateway, { ...options, path: "/#/c/old-2" });
      await page.getByText("An answer.").waitFor();
      await check(page, "24-long-title");
      await page.keyboard.press("Control+K");
      await page.getByRole("combobox", { name: "Search and commands" }).waitFor();
      await check(page, "25-palette");
      await page.keyboard.press("Escape");
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
      await check(page, "26-shortcuts");
      await page.keyboard.press("Escape");
      if (phone) await page.getByRole("button", { name: /^Conversations/ }).click();
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("dialog", { name: "Settings" }).waitFor();
      await check(page, "27-settings");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+Shift+f");
      await page.getByRole("textbox", { name: "Find in the conversation" }).fill("answer");
      await check(page, "28-find");
      await wantClean(page);
    });

    state("menus and the selection", async () => {
      const page = await open(gateway, { ...options, path: "/#/c/old-1" });
      await page.getByText("An answer.").waitFor();
      await page.getByRole("button", { name: phone ? "More" : /^Agent: / }).click();
      await page.getByRole("menu").waitFor();
      await check(page, "37-agents");
      await page.keyboard.press("Escape");
      const drag = (type) => page.locator(".log").evaluate((log, type) => {
        const data = new DataTransfer();
        data.items.add(new File(["words"], "note.txt", { type: "text/plain" }));
        log.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
      }, type);
      await drag("dragenter");
      await page.getByText("Drop files to attach them").waitFor();
      await check(page, "38-drop");
      await drag("dragleave");
      await page.getByText("Drop files to attach them").waitFor({ state: "detached" });
      if (phone) await page.getByRole("button", { name: /^Conversations/ }).click();
      const row = page.locator(".list li", { has: page.getByRole("link", { name: "A plan for the garden" }) });
      await row.hover();
      await row.getByRole("button", { name: /^Options for/ }).click();
      await page.getByRole("menu").waitFor();
      await check(page, "39-row-menu");
      await page.getByRole("menuitem", { name: "Select", exact: true }).click();
      await page.getByRole("checkbox", { name: /Recipe/ }).check();
      await check(page, "40-selection");
      const bar = page.getByRole("group", { name: "Selection" });
      await bar.getByRole("button", { name: "Delete", exact: true }).click();
      await bar.getByText("Delete 2 conversations?").waitFor();
      await check(page, "41-deletion");
      await wantClean(page);
    });

    state("an answer that can be brought back", async () => {
      const page = await begin("test", "echo the first answer");
      await idle(page);
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await check(page, "42-undo");
      await wantClean(page);
    });

    state("inside an answer", async () => {
      const page = await begin("test", "tool");
      await idle(page);
      await page.getByRole("article").filter({ hasText: "There are 20 files." }).getByRole("button", { name: "Inspect" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("treeitem", { name: /^Tool bash/ }).click();
      await check(page, "29-trace");
      if (phone) await page.keyboard.press("Escape");
      await page.getByRole("tab", { name: "Events" }).click();
      await page.getByRole("slider").waitFor();
      await check(page, "30-events");
      await wantClean(page);
    });

    state("the overview", async () => {
      const page = await open(gateway, options);
      if (phone) await page.getByRole("button", { name: /^Conversations/ }).click();
      await page.getByRole("button", { name: "Overview" }).click();
      await page.getByRole("region", { name: "Live turns" }).waitFor();
      await page.waitForFunction(() => document.querySelector(".tile .value")?.textContent !== "–");
      await check(page, "36-overview");
      await wantClean(page);
    });

    state("signing in", async () => {
      const page = await open(locked, { ...options, signedOut: true });
      await page.getByLabel("Access token").waitFor();
      await check(page, "31-sign-in");
      await page.getByLabel("Access token").fill("wrong");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText("Invalid token").waitFor();
      await check(page, "32-refused");
      await wantClean(page, { console: /401/ });
    });

    state("without a connection", async () => {
      const page = await begin("test", "echo hello there");
      await idle(page);
      await page.context().setOffline(true);
      await page.locator('.connection[data-kind="offline"]').waitFor({ timeout: 60_000 });
      await composer(page).fill("echo later");
      await composer(page).press("Enter");
      await page.getByText("Waiting to be sent").waitFor();
      await check(page, "33-offline");
      await wantClean(page, { console: /net::ERR_|WebSocket connection/ });
    });

    state("what is gone", async () => {
      const page = await open(gateway, { ...options, path: "/#/c/there-is-none" });
      await page.getByText("Conversation not found, or you don’t have access.").waitFor();
      await check(page, "34-not-found");
      await page.route("**/api/auth/session", (r) => r.abort());
      await page.reload();
      await page.getByText("The gateway can’t be reached.").waitFor();
      await check(page, "35-unreachable");
      await wantClean(page, { console: /404|net::ERR_|WebSocket connection/ });
    });
  }
}
