// The inspector of a turn, and the overview.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { answer, ask, closeBrowser, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const timed = fileURLToPath(new URL("timed.mjs", import.meta.url));
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

/** Returns the parts of a turn as in its transcript. */
const pieces = (transcript) => transcript.messages.filter((m) => m.role !== "user").flatMap((m) => m.parts.map(({ kind, name, state, text, input, output, stderr }) => ({ kind, name, state, text, input, output, stderr })));

const figure = async (page, name) => (await page.locator(".inspector .figures div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd").innerText());

/** Opens the tab with the events. */
const showEvents = (page) => page.getByRole("tab", { name: "Events" }).click();

if (lacking) {
  test("the inspector", { skip: lacking }, () => {});
} else {
  let gateway;
  let folder;
  let n = 0;
  const mark = (name) => writeFileSync(join(folder, name), "");
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "leat-inside-"));
    mark("alive");
    gateway = await Gateway.start(["--agent", `timed=plugin:node ${timed}`, "--agent", `mortal=plugin:node ${timed} ${join(folder, "alive")}`], { LEAT_RECORD_ENABLED: "false" });
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
    if (folder) rmSync(folder, { recursive: true });
  });

  /** Creates a conversation with the agent and opens it. */
  async function talk(options = {}) {
    const id = `c${++n}`;
    await gateway.call("/api/conversations", { id, agent: "timed" });
    const page = await open(gateway, { path: `/#/c/${id}`, ...options });
    return { id, page };
  }
  const turnOf = async (id) => (await gateway.transcript(id)).transcript.turns.at(-1).id;
  const traceOf = async (id) => (await gateway.call(`/api/turns/${await turnOf(id)}/trace`)).commits;

  for (const theme of ["light", "dark"]) {
    test(`the inspector shows a growing answer, also after a reload: ${theme}`, async () => {
      for (const name of ["tool", "end"]) rmSync(join(folder, name), { force: true });
      const { id, page } = await talk({ colorScheme: theme });
      await ask(page, `steps ${folder}`);
      await page.getByText("One two three.").first().waitFor();
      await page.getByRole("button", { name: "Inspect the current answer" }).click();
      await showEvents(page);
      const slider = page.getByRole("slider");
      await slider.waitFor();
      await page.locator(".inspector > header").getByText("running").waitFor();
      const commitsSoFar = await waitFor("the words are there", async () => {
        const commits = await traceOf(id);
        return commits.some((c) => c.type === "part.end") && commits;
      });
      await waitFor("its events", () => slider.getAttribute("max"), String(commitsSoFar.length));
      await page.getByText("Tokens a second", { exact: true }).first().waitFor();
      await accessible(page, "an answer that grows");

      mark("tool");
      await waitFor("it continues by itself", async () => Number(await slider.getAttribute("max")) > commitsSoFar.length);
      mark("end");
      await idle(page);
      await page.locator(".inspector > header").getByText("running").waitFor({ state: "detached" });
      const commits = await traceOf(id);
      await waitFor("all of it", () => slider.getAttribute("max"), String(commits.length));

      // The figures are those of the trace.
      const begin = commits.find((c) => c.type === "turn.start").arrival;
      const firstDelay = commits.find((c) => c.end > 0).arrival - begin;
      assert.match(await figure(page, "Events"), new RegExp(`^${commits.length}, `));
      assert.match(await figure(page, "Coalesced"), /\d+/);
      assert.match(await figure(page, "Display delay"), /ms|s/);
      assert.match(await page.locator(".lanes canvas").getAttribute("aria-label"), new RegExp(`^${commits.length} events arrived in .* tools ran: bash`));

      // The sum of the speed chart is the number of tokens, and the chart matches its label.
      await page.locator(".inspector .speed summary").click();
      const rows = await page.locator(".inspector .speed tbody tr").evaluateAll((elements) => elements.map((r) => [...r.cells].map((c) => parseFloat(c.textContent))));
      const step = rows.length > 1 ? rows[1][0] : 250;
      const tokens = rows.reduce((sum, [, v]) => sum + (v * step) / 1000, 0);
      assert.ok(Math.abs(tokens - 40) <= (0.05 * rows.length * step) / 1000 + 1e-9, `${tokens} tokens in ${JSON.stringify(rows)}`);
      const path = await page.locator(".inspector .speed svg path:not([class])").getAttribute("d");
      assert.equal(path.match(/[ML]/g).length, rows.length);
      const top = Math.max(...rows.map(([, v]) => v));
      const ys = [...path.matchAll(/[ML]\S+ (\S+?)(?=[ML]|$)/g)].map((m) => Number(m[1]));
      rows.forEach(([, v], i) => assert.ok(Math.abs(ys[i] - (29 - (v / top) * 26)) < 0.5, `point ${i} is at ${ys[i]} for ${v} of ${top}`));
      await accessible(page, "an answer that has ended");
      await page.getByRole("tab", { name: "Trace" }).click();
      await waitFor("the summary has the same", () => page.locator(".trace .summary dd").allInnerTexts().then((texts) => [texts[1], texts[5]]), [firstDelay < 1000 ? `${firstDelay} ms` : `${(firstDelay / 1000).toFixed(2)} s`, "10 in, 40 out"]);
      await showEvents(page);

      // Step through the events by keyboard.
      const replay = page.getByRole("region", { name: "The answer at that moment" });
      await slider.focus();
      await page.keyboard.press("Home");
      assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`^0 ms of .*, event 0 of ${commits.length}$`));
      assert.equal(await replay.locator(".message").count(), 0);
      const at = commits.findIndex((c) => c.end === 4);
      for (let i = 0; i <= at; i++) await page.keyboard.press("ArrowRight");
      assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`, event ${at + 1} of`));
      assert.equal((await replay.locator(".message").innerText()).trim(), "One");
      assert.equal(await page.locator('.events tr[aria-current="true"] td').first().innerText(), String(commits[at].seq));
      assert.equal(await page.locator('.events tr[aria-current="true"] .said').innerText(), "One ");
      await page.keyboard.press("ArrowRight");
      assert.equal((await replay.locator(".message").innerText()).trim(), "One two");
      await page.keyboard.press("ArrowLeft");
      assert.equal((await replay.locator(".message").innerText()).trim(), "One");
      assert.match(await answer(page).innerText(), /There are 2 files\./, "the answer itself stays");
      await page.getByRole("region", { name: "Events of the turn" }).focus();
      await page.keyboard.press("ArrowDown");
      assert.equal(await slider.inputValue(), String(at + 2));
      await page.getByRole("combobox", { name: "Speed" }).selectOption({ label: "max" });
      await page.getByRole("button", { name: "Play", exact: true }).click();
      await waitFor("it plays to its end", () => slider.inputValue(), String(commits.length));
      await page.getByRole("combobox", { name: "Kind" }).selectOption("part.append");
      const appends = commits.filter((c) => c.type === "part.append").length;
      assert.equal(await page.locator(".events table").getAttribute("aria-rowcount"), String(appends + 1));
      assert.equal(await page.locator(".events tbody tr").count(), appends);

      // The inspector has a URL and survives a reload.
      const displayed = await figure(page, "Display delay");
      await page.evaluate(([i, t]) => { location.hash = `#/c/${i}?turn=${t}`; }, [id, await turnOf(id)]);
      await page.reload();
      await showEvents(page);
      await page.getByRole("slider").waitFor();
      await waitFor("what was shown is known still", () => figure(page, "Display delay"), displayed);
      await waitFor("all of it again", () => page.getByRole("slider").getAttribute("max"), String(commits.length));
      await page.getByRole("button", { name: "Close", exact: true }).last().click();
      await waitFor("the URL is the conversation's", () => page.evaluate(() => location.hash), `#/c/${id}`);
      await wantClean(page);
    });
  }

  test("the inspector shows the error of the tab's clock", async () => {
    const { page } = await talk();
    await page.context().addInitScript(() => {
      const realNow = Date.now;
      Date.now = () => realNow() - 90_000;
    });
    await page.reload();
    await page.locator('.connection[data-state="connected"]').waitFor();
    await ask(page, "many 3");
    await idle(page);
    await answer(page).getByRole("button", { name: "Inspect" }).click();
    await showEvents(page);
    await page.getByText(/This tab’s clock differs by 1 min [23]\d s/).waitFor(); // the error is half of a request's duration
    // Display times are converted to the log's clock.
    const lag = await figure(page, "Display delay");
    assert.match(lag, /^\d+ ms|^\d+\.\d+ s/);
    await wantClean(page);
  });

  test("the inspector shows an answer of ten thousand events", async () => {
    const { id, page } = await talk();
    await ask(page, "many 10000");
    await idle(page);
    const commits = await traceOf(id);
    assert.ok(commits.length > 10_000);
    await page.evaluate(() => { window.longTasks.length = 0; });
    const openedAt = Date.now();
    await answer(page).getByRole("button", { name: "Inspect" }).click();
    await showEvents(page);
    await waitFor("all of it", () => page.getByRole("slider").getAttribute("max"), String(commits.length));
    console.log(`# ${commits.length} events: looked inside after ${Date.now() - openedAt} ms, longest task ${await page.evaluate(() => Math.max(0, ...window.longTasks))} ms`);
    assert.ok(await page.locator(".events tbody tr").count() < 60, "only what is near is drawn");
    const table = page.getByRole("region", { name: "Events of the turn" });
    await table.evaluate((t) => { t.scrollTop = 5000 * 24; });
    await page.getByRole("cell", { name: String(commits[5000].seq), exact: true }).first().waitFor();
    assert.ok(await page.locator(".events tbody tr").count() < 60);
    await page.getByRole("slider").focus();
    await page.keyboard.press("Home");
    for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator('.events tr[aria-current="true"] td').first().innerText(), String(commits[5].seq), "what is looked at is in sight");
    await wantClean(page);
  });

  test("a turn is saved as a recording and can be replayed", async () => {
    mark("tool");
    mark("end");
    const { id, page } = await talk();
    await ask(page, `steps ${folder}`);
    await idle(page);
    await answer(page).getByRole("button", { name: "Inspect" }).click();
    await showEvents(page);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as a recording" }).click()]);
    const file = join(folder, "take.jsonl");
    await download.saveAs(file);
    assert.equal(JSON.parse(readFileSync(file, "utf8").split("\n")[0]).frame.dialect, "leat");
    // This gateway records no bytes of agents, and the page explains it.
    await page.getByRole("button", { name: "Save the agent’s frames" }).click();
    await page.getByRole("alert").filter({ hasText: "Couldn’t save the file" }).waitFor();
    await page.getByRole("button", { name: "All frames" }).click();
    await page.getByRole("alert").filter({ hasText: "Couldn’t load" }).waitFor();

    const other = await Gateway.start(["--agent", `take=replay:${file}?speed=0`]);
    try {
      await other.call("/api/conversations", { id: "again", agent: "take" });
      await other.call("/api/conversations/again/commands", { type: "send", message: { text: "go" } });
      await waitFor("it ends", async () => (await other.transcript("again")).transcript.turns[0]?.state, "ended");
      const { transcript } = await other.transcript("again");
      assert.deepEqual(pieces(transcript), pieces((await gateway.transcript(id)).transcript));
      assert.deepEqual(transcript.turns[0].usage, { model: "timed", input: 10, output: 40 });
      const second = await open(other, { path: "/#/c/again" });
      await second.getByText("There are 2 files.").waitFor();
      await wantClean(second);
    } finally {
      await other.close();
    }
    await wantClean(page, { console: /status of 404/ });
  });

  test("the overview names damaged conversations", async () => {
    const page = await open(gateway);
    await page.route("**/api/overview", async (route) => {
      const response = await route.fetch();
      const damaged = [{ conversation: "c-broken", seq: 12, error: "events 12 to 20: message authentication failed" }, { conversation: "c-other", error: "summary" }];
      await route.fulfill({ response, json: { ...(await response.json()), damaged } });
    });
    await page.getByRole("button", { name: "Overview" }).click();
    const row = page.getByRole("region", { name: "Damaged conversations" }).getByRole("row", { name: /^c-broken/ });
    await row.getByText("events 12 to 20: message authentication failed").waitFor();
    await row.getByText("12", { exact: true }).waitFor();
    await page.getByText("2 conversations are damaged on disk and can’t be read. All others work.").waitFor();
    await accessible(page, "damaged conversations");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await row.waitFor({ state: "detached" });
    await page.close();
  });

  test("the overview admits people who want to talk to a channel", async () => {
    const page = await open(gateway);
    await page.route("**/api/overview", async (route) => {
      const response = await route.fetch();
      const overview = await response.json();
      await route.fulfill({ response, json: { ...overview, channels: [{ name: "tg", kind: "telegram", state: "up", since: overview.now }] } });
    });
    const pairings = [{ code: "YQDX5FGU", channel: "tg", sender: "7", name: "Ann" }, { code: "ABCDEFGH", channel: "tg", sender: "8", name: "" }];
    await page.route("**/api/channels", (route) => route.fulfill({ json: { channels: [], pairings } }));
    await page.route("**/api/channels/allow", (route) => {
      assert.deepEqual([route.request().method(), route.request().postDataJSON()], ["POST", { code: "YQDX5FGU" }]);
      pairings.shift();
      return route.fulfill({ json: { channel: "tg", sender: "7", name: "Ann" } });
    });
    await page.getByRole("button", { name: "Overview" }).click();
    const section = page.getByRole("region", { name: "Want to talk", exact: true });
    await section.getByRole("row", { name: /ABCDEFGH/ }).getByText("8", { exact: true }).waitFor();
    await accessible(page, "people who want to talk");
    await section.getByRole("button", { name: "Admit Ann" }).click();
    await section.getByText("Ann may talk to tg now.").waitFor();
    await section.getByRole("row", { name: /YQDX5FGU/ }).waitFor({ state: "detached" });
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.close();
  });

  test("the overview lists the models and sessions of an agent's upstream", async () => {
    const page = await open(gateway);
    await page.route("**/api/agents/timed/discover", (route) => {
      assert.equal(route.request().method(), "POST");
      return route.fulfill({ json: { offers: [{ what: "agent", id: "agent-1", name: "Ann’s", updated: "2026-11-22T16:00:00Z", spec: "letta:http://127.0.0.1:8283?agent=agent-1" }] } });
    });
    await page.getByRole("button", { name: "Overview" }).click();
    const section = page.getByRole("region", { name: "Discover", exact: true });
    await section.getByRole("button", { name: "timed" }).click();
    await section.getByRole("row", { name: /agent-1/ }).getByText("Ann’s").waitFor();
    await accessible(page, "what an upstream offers");
    await section.getByRole("button", { name: "mortal" }).click(); // its kind can't be asked, as the real gateway says
    await section.getByText(/don't support discovery|can't list/).waitFor();
    await page.close();
  });

  for (const theme of ["light", "dark"]) {
    test(`the overview changes while turns run and agents come and go: ${theme}`, async () => {
      for (const name of ["tool", "end"]) rmSync(join(folder, name), { force: true });
      mark("alive");
      const page = await open(gateway, { colorScheme: theme });
      await page.getByRole("button", { name: "Overview" }).click();
      const tile = (name) => page.getByRole("region", { name, exact: true }).locator(".value").innerText();
      const row = (name) => page.getByRole("region", { name: "Agents and channels" }).getByRole("row", { name: new RegExp(`^${name}`) });
      await waitFor("all are up", () => tile("Agents"), "3 up");
      await row("mortal").getByText("up", { exact: true }).waitFor();
      assert.equal(await tile("Channels"), "none");
      assert.ok(await page.locator(".tile").count() <= 8);

      // The agent goes down, shows the reason, and recovers.
      rmSync(join(folder, "alive"));
      await waitFor("one is down", () => tile("Agents"), "2 up, 1 down");
      await row("mortal").getByText("down", { exact: true }).waitFor();
      await row("mortal").getByText(/exit status 3/).waitFor();
      assert.equal(await page.getByRole("region", { name: "Agents", exact: true }).getAttribute("data-much"), "true");
      await accessible(page, "an agent that is down");
      mark("alive");
      await waitFor("it is back", () => tile("Agents"), "3 up");

      // A running turn is listed with a link, and disappears at its end.
      const id = `c${++n}`;
      await gateway.call("/api/conversations", { id, title: `Run ${theme}`, agent: "timed" });
      await gateway.call(`/api/conversations/${id}/commands`, { type: "send", message: { text: `steps ${folder}` } });
      await waitFor("it runs", () => tile("Live turns"), "1");
      const link = page.getByRole("region", { name: "Open turns" }).getByRole("link", { name: `Run ${theme}` });
      await link.waitFor();
      await page.getByRole("button", { name: "View as table" }).click();
      await page.getByRole("group", { name: "Values of the last minute" }).getByRole("row").nth(3).waitFor();
      await accessible(page, "the values as a table");
      await link.click();
      await page.getByRole("heading", { name: "Answer details" }).waitFor();
      await page.getByText("One two three.").first().waitFor();
      mark("tool");
      mark("end");
      await page.locator(".inspector > header").getByText("running").waitFor({ state: "detached" });

      // A failed turn is listed with a link.
      const failing = `c${++n}`;
      await gateway.call("/api/conversations", { id: failing, agent: "test" });
      await gateway.call(`/api/conversations/${failing}/commands`, { type: "send", message: { text: "fail" } });
      await page.getByRole("button", { name: "Overview" }).click();
      await waitFor("nothing runs", () => tile("Live turns"), "0");
      await row("test").locator(`a[href^="#/c/${failing}?turn="]`).filter({ hasText: "The model is overloaded." }).waitFor();

      // The overview reads at most once a second, and never while the page is hidden.
      const reads = () => page.evaluate(() => performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/metrics")).map((e) => e.startTime));
      await page.evaluate(() => performance.clearResourceTimings());
      await waitFor("it is read", async () => (await reads()).length >= 3);
      const times = await reads();
      times.forEach((t, i) => assert.ok(i === 0 || t - times[i - 1] >= 950, `read after ${t - times[i - 1]} ms`));
      const hide = (isHidden) => page.evaluate((h) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => h });
        document.dispatchEvent(new Event("visibilitychange"));
        return performance.now();
      }, isHidden);
      const hiddenAt = await hide(true);
      const laterReads = async () => (await reads()).filter((at) => at >= hiddenAt); // a request from before may still be running
      await page.evaluate(() => new Promise((r) => setTimeout(r, 2500))); // the absence of requests takes time to observe
      assert.deepEqual(await laterReads(), []);
      await hide(false);
      await waitFor("it is read again", async () => (await laterReads()).length > 0);
      await wantClean(page);
    });
  }

  // A separate gateway without other readers, so that each number is known.
  test("the overview shows channels, readers and agents as they come and go", async () => {
    const plugin = join(folder, "pigeon-plugin");
    const [channel, agent] = [join(folder, "channel-alive"), join(folder, "agent-alive")];
    mkdirSync(plugin);
    copyFileSync(fileURLToPath(new URL("channel.mjs", import.meta.url)), join(plugin, "channel.mjs"));
    writeFileSync(join(plugin, "leat-plugin.json"), JSON.stringify({ protocol: 1, name: "pigeon", version: "1.0.0", kind: "channel", command: ["node", "channel.mjs", channel] }));
    const pluginGateway = await Gateway.start(["--agent", `mortal=plugin:node ${timed} ${agent}`], { LEAT_PLUGINS_ENABLED: "true" });
    try {
      const page = await open(pluginGateway);
      await page.getByRole("button", { name: "Overview" }).click();
      const region = (name) => page.getByRole("region", { name, exact: true });
      const tile = (name) => region(name).locator(".value").innerText();
      const row = page.getByRole("region", { name: "Agents and channels" }).getByRole("row", { name: /^pigeon/ });
      await waitFor("one agent can't run", () => tile("Agents"), "1 up, 1 down");
      writeFileSync(agent, "");
      await waitFor("both run", () => tile("Agents"), "2 up");
      assert.equal(await tile("Channels"), "none");

      // A channel is installed, goes down, shows the reason, recovers, and is removed.
      writeFileSync(channel, "");
      await pluginGateway.call("/api/plugins/install", { path: plugin });
      await waitFor("the channel is up", () => tile("Channels"), "1 up");
      await row.getByText("up", { exact: true }).waitFor();
      assert.equal(await region("Channels").getAttribute("data-much"), null);
      rmSync(channel);
      await waitFor("the channel is down", () => tile("Channels"), "0 up, 1 down");
      await row.getByText("down", { exact: true }).waitFor();
      await row.getByText(/exit status 4/).waitFor();
      assert.equal(await region("Channels").getAttribute("data-much"), "true");
      assert.equal(await tile("Agents"), "2 up");
      await accessible(page, "a channel that is down");
      writeFileSync(channel, "");
      await waitFor("the channel is back", () => tile("Channels"), "1 up");
      await pluginGateway.call("/api/plugins/pigeon", undefined, "DELETE");
      await waitFor("the channel is gone", () => tile("Channels"), "none");
      await row.waitFor({ state: "detached" });

      // Readers connect and disconnect.
      await waitFor("no readers", () => tile("Viewers"), "0");
      await pluginGateway.conversation("read", "Read");
      const readers = [new AbortController(), new AbortController(), new AbortController()];
      const streams = await Promise.all(readers.map(({ signal }) => fetch(`${pluginGateway.url}/api/conversations/read/events`, { signal })));
      await waitFor("three read", () => tile("Viewers"), "3");
      readers.pop().abort();
      await waitFor("two read still", () => tile("Viewers"), "2");
      for (const r of readers) r.abort();
      await waitFor("no readers are left", () => tile("Viewers"), "0");
      assert.deepEqual(streams.map((r) => r.status), [200, 200, 200]); // this reference also prevents their garbage collection
      await wantClean(page);
    } finally {
      await pluginGateway.close();
    }
  });
}
