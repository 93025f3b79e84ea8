// Ten tasks of users, found by roles and accessible names only, with a maximum number of steps. A step is a key press, a click, or
// a typed text. The tests don't know how the page is built.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { closeBrowser, Gateway, lacking, open } from "./harness.mjs";

const patience = { timeout: 60_000 };

/** A user at a page, whose steps are counted. */
class Person {
  constructor(page) {
    this.page = page;
    this.steps = 0;
    page.setDefaultTimeout(patience.timeout);
  }

  async click(role, name, within = this.page) {
    this.steps++;
    await within.getByRole(role, { name }).last().click();
  }

  /** Types into the field with a name, or into the focused one. */
  async type(text, name, role = "textbox") {
    this.steps++;
    if (name) await this.page.getByRole(role, { name }).fill(text);
    else await this.page.keyboard.type(text);
  }

  async press(key) {
    this.steps++;
    await this.page.keyboard.press(key);
  }

  async attach(name, file) {
    this.steps++;
    await this.page.getByLabel(name).setInputFiles(file);
  }

  /** Looking is not a step. */
  sees(role, name, within = this.page) {
    return within.getByRole(role, { name }).last().waitFor(patience);
  }

  reads(text) {
    return this.page.getByRole("article").getByText(text).last().waitFor(patience);
  }

  /** Sends a message before the task begins, without counting a step. */
  async askUncounted(text) {
    await this.page.getByRole("textbox", { name: "Message" }).fill(text);
    await this.page.getByRole("textbox", { name: "Message" }).press("Enter");
  }

  /** Waits until nothing runs. */
  async rests() {
    await this.page.waitForFunction(() => !document.title.startsWith("…") && !document.querySelector('[aria-busy="true"]'), undefined, patience);
  }
}

