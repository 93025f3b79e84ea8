// Malicious content of agents, tools and other users in every place of the page, in a real browser: no script runs, no other host
// is contacted, no window opens, no element leaves its place.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { closeBrowser, Gateway, lacking, open, wantClean } from "./harness.mjs";
import { clip, strange } from "./attacks.mjs";

const forbidden = '.log :is(script, iframe:not(.sandbox[sandbox=allow-scripts]:is([src$="/ui/frames/app.html"], [src$="/ui/frames/diagram.html"])), object, embed, style, link, meta, base, form:not(.ask form), svg:not(.icon), math:not(.drawn math), math [href], dialog, [popover], [srcdoc], [style*=position], [onerror], [onload], [onclick], [onfocus], [onmouseover], [ontoggle], [autofocus])';

// Messages of the browser: URLs that look like this gateway's files, and what the script in the frame of an app is refused.
const refusals = new RegExp([
  "404",
  "^error: Unsafe attempt to initiate navigation for frame with origin '[^']*' from frame with URL '[^']*/ui/frames/app\\.html'",
  "^error: Blocked opening 'https://evil\\.example/' in a new window because the request was made in a sandboxed frame",
  "^error: Connecting to 'https://evil\\.example/' violates the following Content Security Policy directive: \"default-src 'none'\"",
  "^error: Fetch API cannot load https://evil\\.example/\\. Refused to connect",
  "^error: TypeError: Failed to fetch\\n[^]*/ui/frames/app\\.html",
  // A diagram is measured in its frame before it is sanitized there. Handlers in the page itself are found by harm.
  "^error: Executing inline event handler violates the following Content Security Policy directive 'script-src 'self' 'sha256-",
  "^error: Blocked autofocusing on a <button> element in a cross-origin subframe\\. \\(in a frame\\)$",
].join("|"));

/** Returns the effects of hostile content on a page. */
async function harm(page) {
  const fontFaces = await page.evaluate((selector) => {
    const log = document.querySelector(".log");
    const results = [];
    if (window.hacked !== undefined) results.push(`script ${window.hacked} ran`);
    if ({}.polluted !== undefined) results.push("the prototype is polluted");
    results.push(...window.violations.map((v) => `against the policy: ${v}`));
    for (const e of document.querySelectorAll(selector)) results.push(`there is ${e.outerHTML.slice(0, 200)}`);
    for (const a of document.querySelectorAll(".log a, .list a")) {
      if (!/^(https?|mailto):/.test(a.href) && !a.href.startsWith("data:")) results.push(`a link to ${a.href.slice(0, 100)}`);
      if (a.host !== location.host && a.protocol !== "mailto:" && a.protocol !== "data:" && !(a.rel.includes("noopener") && a.target === "_blank")) results.push(`a link away in this window to ${a.href.slice(0, 100)}`);
    }
    for (const e of document.querySelectorAll(".log :is(img, audio, video)")) {
      if (new URL(e.currentSrc || e.src, location).origin !== location.origin && !/^data:/.test(e.src)) results.push(`${e.tagName} from ${e.src.slice(0, 100)}`);
    }
    if (document.documentElement.scrollWidth > innerWidth) results.push(`the page is ${document.documentElement.scrollWidth} px wide`);
    if (log.scrollWidth > log.clientWidth) results.push(`the log is ${log.scrollWidth} px wide`);
    const { left, right } = log.getBoundingClientRect();
    for (const e of document.querySelectorAll(".log article > *, .log .ask > *, .log .row, .log .inside > *, .log .acts")) {
      const box = e.getBoundingClientRect();
      if (box.width > 0 && (box.left < left - 1 || box.right > right + 1) && !e.closest(".unseen")) results.push(`${e.className || e.tagName} stands out`);
    }
    for (const row of document.querySelectorAll(".log .row")) if (row.getBoundingClientRect().height > 33) results.push(`a row is ${row.getBoundingClientRect().height} px high`);
    // No name or argument contains a character that hides or reorders text.
    for (const e of document.querySelectorAll(".log :is(.row, .who, .media, .fields dt, .told, .used, .alive, .ask header, .ask .answers)")) {
      if (/[\u0000-\u0008\u000e-\u001f\u007f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb]/.test(e.closest(".markdown, [dir=auto]") ? "" : e.textContent)) results.push(`${e.className} turns or hides text: ${JSON.stringify(e.textContent.slice(0, 80))}`);
    }
    return results;
  }, forbidden);
  return [...new Set(fontFaces)];
}

