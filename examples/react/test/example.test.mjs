// Clicks through the example in Chromium, over the real gateway with its demo agent and users. Needs Go and Chromium.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const folder = fileURLToPath(new URL("..", import.meta.url));
const root = join(folder, "../..");
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const skip = existsSync(browserPath) ? false : "SKIPPED: needs Chromium; on Debian: apt-get install chromium";
const scratch = mkdtempSync(join(tmpdir(), "leat-example-"));
const secret = "a secret of at least 32 bytes for this test";
const patience = { timeout: 60_000 };

let gateway;
let browser;

before(async () => {
  if (skip) return;
  const binary = process.env.LEAT_BIN ?? join(scratch, "leat");
  if (!process.env.LEAT_BIN) execFileSync("go", ["build", "-o", binary, "./cmd/leat"], { cwd: root, stdio: "inherit" });
  gateway = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--data", join(scratch, "data"), "--agent", "demo=demo?speed=5"], {
    env: { PATH: process.env.PATH, HOME: scratch, LEAT_USERS_SECRET: secret, LEAT_API_TOKEN: "the-admin-token-of-this-test" }, stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: gateway.stdout }).on("line", (l) => {
      const m = /listens on (http:\/\/\S+)/.exec(l);
      if (m) resolve(m[1]);
    }).on("close", () => reject(new Error("the gateway ended")));
  });
  process.env.LEAT_URL = url; // of vite.config.ts
  process.env.LEAT_USERS_SECRET = secret;
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  if (gateway && gateway.exitCode === null) {
    const exited = new Promise((resolve) => gateway.once("exit", resolve));
    gateway.kill("SIGTERM");
    await exited;
  }
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

let pages = [];
let errors = [];

/** Opens a page. An error in its console fails the test. */
async function open(url, viewport = { width: 1200, height: 800 }) {
  const page = await browser.newPage({ viewport });
  pages.push(page);
  page.setDefaultTimeout(60_000);
  page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
  page.on("pageerror", (e) => errors.push(String(e)));
  await page.goto(url);
  return page;
}

/** Closes the pages, and then the server: it waits for their sockets. */
async function end(close) {
  await Promise.all(pages.map((p) => p.close()));
  await close();
  const seenErrors = errors;
  [pages, errors] = [[], []];
  assert.deepEqual(seenErrors, []);
}

const send = async (page, text) => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
};
const idle = (page) => page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached", ...patience });

test("the built page: tools, reasoning, an approval, stop, a reload, the list, a phone", { skip }, async (t) => {
  const { preview } = await import("vite");
  const server = await preview({ root: folder, configFile: join(folder, "vite.config.ts"), preview: { port: 0, host: "127.0.0.1" }, logLevel: "error" });
  t.after(() => end(() => server.close()));
  const url = server.resolvedUrls.local[0];
  const page = await open(url);

  await send(page, "tools of the example");
  await page.getByRole("table").waitFor(); // of the answer's Markdown
  await idle(page);
  assert.deepEqual(await page.locator("[data-part=tool] summary").allInnerTexts(), ["Checksum: done", "Encode: done", "Divide by nothing: failed"]);
  await page.locator("[data-part=reasoning] summary").first().click();
  await page.getByText("run several tools").waitFor();
  await page.locator("[data-part=reasoning] summary").first().click(); // a reload closes it

  await send(page, "ask to clean up");
  const question = page.locator("form[data-request=approval]");
  await question.getByRole("button", { name: "approve" }).click();
  await question.waitFor({ state: "detached" });
  await idle(page);

  await send(page, "long 5000");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  await idle(page);

  const before = await page.locator("article").allInnerTexts();
  await page.reload();
  await page.locator("article").nth(before.length - 1).waitFor();
  assert.deepEqual(await page.locator("article").allInnerTexts(), before);
  const log = await page.locator(".messages").evaluate((e) => ({ left: e.scrollHeight - e.scrollTop - e.clientHeight, scrolls: e.scrollHeight > e.clientHeight }));
  assert.ok(log.scrolls && log.left < 32, `the log is ${log.left} pixels from its end`);

  await page.getByRole("button", { name: "New conversation" }).click();
  await send(page, "12 * 7");
  await page.getByText("12 * 7 = 84").waitFor();
  await page.getByRole("navigation").getByRole("button", { name: "12 * 7" }).waitFor();
  const first = page.getByRole("navigation").getByRole("button").filter({ hasText: "tools of the example" });
  await first.click();
  await page.getByRole("table").waitFor();
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, "example.png") });

  const phone = await open(`${url}#${new URL(page.url()).hash.slice(1)}`, { width: 375, height: 700 });
  await phone.getByRole("table").waitFor();
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the phone");
  if (process.env.SHOTS) await phone.screenshot({ path: join(process.env.SHOTS, "example-phone.png") });
});

test("under the development server, with StrictMode: one question, one answer", { skip }, async (t) => {
  const { createServer } = await import("vite");
  const server = await createServer({ root: folder, configFile: join(folder, "vite.config.ts"), cacheDir: join(scratch, "vite"), server: { port: 0, host: "127.0.0.1", hmr: false }, logLevel: "error" });
  t.after(() => end(() => server.close()));
  await server.listen();
  const page = await open(server.resolvedUrls.local[0]);
  await send(page, "12 * 7");
  await page.getByText("12 * 7 = 84").waitFor();
  await idle(page);
  assert.deepEqual(await page.locator("article").evaluateAll((all) => all.map((e) => e.dataset.role)), ["user", "assistant"]);
});

test("the snippets in the README of @leat/react compile", (t) => {
  const at = join(folder, ".tmp");
  mkdirSync(at, { recursive: true });
  t.after(() => rmSync(at, { recursive: true }));
  const snippets = [...readFileSync(join(root, "clients/react/README.md"), "utf8").matchAll(/```tsx\n([^]*?)```/g)];
  assert.equal(snippets.length, 2);
  for (const [i, [, code]] of snippets.entries()) writeFileSync(join(at, `snippet${i}.tsx`), code);
  writeFileSync(join(at, "tsconfig.json"), JSON.stringify({ extends: "../tsconfig.json", include: ["*.tsx"] }));
  execFileSync(process.execPath, [join(folder, "node_modules/typescript/bin/tsc"), "-p", at], { stdio: "inherit" });
});
