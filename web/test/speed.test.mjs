// The dashboard's speed and memory. Its content, its number of DOM nodes and its heap are always checked, and times only with
// LEAT_FULL=1: the processor time of each task of the page's main thread, as the browser's trace reports it, relative to a fixed
// piece of work in the same page, so that a slow machine gets more time. With LEAT_QUIET=1, for a machine that runs nothing else,
// times of the clock are checked too.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { answer, ask, browser, closeBrowser, composer, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { longAnswer, sections } from "./flood.mjs";

const longTask = 100; // ms
const slowKey = 50;
const quiet = !!process.env.LEAT_QUIET;
const full = quiet || !!process.env.LEAT_FULL;
const rounds = full ? 60 : 28; // the log is full after 20
const messageCount = full ? 10_000 : 2_000;

// The duration of the fixed piece of work on the machine on which the bounds were set, in ms.
const nominal = 60;

/** The tasks of a page's main thread, and its performance marks. */
class Trace {
  events = [];

  static async of(page) {
    const t = new Trace();
    t.page = page;
    t.session = await (await browser()).newBrowserCDPSession();
    t.session.on("Tracing.dataCollected", ({ value }) => {
      for (const e of value) if (e.name === "RunTask" || e.name === "ThreadControllerImpl::RunTask" || e.cat?.includes("user_timing") || e.name === "thread_name" || e.name === "EventDispatch") t.events.push(e);
    });
    await t.session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { recordMode: "recordAsMuchAsPossible", includedCategories: ["toplevel", "blink.user_timing", "disabled-by-default-devtools.timeline", "devtools.timeline", "__metadata"] } });
    return t;
  }

  /**
   * Ends the trace. Returns the tasks between the marks "begin" and "end", with processor time and clock time in ms, and the
   * duration of the fixed work.
   */
  async end() {
    const complete = new Promise((r) => this.session.once("Tracing.tracingComplete", r));
    await this.session.send("Tracing.end");
    await complete;
    await this.session.detach();
    const mark = (name) => this.events.find((e) => e.cat?.includes("user_timing") && e.name === name);
    const [begin, end, work] = [mark("begin"), mark("end"), mark("work")];
    const tasks = this.events.filter((e) => /RunTask$/.test(e.name) && e.pid === begin.pid && e.tid === begin.tid && e.dur > 0);
    const cpu = (e) => (e.tdur ?? NaN) / 1000;
    // A trace has two nested events for each task. Only the outer one counts.
    let outerEnd = 0;
    const outer = tasks.sort((a, b) => a.ts - b.ts || b.dur - a.dur).filter((e) => e.ts >= outerEnd && (outerEnd = e.ts + e.dur));
    const within = outer.filter((e) => e.ts >= begin.ts && e.ts <= end.ts).map((e) => ({ at: e.ts, cpu: cpu(e), wall: e.dur / 1000 })).sort((a, b) => b.cpu - a.cpu);
    const worked = outer.find((e) => e.ts <= work.ts && e.ts + e.dur >= work.ts);
    return { tasks: within, work: cpu(worked), begin: begin.ts };
  }
}

// A fixed piece of work similar to the page's: splitting and searching strings, creating elements, layout.
function work() {
  const host = document.createElement("div");
  document.body.append(host);
  let total = 0;
  for (let i = 0; i < 400; i++) {
    const text = `word${i} *some* [words](x${i}) `.repeat(40);
    for (const m of text.matchAll(/\*([^*]+)\*|\[([^\]]+)\]\(([^)]+)\)/g)) total += m[0].length;
    const p = document.createElement("p");
    p.textContent = text;
    host.append(p);
    if (i % 40 === 0) total += host.offsetHeight;
  }
  host.remove();
  performance.mark("work");
  return total;
}

