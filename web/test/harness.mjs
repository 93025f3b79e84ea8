// A gateway and a browser for the dashboard's tests: the real binary, Debian's Chromium, and checks that run at every change of the
// page.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { watch } from "./watch.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** The reason why the tests can't run here, or an empty string. */
export const lacking = existsSync(browserPath) ? "" : "needs Chromium; on Debian: apt-get install chromium";

/** The pairs of theme and phone in which pages are checked. */
export const looks = [["light", false], ["dark", false], ["light", true], ["dark", true]];

let binary = process.env.LEAT_BIN;

function build() {
  if (binary) return binary;
  binary = join(mkdtempSync(join(tmpdir(), "leat-web-")), "leat");
  execFileSync("go", ["build", "-o", binary, "./cmd/leat"], { cwd: root, stdio: "inherit" });
  process.on("exit", () => rmSync(join(binary, ".."), { recursive: true, force: true }));
  return binary;
}

const freePort = () => new Promise((resolve, reject) => {
  const s = createServer().on("error", reject).listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => resolve(port));
  });
});

/** The real gateway with the agent of agent.mjs. */
export class Gateway {
  static async start(args = [], env = {}) {
    const g = new Gateway();
    g.data = mkdtempSync(join(tmpdir(), "leat-web-data-"));
    g.port = await freePort();
    g.url = `http://127.0.0.1:${g.port}`;
    g.args = ["serve", "--listen", `127.0.0.1:${g.port}`, "--data", g.data, "--agent", `test=plugin:node ${fileURLToPath(new URL("agent.mjs", import.meta.url))}`, ...args];
    g.env = env;
    await g.run();
    return g;
  }

  async run() {
    this.log = "";
    this.process = spawn(build(), this.args, { env: { PATH: process.env.PATH, HOME: this.data, NO_COLOR: "1", ...this.env }, stdio: ["ignore", "pipe", "pipe"] });
    for (const s of [this.process.stdout, this.process.stderr]) s.on("data", (d) => (this.log += d));
    for (let i = 0; i < 600; i++) {
      if (this.process.exitCode !== null) throw new Error(`the gateway ended:\n${this.log}`);
      try {
        if ((await fetch(`${this.url}/readyz`)).ok) return;
      } catch {
        // The gateway isn't ready yet.
      }
      await new Promise((r) => setTimeout(r, 50));
    }
    throw new Error(`the gateway is not ready:\n${this.log}`);
  }

  async kill(signal = "SIGKILL") {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = new Promise((r) => this.process.once("exit", r));
    this.process.kill(signal);
    await exited;
  }

  async close() {
    await this.kill("SIGTERM");
    rmSync(this.data, { recursive: true, force: true, maxRetries: 5 }); // a plugin can outlive the gateway for a moment
  }

