// Drives Chromium by its own protocol only, because Playwright keeps every page visible.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class RawBrowser {
  constructor(path, args) {
    this.profile = mkdtempSync(join(tmpdir(), "leat-web-raw-"));
    this.process = spawn(path, [...args, "--headless", "--remote-debugging-pipe", `--user-data-dir=${this.profile}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.answers = new Map();
    this.events = []; // the newest 1000
    this.ids = 0;
    let buffer = "";
    this.process.stdio[4].on("data", (d) => {
      const frames = (buffer + d).split("\0");
      buffer = frames.pop();
      for (const m of frames.map((t) => JSON.parse(t))) {
        const a = this.answers.get(m.id);
        if (!a) {
          this.events.push(m);
          if (this.events.length > 1000) this.events.shift();
          continue;
        }
        this.answers.delete(m.id);
        if (m.error) a.reject(new Error(m.error.message));
        else a.resolve(m.result);
      }
    });
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.ids;
    return new Promise((resolve, reject) => {
      this.answers.set(id, { resolve, reject });
      this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** Opens a tab with a script that runs first. */
  async tab(url, script = "") {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    await this.send("Page.enable", {}, sessionId);
    if (script) await this.send("Page.addScriptToEvaluateOnNewDocument", { source: script }, sessionId);
    await this.send("Page.navigate", { url }, sessionId);
    return new Tab(this, targetId, sessionId);
  }

  /** Attaches to the service worker of a script. */
  async worker(url) {
    for (const limit = Date.now() + 60_000; ; await new Promise((r) => setTimeout(r, 50))) {
      const { targetInfos } = await this.send("Target.getTargets");
      const target = targetInfos.find((t) => t.type === "service_worker" && t.url === url);
      if (target) {
        const { sessionId } = await this.send("Target.attachToTarget", { targetId: target.targetId, flatten: true });
        return new Tab(this, target.targetId, sessionId);
      }
      if (Date.now() > limit) throw new Error(`there is no worker ${url}`);
    }
  }

  async close() {
    const exited = new Promise((r) => this.process.once("exit", r));
    this.send("Browser.close").catch(() => {});
    await exited;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Tab {
  constructor(browser, target, session) {
    Object.assign(this, { browser, target, session });
  }

  activate() {
    return this.browser.send("Target.activateTarget", { targetId: this.target });
  }

  /** Reloads the page, and waits until the old document is gone. */
  async reload() {
    await this.eval("globalThis.isOld = true");
    await this.browser.send("Page.reload", {}, this.session);
    await this.waitFor("!globalThis.isOld");
  }

  async eval(expression) {
    const { result, exceptionDetails: wrong } = await this.browser.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true }, this.session);
    if (wrong) throw new Error(`${expression}: ${wrong.exception?.description ?? wrong.text}`);
    return result.value;
  }

  /** Waits until an expression is true. */
  async waitFor(expression, limit = 60_000) {
    for (const end = Date.now() + limit; ; await new Promise((r) => setTimeout(r, 50))) {
      // During a reload there is nothing to ask.
      const value = await this.eval(expression).catch((err) => {
        if (!/navigated or closed|context was destroyed|Cannot find context/.test(err.message)) throw err;
      });
      if (value) return value;
      if (Date.now() > end) throw new Error(`${expression} does not come true; the page: ${(await this.eval("globalThis.document?.body.innerText ?? 'a worker'")).slice(0, 2000)}`);
    }
  }
}
