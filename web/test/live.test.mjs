// Events of the gateway outside of conversations: the reasons for a restart, commands, installations, training, heartbeats, emotes.
// Each really happens at the gateway.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { ask, closeBrowser, Gateway, idle, lacking, open as openPage, wantClean } from "./harness.mjs";

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const examples = fileURLToPath(new URL("../../examples", import.meta.url));
const terminalToken = "a-long-token-of-the-terminal";
const shots = process.env.LEAT_SHOTS; // a folder for screenshots, to look at them

const shot = async (page, name) => {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
};
const section = (page, name) => page.getByRole("region", { name, exact: true });
const notice = (page) => section(page, "Restart needed");
const row = (page, name, text) => section(page, name).getByRole("listitem").filter({ hasText: text }).first();
/** Opens a page, and waits for the first status on its live socket: events from then on reach it. */
async function open(gateway, options) {
  let resolveStatus;
  const firstStatus = new Promise((resolve) => { resolveStatus = resolve; });
  const page = await openPage(gateway, {
    ...options,
    prepare: (p) => p.on("websocket", (ws) => ws.on("framereceived", ({ payload }) => {
      if (new URL(ws.url()).pathname === "/ws" && `${payload}`.includes('"type":"status"')) resolveStatus();
    })),
  });
  await firstStatus;
  return page;
}
const activityButton = (page) => page.getByRole("button", { name: /^Activity/ });
/** Collects what the page announces in its polite region. */
const listenTo = (page) => page.evaluate(() => {
  window.announced = [];
  new MutationObserver(() => {
    const text = document.getElementById("announcer").textContent;
    if (text) window.announced.push(text);
  }).observe(document.getElementById("announcer"), { childList: true, characterData: true, subtree: true });
});
const waitForAnnouncement = (page, text) => page.waitForFunction((t) => window.announced.includes(t), text);