if (lacking) {
  test("hostile content", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start(["--agent", `strange=plugin:node ${fileURLToPath(new URL("attacks.mjs", import.meta.url))}`]);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  /** Opens a page that counts policy violations and opened windows. */
  async function openWatched(options) {
    const page = await open(gateway, options);
    await page.context().addInitScript(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
    });
    page.opened = 0;
    page.context().on("page", () => page.opened++);
    page.on("dialog", (d) => { page.opened++; void d.dismiss(); });
    page.on("download", () => page.opened++);
    await page.reload();
    await page.locator('.connection[data-state="connected"]').waitFor();
    return page;
  }

  /** Creates a conversation with the text i in its title, authors, messages, and a waiting turn. */
  async function begin(id, i, check = () => {}) {
    const text = strange[i];
    const command = (c) => gateway.call(`/api/conversations/${id}/commands`, c);
    await gateway.call("/api/conversations", { id, agent: "strange", title: clip(text, 200) });
    await check(`#/c/${id}`);
    await command({ type: "inject", message: { role: "assistant", text, author: { id: clip(text, 50), name: clip(text, 300) } } });
    await command({ type: "inject", message: { role: "system", text } });
    await command({ type: "inject", message: { role: "user", text } });
    return (await command({ type: "send", message: { text: `everywhere ${i}` } })).turn;
  }

  const answer = (id, turn) => gateway.call(`/api/conversations/${id}/commands`, { type: "answer", turn, request: "q", decision: "deny" });

  assert.ok(strange.length >= 40);
  for (const [half, width] of [[0, 1280], [1, 390]]) {
    test(`in every part, ${width} px wide`, async () => {
      const page = await openWatched({ viewport: { width, height: 900 } });
      for (const [i, text] of strange.entries()) {
        if (i % 2 !== half && !process.env.ALL) continue;
        const label = `${i}: ${JSON.stringify(text.slice(0, 60))}`;
        const id = `strange-${width}-${i}`;
        const turn = await begin(id, i, (to) => page.evaluate((hash) => { location.hash = hash; }, to));
        await page.locator(".ask").waitFor().catch(async (err) => { throw new Error(`${label}: ${err.message}\n${gateway.log.slice(-2000)}`); });
        assert.deepEqual(await harm(page), [], `${label}, folded`);
        await page.evaluate(() => { for (const b of document.querySelectorAll(".log .row, .log .trail")) b.click(); });
        await page.locator(".tool .inside").nth(1).waitFor();
        await page.evaluate(() => { for (const b of document.querySelectorAll(".log .field .link")) b.click(); });
        assert.deepEqual(await harm(page), [], `${label}, open`);
        await answer(id, turn);
        await page.locator('.log[data-open="0"] .turn-end').last().waitFor();
        await page.evaluate(() => { for (const b of document.querySelectorAll(".cause > .row[aria-expanded=false]")) b.click(); });
        assert.deepEqual(await harm(page), [], `${label}, at its end`);
        assert.equal(page.opened, 0, `${label} opens something`);
        assert.ok(page.url().startsWith(gateway.url), `${label} leads away`);
      }
      await wantClean(page, { console: refusals });
    });
  }

  /** Opens a finished conversation that is full of the text i. */
  async function past(page, i) {
    const id = `past-${i}`;
    const turn = await begin(id, i);
    await page.goto(`${gateway.url}/#/c/${id}`);
    await page.reload();
    await page.locator(".ask").waitFor();
    await answer(id, turn);
    await page.locator('.log[data-open="0"] .turn-end').last().waitFor();
    await page.reload();
    await page.locator(".turn-end").last().waitFor();
  }

  test("hostile content in a snapshot does no harm", async () => {
    const page = await openWatched({});
    for (const i of [0, 14, 24, 38]) {
      await past(page, i);
      await page.evaluate(() => { for (const b of document.querySelectorAll(".log .row, .log .trail")) b.click(); });
      assert.deepEqual(await harm(page), [], JSON.stringify(strange[i].slice(0, 60)));
    }
    assert.equal(page.opened, 0);
    await wantClean(page, { console: /404/ });
  });

  test("file names with hidden direction marks show them", async () => {
    const page = await openWatched({});
    await past(page, strange.findIndex((s) => s.startsWith("evil\u202e")));
    for (const selector of [".tool .name", ".media .name", ".data .name", ".who"]) assert.match(await page.locator(selector).first().innerText(), /evil⟨U\+202E⟩gpj\.exe/, selector);
    await wantClean(page, { console: /404/ });
  });
}