  /** Calls the gateway's API. */
  async call(path, body, method = body === undefined ? "GET" : "POST") {
    const res = await fetch(`${this.url}${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
    return res.json();
  }

  /** Creates a conversation with messages. */
  async conversation(id, title, messages = []) {
    await this.call("/api/conversations", { id, title });
    for (const [role, text] of messages) await this.call(`/api/conversations/${id}/commands`, { type: "inject", message: { role, text } });
    return id;
  }

  transcript(id) {
    return this.call(`/api/conversations/${id}/transcript`);
  }
}

let sharedBrowser;

/** Returns the shared browser of a test file. args are additional ones for its first call. */
export async function browser(args = []) {
  return (sharedBrowser ??= await chromium.launch({ executablePath: browserPath, args: [...args, "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] }));
}

export async function closeBrowser() {
  await sharedBrowser?.close();
  sharedBrowser = undefined;
}

const contexts = new Set(); // contexts whose faults no test has read yet

/** Checks all pages of a context at each change. A fault fails the test, even if the test doesn't read it. */
export async function watchOver(context) {
  context.faults = [];
  contexts.add(context);
  await context.exposeBinding("tellFault", (_, fault) => void context.faults.push(fault));
  await context.addInitScript(watch);
}

afterEach(() => {
  const faults = [...contexts].flatMap((c) => c.faults.splice(0));
  if (faults.length > 0) throw new Error(`a page showed what it must not:\n${faults.slice(0, 20).join("\n")}`);
});

/**
 * Runs a step during which a change is allowed that is a fault otherwise: "shrink" (a text gets shorter) or "go" (a visible message
 * disappears). Retractions in the log are always allowed. The step must wait for its effects.
 */
export async function allowed(page, change, step) {
  await page.evaluate((w) => window.allowed.add(w), change);
  try {
    return await step();
  } finally {
    await page.evaluate((w) => window.allowed.delete(w), change);
  }
}

/** Opens a page in a context of its own, with the checks. */
export async function open(gateway, options = {}) {
  const { path = "/", reading = "off", signedOut = false, watched = true, prepare, ...context } = options;
  const c = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...context });
  if (watched) await watchOver(c);
  // Reading aloud is off, so that each text is in the page once. Its own tests turn it on.
  await c.addInitScript((settings) => {
    if (window.origin.startsWith("http") && localStorage.getItem("leat.reading") === null) localStorage.setItem("leat.reading", JSON.stringify(settings));
  }, reading);
  const page = await c.newPage();
  page.said = [];
  page.elsewhere = [];
  page.on("console", (m) => page.said.push(`${m.type()}: ${m.text()}${m.location().url.includes("/ui/frames/") ? " (in a frame)" : ""}`));
  page.on("pageerror", (e) => page.said.push(`error: ${e.stack}`));
  page.on("request", (r) => {
    if (!r.url().startsWith(gateway.url) && !/^(data|blob):/.test(r.url())) page.elsewhere.push(r.url());
  });
  await prepare?.(page);
  await page.goto(gateway.url + path);
  if (!signedOut) await page.locator('.connection[data-state="connected"]').waitFor();
  return page;
}

/** Fails if the checks of a page found a fault, or if the page wrote to the console or sent a request to another host. */
export async function wantClean(page, { console: allowed = /$^/ } = {}) {
  await page.evaluate(() => {}); // messages on their way arrive before this returns
  const faults = page.context().faults?.splice(0) ?? await page.evaluate(() => window.faults ?? []);
  const messages = page.said.filter((s) => !allowed.test(s) && !/^verbose/.test(s));
  const problems = [...faults, ...messages, ...page.elsewhere.map((u) => `asked ${u}`)];
  if (problems.length > 0) throw new Error(`the page is not clean:\n${problems.slice(0, 20).join("\n")}`);
  await page.context().close();
}

export const composer = (page) => page.getByRole("textbox", { name: "Message" });
/** The field in which a message is edited in its place. */
export const editor = (page) => page.getByRole("textbox", { name: "Edit your message" });
export const articles = (page) => page.locator("article.message");
export const answer = (page) => page.locator("article.message.assistant").last();

const endedTurns = (page) => page.evaluate(() => Number(document.querySelector(".log")?.dataset.ended ?? 0));

/** Types a message and sends it. */
export async function ask(page, text) {
  page.expected = Math.max(page.expected ?? 0, await endedTurns(page)) + 1;
  await composer(page).fill(text);
  await composer(page).press("Enter");
}

/** Presses a copy button, and waits for its confirmation. The page looks for it in each frame, because it is shown for two seconds only. */
export async function copy(page, button) {
  const element = await button.elementHandle();
  await Promise.all([page.waitForFunction((e) => e.getAttribute("aria-label") === "Copied", element, { timeout: 60_000 }), element.click()]);
}

/** Waits until each sent message is answered and nothing runs. */
export async function idle(page) {
  await page.locator('.connection[data-state="connected"]').waitFor();
  await page.waitForFunction((n) => {
    const log = document.querySelector(".log");
    return log?.dataset.open === "0" && Number(log.dataset.ended) >= n && !document.querySelector('.pending, [aria-busy="true"]');
  }, page.expected ?? 1, { timeout: 60_000 });
}

/** Selects the agent for the next message. */
export async function chooseAgent(page, name) {
  await page.getByRole("button", { name: /^Agent: / }).click();
  await page.getByRole("menu", { name: "Agent" }).getByRole("menuitemradio", { name: new RegExp(`^${name}\\b`) }).click();
}

/** Opens the menu of a conversation in the list, and chooses an item. */
export async function chooseOption(page, title, item) {
  const row = page.locator(".list li", { has: page.getByRole("link", { name: title }) });
  await row.hover();
  await row.getByRole("button", { name: /^Options for/ }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

/** Returns the id of the open conversation. */
export const current = (page) => decodeURIComponent(new URL(page.url()).hash.replace("#/c/", ""));