if (lacking) {
  test("ten tasks", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `timed=plugin:node ${fileURLToPath(new URL("timed.mjs", import.meta.url))}`]);
    await gateway.conversation("yesterday", "The plan of yesterday", [["user", "What is the plan?"], ["assistant", "The plan is to test."]]);
    for (let i = 0; i < 20; i++) await gateway.conversation(`other-${i}`, `Something else ${i}`, [["assistant", "Something else."]]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  const tasks = [
    ["find yesterday’s answer", 2, async () => {}, async (p) => {
      await p.type("plan yest", "Find a conversation", "searchbox");
      await p.click("link", /The plan of yesterday/);
      await p.reads("The plan is to test.");
    }],
    ["find yesterday’s answer by the keyboard", 3, async () => {}, async (p) => {
      await p.press("Control+k");
      await p.sees("combobox", "Search and commands");
      await p.type("plan");
      await p.page.getByRole("option", { name: /The plan of yesterday/, selected: true }).waitFor(patience); // it is the first one when the list is filtered
      await p.press("Enter");
      await p.reads("The plan is to test.");
    }],
    ["stop", 1, async (p) => {
      await p.askUncounted("long 4000");
      await p.sees("heading", "Section 1");
    }, async (p) => {
      await p.click("button", "Stop");
      await p.reads(/Stopped by you/);
    }],
    ["retry", 1, async (p) => {
      await p.askUncounted(`flaky ${crypto.randomUUID()}`);
      await p.reads(/overloaded/);
      await p.rests();
    }, async (p) => {
      await p.click("button", /^Try again$/);
      await p.reads("This is try 2.");
      assert.equal(await p.page.getByRole("article").count(), 2, "the question, and the one answer");
    }],
    ["attach", 3, async () => {}, async (p) => {
      await p.attach("Attach files", { name: "list.txt", mimeType: "text/plain", buffer: Buffer.from("a list") });
      await p.type("files", "Message");
      await p.page.getByText("6 B", { exact: true }).waitFor(patience); // the upload is complete
      await p.press("Enter");
      await p.reads("list.txt text/plain 6");
    }],
    ["approve", 1, async (p) => {
      await p.askUncounted("ask");
      await p.sees("button", /^Allow/);
    }, async (p) => {
      await p.click("button", /^Allow/);
      await p.reads("Deleted.");
    }],
    ["approve by the keyboard", 3, async (p) => {
      await p.askUncounted("ask");
      await p.sees("button", /^Allow/);
    }, async (p) => {
      await p.press("Alt+a");
      await p.press("Tab");
      await p.page.getByRole("button", { name: /^Allow/ }).and(p.page.locator(":focus")).waitFor(patience);
      await p.press("Enter");
      await p.reads("Deleted.");
    }],
    ["follow a tool", 1, async (p) => {
      await p.askUncounted("tool");
      await p.sees("button", /bash/);
    }, async (p) => {
      await p.click("button", /bash/);
      await p.page.getByRole("log").getByText(/file 20/).waitFor(patience);
    }],
    ["see why it was slow", 1, async (p) => {
      // An agent that falls silent in the middle, for longer than the two seconds that count as a gap.
      const folder = mkdtempSync(join(tmpdir(), "leat-web-gap-"));
      after(() => rmSync(folder, { recursive: true }));
      await gateway.call("/api/conversations", { id: "slow", title: "Slow", agent: "timed" });
      await p.page.goto(`${gateway.url}/#/c/slow`);
      await p.page.getByRole("heading", { level: 1, name: "Slow" }).waitFor(patience);
      await p.askUncounted(`steps ${folder}`);
      await p.reads("three.");
      // The silence begins with the last event before the pause, the end of the words.
      while (!(await gateway.transcript("slow")).transcript.messages.at(-1).parts[0].ended) await new Promise((r) => setTimeout(r, 50));
      const silent = performance.now();
      await p.page.waitForFunction((since) => performance.now() - since > 2500, await p.page.evaluate(() => performance.now()), patience);
      p.silent = performance.now() - silent;
      for (const gate of ["tool", "end"]) writeFileSync(join(folder, gate), "");
      await p.reads("There are 2 files.");
      await p.rests();
    }, async (p) => {
      await p.click("button", "Inspect");
      const inside = p.page.getByRole("complementary", { name: "Answer details" });
      await inside.getByRole("treeitem", { name: /^Tool bash/ }).waitFor(patience);
      const names = await inside.getByRole("term").allInnerTexts();
      const pause = await inside.getByRole("definition").nth(names.indexOf("Longest pause")).innerText();
      assert.match(pause, /^[\d.]+ s$/);
      assert.ok(Number.parseFloat(pause) * 1000 > p.silent - 500, `${pause} of ${p.silent} ms`);
    }],
    ["copy code", 1, async (p) => {
      await p.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await p.askUncounted("long 1");
      await p.sees("button", "Copy code");
      await p.rests();
    }, async (p) => {
      await Promise.all([p.sees("button", "Copied"), p.click("button", "Copy code")]); // the confirmation lasts two seconds
      assert.match(await p.page.evaluate(() => navigator.clipboard.readText()), /^func main\(\) \{/);
    }],
    ["rename", 4, async (p) => {
      await p.askUncounted("echo a title that is not good");
      await p.sees("link", /a title that is not good/);
      await p.page.getByRole("link", { name: /a title that is not good/ }).focus();
    }, async (p) => {
      await p.click("button", /^Options for echo a title/);
      await p.click("menuitem", "Rename");
      await p.type("A better one", "Title");
      await p.press("Enter");
      await p.page.getByRole("heading", { level: 1, name: "A better one" }).waitFor(patience);
    }],
    ["continue on the phone", 4, async (p) => {
      await p.askUncounted("echo begun at the desk");
      await p.reads("begun at the desk");
      await p.rests();
    }, async (p) => {
      const phone = new Person(await open(gateway, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }));
      await phone.click("button", "Conversations");
      await phone.click("link", /begun at the desk/);
      await phone.reads("begun at the desk");
      await phone.type("echo and a new text", "Message");
      await phone.click("button", "Send");
      await phone.reads("and a new text");
      await p.reads("and a new text");
      p.steps += phone.steps;
      await phone.page.context().close();
    }],
  ];
  for (const [name, limit, prepare, doIt] of tasks) {
    test(`${name}, in at most ${limit} step${limit === 1 ? "" : "s"}`, async () => {
      const p = new Person(await open(gateway));
      await prepare(p);
      p.steps = 0;
      await doIt(p);
      assert.ok(p.steps > 0 && p.steps <= limit, `it took ${p.steps} steps of ${limit}`);
      await p.page.context().close();
    });
  }
}