if (lacking) {
  test("the activity", { skip: lacking }, () => {});
} else {
  let gateway;
  let folder;
  const configure = (lines) => writeFileSync(join(folder, "leat.yaml"), lines.join("\n") + "\n");
  const run = (command, clientId = "runtime-terminal-action") => gateway.call("/api/terminal/run", { command, clientId, terminalToken });
  const publish = async (...signals) => {
    const res = await fetch(`${gateway.url}/api/signals`, { method: "POST", body: signals.map((s) => JSON.stringify(s)).join("\n") });
    assert.equal(res.status, 200, await res.text());
  };
  /** Installs the Python example, with some of its manifest's values replaced. */
  const install = async (manifest = {}) => {
    const path = mkdtempSync(join(folder, "plugin-"));
    cpSync(join(examples, "plugins", "python"), path, { recursive: true });
    writeFileSync(join(path, "leat-plugin.json"), JSON.stringify({ ...JSON.parse(readFileSync(join(path, "leat-plugin.json"), "utf8")), ...manifest }));
    return fetch(`${gateway.url}/api/plugins/install`, { method: "POST", body: JSON.stringify({ path }) });
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "leat-web-live-"));
    cpSync(join(examples, "emotes"), join(folder, "emotes"), { recursive: true });
    const [nod] = JSON.parse(readFileSync(join(folder, "emotes", "emotes.json"), "utf8"));
    writeFileSync(join(folder, "emotes", "emotes.json"), JSON.stringify([nod, { ...nod, id: "dance", name: "Dance", loop: true }]));
    configure(["terminal: {max_duration: 3m}"]);
    gateway = await Gateway.start(["--config", join(folder, "leat.yaml")], {
      LEAT_TERMINAL_ENABLED: "true", LEAT_TERMINAL_TOKEN: terminalToken, LEAT_PLUGINS_ENABLED: "true", LEAT_ELIZA_EMOTES: join(folder, "emotes"),
    });
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  test("a command shows its output while it runs, its streams and its end", async () => {
    const page = await open(gateway);
    await listenTo(page);
    // By keyboard, from the palette.
    await page.keyboard.press("Control+K");
    await page.getByRole("combobox", { name: "Search and commands" }).fill("activity");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing has happened since this page was opened.").waitFor();
    await page.waitForFunction(() => document.activeElement.textContent === "Activity");
    await accessible(page, "without activity");
    await shot(page, "empty");

    const gate = join(folder, "go on");
    await run(`printf '\\033[32mgreen\\033[0m\\n10 %%\\r100 %%\\n'; echo careful >&2; while [ ! -e '${gate}' ]; do sleep 0.05; done; echo end`);
    const command = row(page, "Commands", "printf");
    const output = command.getByRole("group", { name: /^Output of/ });
    await output.getByText("careful").waitFor();
    await output.getByText("green").waitFor(); // the two streams arrive in any order
    assert.equal(await output.evaluate((e) => [...e.children].filter((c) => c.className !== "stderr").map((c) => c.textContent).join("")), "green\n100 %\n");
    assert.equal(await output.locator(".stderr").evaluate((e) => e.textContent), "Error output: careful\n");
    await command.getByText("running").waitFor();
    await accessible(page, "a running command");
    await shot(page, "running");
    writeFileSync(gate, "");
    await command.getByText("exit code 0").waitFor();
    await output.getByText("end").waitFor();
    await page.waitForFunction(() => window.announced.some((t) => t.startsWith("Command ended: printf") && t.endsWith("exit code 0.")));
    assert.equal(await page.evaluate(() => window.announced.filter((t) => t.includes("careful") && !t.startsWith("Command")).length), 0, "output is not announced");

    await run("echo first; exit 3");
    await row(page, "Commands", "exit 3").getByText("exit code 3").waitFor();
    await run("echo for another page", "other"); // its output is for the client that asked
    await run("true");
    await row(page, "Commands", /^true/).getByText("exit code 0").waitFor();
    assert.equal(await page.getByText("for another page").count(), 0);

    // Earlier commands are folded. Enter opens one.
    const earlier = row(page, "Commands", "exit 3").getByRole("button", { name: "echo first; exit 3" });
    assert.equal(await earlier.getAttribute("aria-expanded"), "false");
    await earlier.focus();
    await page.keyboard.press("Enter");
    await row(page, "Commands", "exit 3").getByRole("group", { name: /^Output of/ }).waitFor();
    await accessible(page, "commands");
    await shot(page, "commands");
    assert.equal(await page.locator(".rail > .wide .unread").count(), 0, "they were seen");
    await wantClean(page);
  });

  test("a command that runs too long is stopped", async () => {
    const hasty = await Gateway.start([], { LEAT_TERMINAL_ENABLED: "true", LEAT_TERMINAL_TOKEN: terminalToken, LEAT_TERMINAL_MAX_DURATION: "1s" });
    try {
      const page = await open(hasty, { path: "/#/activity" });
      await hasty.call("/api/terminal/run", { command: "sleep 60", clientId: "runtime-shell-action", terminalToken });
      await row(page, "Commands", "sleep 60").getByText("stopped after its limit of 1 s").waitFor();
      await wantClean(page);
    } finally {
      await hasty.close();
    }
  });

  test("long output stays bounded, and the page responsive", async () => {
    const page = await open(gateway, { path: "/#/activity" });
    await page.getByText("Nothing has happened").waitFor();
    await run("seq 1 200000; echo over");
    await row(page, "Commands", "seq").getByText("exit code 0").waitFor();
    const output = page.getByRole("group", { name: /^Output of seq/ });
    await output.getByText("over").waitFor();
    const text = await output.evaluate((e) => e.textContent);
    assert.ok(text.length <= 65_536 && text.endsWith("200000\nover\n"), `${text.length} characters`);
    assert.match(text, /^1\d{5}\n/, "from a whole line on");
    await page.getByText("The beginning was dropped").waitFor();
    await wantClean(page);
  });

  test("an installation shows its phases and its end; a failure is marked until it was seen", async () => {
    const page = await open(gateway);
    await page.waitForFunction(() => document.querySelector(".composer, #composer"));
    await listenTo(page);
    assert.equal((await install({ name: "broken", command: ["./missing"] })).status, 422);
    await page.getByRole("button", { name: "Activity, something failed" }).waitFor();
    await page.waitForFunction(() => window.announced.some((t) => /^Plugin .*was not installed: /.test(t)));
    await accessible(page, "a mark for a failure");
    await shot(page, "failed-mark");
    await activityButton(page).click();
    const failed = row(page, "Plugins", "missing");
    await failed.getByText("failed", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Activity", exact: true }).waitFor();

    assert.equal((await install()).status, 200);
    await row(page, "Plugins", "echo").getByText("installed", { exact: true }).waitFor();
    await waitForAnnouncement(page, "Plugin echo is installed.");
    await accessible(page, "installations");
    await wantClean(page);
  });

  test("training and heartbeats are listed, also those from before the page was opened", async () => {
    await gateway.conversation("garden", "Garden");
    await publish({ type: "heartbeat_event", payload: { status: "waking", preview: "Before you came" } }, { type: "training_event", runId: "old run", payload: { phase: "error", message: "out of memory" } });
    const page = await open(gateway, { path: "/#/activity" });
    await row(page, "Agents", "Before you came").waitFor();
    await row(page, "Training", "out of memory").waitFor();
    await publish(
      { type: "heartbeat_event", payload: { status: "thinking", channel: "discord", preview: "Composing reply…", durationMs: 1500, hasMedia: true, indicatorType: "typing" } },
      { type: "heartbeat_event", payload: { status: "asleep", silent: true, preview: "must not be seen" } },
      { type: "heartbeat_event", roomId: "garden", payload: { status: "watering" } },
      { type: "heartbeat_event", payload: 7 }, { type: "training_event", payload: null },
      { type: "training_event", runId: "tune-1", payload: { phase: "loading", progress: 0, message: "Loading" } },
      { type: "training_event", runId: "tune-1", payload: { phase: "training", progress: 0.45, message: "Training epoch 5/10" } },
    );
    const beat = row(page, "Agents", "Composing reply");
    await beat.getByText("thinking").waitFor();
    assert.match(await beat.innerText(), /discord[\s\S]*media[\s\S]*for 1\.5 s/);
    const training = row(page, "Training", "Training epoch 5/10");
    assert.equal(await training.getByRole("progressbar", { name: "Progress of tune-1" }).getAttribute("value"), "45");
    await training.getByRole("button", { name: "tune-1" }).click();
    await training.getByText("Loading").waitFor();
    await publish({ type: "training_event", runId: "tune-1", payload: { phase: "complete", message: "Saved" } });
    await row(page, "Training", "Saved").getByText("100 %").waitFor();
    assert.equal(await page.getByText("must not be seen").count(), 0);
    await accessible(page, "training and heartbeats");
    await shot(page, "signals");
    await row(page, "Agents", "watering").getByRole("link", { name: "conversation" }).click();
    await page.waitForURL(/#\/c\/garden/);
    await wantClean(page);
  });

  test("an emote is named while it lasts", async () => {
    const page = await open(gateway);
    const label = (name) => page.getByRole("complementary", { name: "Emote" }).filter({ hasText: name });
    await page.locator(".rail").waitFor();
    await listenTo(page);
    await gateway.call("/api/emote", { emoteId: "dance" });
    await label("Dance").waitFor();
    await waitForAnnouncement(page, "test: Dance");
    await accessible(page, "an emote");
    await shot(page, "emote");
    const nod = label("Nod").waitFor(); // before the emote begins, because it lasts only two seconds
    await gateway.call("/api/emote", { emoteId: "nod" });
    await nod;
    await label("Nod").waitFor({ state: "detached" });
    await gateway.call("/api/emote", { emoteId: "dance" });
    await label("Dance").getByRole("button", { name: "Hide emote" }).click();
    await label("Dance").waitFor({ state: "detached" });
    await wantClean(page);
  });

  test("a restart is explained, can be dismissed, and restarts the gateway after a confirmation", async () => {
    const page = await open(gateway);
    await page.locator(".rail").waitFor();
    await listenTo(page);
    await ask(page, "echo before");
    await idle(page);
    configure(["terminal: {max_duration: 4m}"]);
    await gateway.call("/api/config/reload", undefined, "POST");
    await notice(page).getByText("terminal.max_duration changed").waitFor();
    await waitForAnnouncement(page, "Restart needed: terminal.max_duration changed.");
    await accessible(page, "a restart is needed");
    await shot(page, "restart");
    await notice(page).getByRole("button", { name: "Dismiss" }).click();
    await notice(page).waitFor({ state: "detached" });

    // Other reasons are another notice.
    configure(["terminal: {max_duration: 4m, concurrent: 3}"]);
    await gateway.call("/api/config/reload", undefined, "POST");
    await notice(page).getByText("terminal.concurrent changed").waitFor();
    await notice(page).getByRole("button", { name: "Restart…" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.textContent === "Cancel"); // Enter alone restarts nothing
    await accessible(page, "the confirmation of a restart");
    await shot(page, "restart-confirm");
    await page.keyboard.press("Escape");
    await notice(page).getByRole("button", { name: "Restart…" }).click();
    const startTime = (await gateway.call("/api/status")).startedAt;
    await notice(page).getByRole("button", { name: "Restart", exact: true }).click();
    await notice(page).waitFor({ state: "detached", timeout: 60_000 });
    await page.locator('.connection[data-state="connected"]').waitFor();
    const status = await gateway.call("/api/status");
    assert.ok(status.startedAt > startTime && !status.pendingRestart, JSON.stringify(status));
    await ask(page, "echo after");
    await idle(page);
    // The socket is back too: the next command is seen.
    await activityButton(page).click();
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    await run("echo here again");
    await row(page, "Commands", "here again").getByText("exit code 0").waitFor();
    await wantClean(page, { console: /WebSocket|ERR_CONNECTION_REFUSED|503|Failed to load resource/ });
  });

  test("a refused restart says why", async () => {
    const page = await open(gateway, { path: "/#/activity" });
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    configure(["terminal: {max_duration: 5m, concurrent: 3}"]);
    await gateway.call("/api/config/reload", undefined, "POST");
    configure(["terminal: {max_duration: never}"]);
    await notice(page).getByRole("button", { name: "Restart…" }).click();
    await notice(page).getByRole("button", { name: "Restart", exact: true }).click();
    await notice(page).getByRole("alert").getByText("The gateway was not restarted").waitFor();
    await notice(page).getByRole("button", { name: "Restart…" }).waitFor();
    await accessible(page, "a refused restart");
    await shot(page, "restart-refused");
    configure(["terminal: {max_duration: 4m, concurrent: 3}"]);
    await gateway.call("/api/config/reload", undefined, "POST");
    await notice(page).waitFor({ state: "detached" });
    await wantClean(page, { console: /422/ });
  });

  test("a gateway that ends leaves no command running on the page", async () => {
    const page = await open(gateway, { path: "/#/activity" });
    await page.getByText("Nothing has happened").or(page.getByRole("region", { name: "Agents" })).first().waitFor();
    await run("sleep 30");
    await row(page, "Commands", "sleep 30").getByText("running").waitFor();
    await gateway.kill();
    await gateway.run();
    await row(page, "Commands", "sleep 30").getByText("connection lost, end unknown").waitFor({ timeout: 60_000 });
    await run("echo alive");
    await row(page, "Commands", "echo alive").getByText("exit code 0").waitFor();
    await wantClean(page, { console: /WebSocket|ERR_CONNECTION_REFUSED|503|Failed to load resource/ });
  });

  for (const theme of ["light", "dark"]) {
    test(`on a phone: ${theme}`, async () => {
      const page = await open(gateway, { ...phone, path: "/#/activity", colorScheme: theme });
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      await run("printf 'one long line of output that must wrap somewhere on a phone\\n'; echo careful >&2; exit 1");
      await row(page, "Commands", "printf").getByText("exit code 1").waitFor();
      configure(["terminal: {max_duration: 9m, concurrent: 4}"]);
      await gateway.call("/api/config/reload", undefined, "POST");
      await notice(page).getByText("terminal.max_duration changed").waitFor();
      await accessible(page, "a phone");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the page");
      await shot(page, `phone-${theme}`);
      const wide = await open(gateway, { path: "/#/activity", colorScheme: theme });
      await run("make release; exit 1");
      await row(wide, "Commands", "make").getByText("exit code").waitFor();
      await install({ name: "weather" });
      await row(wide, "Plugins", "weather").getByText("installed", { exact: true }).waitFor();
      await notice(wide).waitFor();
      await shot(wide, `wide-${theme}`);
      configure(["terminal: {max_duration: 4m, concurrent: 3}"]);
      await gateway.call("/api/config/reload", undefined, "POST");
      await notice(page).waitFor({ state: "detached" });
      await wantClean(wide);
      await wantClean(page);
    });
  }
}