if (lacking) {
  test("the dashboard's speed", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `flood=plugin:node ${fileURLToPath(new URL("flood.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  const conversation = async (id, agent = "flood") => {
    await gateway.call("/api/conversations", { id, title: id, agent });
    return `/#/c/${id}`;
  };
  const garbage = async (session) => {
    for (let i = 0; i < 2; i++) await session.send("HeapProfiler.collectGarbage");
    const { metrics } = await session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map((m) => [m.name, m.value]));
  };

  test("200 tokens a second: tables, lists, 100 KB of code, footnotes, 1 MB of a tool, while the user types", { timeout: 900_000 }, async () => {
    const page = await open(gateway, { path: await conversation("fast"), watched: false });
    const trace = await Trace.of(page);
    await page.evaluate(work);
    await ask(page, "answer");
    await page.locator(".tool").waitFor();
    await page.locator(".tool").getByRole("button").first().click(); // expand its output
    await page.locator(".log").press("End"); // follow the end
    await page.evaluate(() => {
      window.keys = [];
      window.longTasks = [];
      window.updates = { n: 0, most: 0, removed: 0 };
      addEventListener("keydown", (e) => {
        const at = e.timeStamp;
        requestAnimationFrame(() => window.keys.push([at, performance.now() - at]));
      }, true);
      new PerformanceObserver((l) => {
        for (const e of l.getEntries()) window.longTasks.push(Math.round(e.duration));
      }).observe({ type: "longtask" });
      // Count the elements that each frame adds and removes.
      new MutationObserver((records) => {
        const added = records.reduce((n, m) => n + m.addedNodes.length, 0);
        window.updates.n++;
        window.updates.most = Math.max(window.updates.most, added);
        window.updates.removed = Math.max(window.updates.removed, records.reduce((n, m) => n + m.removedNodes.length, 0));
      }).observe(document.querySelector(".log"), { subtree: true, childList: true });
      window.begun = performance.mark("begin").startTime;
    });
    const typing = (async () => {
      for (let i = 0; ; i++) {
        await composer(page).press("abcdefghij "[i % 11]);
        if (i % 10 === 9 && (await page.evaluate(() => document.querySelector(".log").dataset.open === "0" && document.querySelector(".notes")))) return i;
        if (i % 60 === 59) await composer(page).fill("");
        await new Promise((r) => setTimeout(r, 20));
      }
    })();
    const keyCount = await typing;
    await page.evaluate(() => performance.mark("end"));
    await idle(page);
    const { keys, longTasks, updates, begun } = await page.evaluate(() => ({ keys: window.keys, longTasks: window.longTasks, updates: window.updates, begun: window.begun }));
    const { tasks, work: worked, begin } = await trace.end();
    const slow = Math.max(1, worked / nominal);
    const key = keys.map(([, took]) => Math.round(took)).sort((a, b) => b - a);
    // The page's processor time between a key press and its frame.
    const busy = keys.map(([at, took]) => {
      const [from, to] = [begin + (at - begun) * 1000, begin + (at + took - begun) * 1000];
      return tasks.filter((t) => t.at < to && t.at + t.wall * 1000 > from).reduce((n, t) => n + t.cpu, 0);
    }).sort((a, b) => b - a);
    console.log(`# the work took ${worked.toFixed(0)} ms: ${slow.toFixed(2)} times as slow. ${tasks.length} tasks, by processor ${tasks.slice(0, 4).map((t) => t.cpu.toFixed(0))} ms, by clock ${longTasks.sort((a, b) => b - a).slice(0, 4)} ms; ${keyCount} keys, by clock ${key.slice(0, 4)} ms, median ${key[key.length >> 1]}, by processor ${busy.slice(0, 4).map((b) => b.toFixed(0))} ms; ${updates.n} updates, at most ${updates.most} nodes added, ${updates.removed} removed`);
    assert.ok(tasks.length > 500 && tasks[0].cpu > 0, "the trace has the tasks");
    assert.ok(key.length >= 20, `only ${key.length} keys`);
    if (full) {
      assert.ok(tasks[0].cpu <= longTask * slow, `a task took ${tasks[0].cpu} ms`);
      assert.ok(key[key.length >> 1] < slowKey * slow, `half of the keys took ${key[key.length >> 1]} ms`);
      // If other programs delay a frame, more of the page's work comes before it: this may happen to one key in a hundred.
      const worst = busy[Math.max(1, Math.floor(busy.length / 100))];
      assert.ok(worst <= slowKey * slow, `one key in a hundred had ${worst} ms of work before its frame`);
    }
    if (quiet) {
      assert.deepEqual(longTasks.filter((t) => t > longTask), []);
      assert.ok(key[0] <= slowKey, `a key took ${key[0]} ms`);
    }
    const { transcript } = await gateway.transcript("fast");
    const text = transcript.messages.at(-1).parts.find((p) => p.kind === "text").text;
    assert.equal(text, sections.map(([, t]) => t).join(""));
    assert.equal(Number(await answer(page).getAttribute("data-len")), text.length);
    assert.equal(await answer(page).locator("tbody tr").count(), 440);
    assert.equal(await answer(page).locator("ol > li").count(), 320);
    assert.equal(await answer(page).locator(".notes li").count(), 40);
    assert.match(await answer(page).locator(".code pre").innerText(), /x2699 = "a line of code"/);
    await wantClean(page);
  });

  test("many answers at 200 tokens a second: neither nodes nor listeners grow, nor the heap", { timeout: 900_000 }, async () => {
    const page = await open(gateway, { path: await conversation("long"), watched: false });
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    await session.send("HeapProfiler.enable");
    const samples = [];
    for (let i = 0; i < rounds; i++) {
      await gateway.call("/api/conversations/long/commands", { type: "send", message: { role: "user", text: `much ${i}` } });
      await page.waitForFunction((n) => Number(document.querySelector(".log")?.dataset.ended) >= n && document.querySelector(".log").dataset.open === "0", i + 1, { timeout: 120_000 });
      if (i % 8 === 3) {
        const m = await garbage(session);
        samples.push({ at: i + 1, nodes: m.Nodes, listeners: m.JSEventListeners, heap: m.JSHeapUsedSize });
      }
    }
    console.log(`# ${samples.map((s) => `after ${s.at}: ${s.nodes} nodes, ${s.listeners} listeners, ${(s.heap / 1e6).toFixed(1)} MB`).join("; ")}`);
    // By the third sample the log is full. From then on the page keeps the same amount of content and renders as much as before.
    const [from, to] = [samples[2], samples.at(-1)];
    const characters = (to.at - from.at) * longAnswer.length;
    assert.ok(samples.length >= 4);
    assert.ok(to.nodes <= 1.2 * from.nodes, "nodes do not grow");
    assert.ok(to.listeners <= 1.2 * from.listeners, "listeners do not grow");
    if (full) assert.ok(to.heap - from.heap <= 6 * characters, `${to.heap - from.heap} bytes more for ${characters} characters`);
    await wantClean(page);
  });

  test(`a conversation of ${messageCount} messages opens and scrolls to its first one`, { timeout: 900_000 }, async () => {
    const id = "long-conversation";
    await gateway.call("/api/conversations", { id, title: "Long" });
    // Most messages are injected at once, because that is faster; only the last ones are sent one by one.
    const messageAt = (i) => ({ role: i % 2 ? "assistant" : "user", text: `Message number ${i}, with some words to fill a line.` });
    await gateway.call(`/api/conversations/${id}/import`, { messages: Array.from({ length: messageCount - 100 }, (_, i) => messageAt(i)) });
    for (let i = messageCount - 100; i < messageCount; i++) await gateway.call(`/api/conversations/${id}/commands`, { type: "inject", message: messageAt(i) });
    const order = (await gateway.transcript(id)).transcript.messages.map((m) => m.id);
    while (order.length < messageCount) {
      const { messages } = (await gateway.call(`/api/conversations/${id}/transcript?limit=200&before=${order[0]}`)).transcript;
      assert.ok(messages.length > 0, `only ${order.length} messages`);
      order.unshift(...messages.map((m) => m.id));
    }
    const page = await open(gateway, { watched: false });
    const trace = await Trace.of(page);
    await page.evaluate(work);
    const took = await page.evaluate(async (hash) => {
      const frame = () => new Promise((r) => requestAnimationFrame(r));
      const begin = performance.mark("begin").startTime;
      location.hash = hash;
      while (document.querySelectorAll("article.message").length < 20) await frame();
      await frame(); // it is shown
      return performance.mark("end").startTime - begin;
    }, `#/c/${id}`);
    const { tasks, work: worked } = await trace.end();
    const slow = Math.max(1, worked / nominal);
    const busy = tasks.reduce((n, t) => n + t.cpu, 0);
    console.log(`# opened in ${Math.round(took)} ms by clock, ${Math.round(busy)} ms by processor; ${slow.toFixed(2)} times as slow`);
    assert.ok(busy > 0, "the trace has the tasks");
    if (full) assert.ok(busy <= 1000 * slow, `it took ${busy} ms of the processor`);
    if (quiet) assert.ok(took < 1000, `it took ${took} ms`);

    // At each change the rendered messages are a range of the conversation: in order, with none missing or doubled.
    await page.evaluate((ids) => {
      const place = new Map(ids.map((m, i) => [m, i]));
      const film = (window.stretches = { drawn: new Set(), faults: [], most: 0 });
      const inspect = () => {
        const places = [...document.querySelectorAll("article[data-message]")].map((a) => place.get(a.dataset.message));
        places.forEach((n, i) => {
          film.drawn.add(n);
          if (i > 0 && n !== places[i - 1] + 1) film.faults.push(`${n} after ${places[i - 1]}`);
        });
        film.most = Math.max(film.most, places.length);
      };
      inspect();
      new MutationObserver(inspect).observe(document.querySelector(".log"), { subtree: true, childList: true });
    }, order);
    await page.locator(".log").hover();
    const atFirst = (id) => page.evaluate(async (m) => {
      await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
      const [log, a] = [document.querySelector(".log"), document.querySelector("article[data-message]")];
      return a.dataset.message === m && log.scrollTop === 0 && a.getBoundingClientRect().top >= log.getBoundingClientRect().top;
    }, id);
    while (!(await atFirst(order[0]))) await page.mouse.wheel(0, -4000);
    const film = await page.evaluate(() => ({ ...window.stretches, drawn: window.stretches.drawn.size }));
    assert.deepEqual(film.faults, []);
    assert.equal(film.drawn, messageCount, "every message came by");
    assert.ok(film.most <= 320, `only what is near is drawn, not ${film.most} messages`);
    assert.equal(await page.getByRole("button", { name: "Earlier messages" }).count(), 0);
    await page.getByRole("button", { name: /Jump to end|new/ }).click();
    await page.waitForFunction((last) => {
      const l = document.querySelector(".log");
      return l.querySelector(`[data-message="${last}"]`) && l.scrollHeight - l.scrollTop - l.clientHeight <= 1;
    }, order.at(-1));
    assert.deepEqual(await page.evaluate(() => window.stretches.faults), []);
    await wantClean(page);
  });

  test("new text doesn't scroll a reader away, and a button returns to the end", async () => {
    const page = await open(gateway);
    await ask(page, "long 4000"); // it runs until it is stopped
    await page.getByText("Section 3", { exact: true }).waitFor();
    await page.locator(".log").hover();
    await page.mouse.wheel(0, -400);
    await page.getByRole("button", { name: /Jump to end/ }).waitFor();
    const anchor = () => page.evaluate(async () => {
      const log = document.querySelector(".log");
      // Wait until the reader's scrolling has ended.
      for (let [last, unchanged] = [NaN, 0]; unchanged < 12; [last, unchanged] = [log.scrollTop, log.scrollTop === last ? unchanged + 1 : 0]) await new Promise((r) => requestAnimationFrame(r));
      return { top: log.scrollTop, height: log.scrollHeight };
    });
    const firstAnchor = await anchor();
    await page.waitForFunction((h) => document.querySelector(".log").scrollHeight > h + 500, firstAnchor.height);
    assert.equal((await anchor()).top, firstAnchor.top, "growth moves nothing");
    await page.getByRole("button", { name: /answering/ }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await idle(page);
    await page.waitForFunction(() => { // it follows the end again
      const l = document.querySelector(".log");
      return l.scrollHeight - l.scrollTop - l.clientHeight <= 1;
    });
    await wantClean(page);
  });
}
