// Every kind of part in every state, in a real browser: its content, its limits and its accessibility. SCREENSHOTS=1 writes
// screenshots to docs/images.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { answer, ask, closeBrowser, composer, copy, current, Gateway, idle, lacking, looks, open, wantClean } from "./harness.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const images = fileURLToPath(new URL("../../docs/images", import.meta.url));
const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));

async function accessible(page, label) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`), [], label);
}

const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.querySelector(".log").scrollWidth <= document.querySelector(".log").clientWidth);

if (lacking) {
  test("the parts of an answer", { skip: lacking }, () => {});
} else {
  let gateway;
  let folder;
  let count = 0;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "leat-gates-"));
    gateway = await Gateway.start(["--agent", `gallery=plugin:node ${pathOf("gallery.mjs")}`]);
    await gateway.call("/api/conversations", { id: "gallery", agent: "gallery" });
    const page = await open(gateway, { path: "/#/c/gallery" });
    await ask(page, "gallery");
    await idle(page);
    await wantClean(page);
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A page with a conversation of its own with the agent of the gallery. */
  async function begin(options) {
    const id = `parts-${++count}`;
    await gateway.call("/api/conversations", { id, agent: "gallery" });
    return open(gateway, { path: `/#/c/${id}`, ...options });
  }

  for (const [theme, phone] of looks) {
    const width = phone ? 390 : 1280;
    test(`every part, ${theme}, ${width} px wide`, async () => {
      const page = await open(gateway, { path: "/#/c/gallery", colorScheme: theme, viewport: { width, height: 1000 } });
      await page.getByText("That is all.").waitFor();
      await accessible(page, "folded");
      if (process.env.SCREENSHOTS) {
        mkdirSync(images, { recursive: true });
        await page.evaluate(() => Promise.all([...document.querySelectorAll(".log img")].map((e) => ((e.loading = "eager"), e.decode()))));
        const shot = (name) => page.screenshot({ path: join(images, `${name}-${theme}-${width < 760 ? "phone" : "wide"}.png`) });
        await page.locator(".log").hover();
        await page.mouse.wheel(0, -20_000);
        await page.locator(".message.user").first().waitFor();
        await page.waitForFunction(() => document.querySelector(".log").scrollTop === 0);
        await shot("parts");
      }
      assert.ok(await fits(page));
      for (const row of await page.locator(".tool > .row, .data > .row").all()) assert.ok((await row.boundingBox()).height <= 32);
      for (const row of await page.locator(".fold > .row, .status .trail").all()) await row.click();
      await accessible(page, "open");
      assert.ok(await fits(page));
      await wantClean(page);
    });
  }

  test("the labels of finished parts", async () => {
    const page = await open(gateway, { path: "/#/c/gallery" });
    await page.getByText("That is all.").waitFor();
    await page.getByRole("button", { name: /^Reasoned for/ }).click();
    await page.getByText("The user wants to see").waitFor();

    const tool = (name) => page.locator(".tool", { has: page.locator(".row .name", { hasText: new RegExp(`^${name}$`) }) });
    const states = { bash: "done", read_file: "failed", delete: "denied", write_file: "done" };
    for (const [name, state] of Object.entries(states)) assert.equal(await tool(name).getByRole("img").first().getAttribute("aria-label"), state, name);
    const main = await tool("bash").locator(".main").evaluate((e) => ({ head: e.querySelector(".head").textContent, tail: e.querySelector(".tail").textContent, box: e.querySelector(".tail").getBoundingClientRect().right <= e.getBoundingClientRect().right + 1 }));
    assert.ok(main.head.startsWith("ls -l /srv") && main.tail.endsWith("report.md") && main.box, "both ends of a long argument are seen");
    for (const name of Object.keys(states)) await tool(name).getByRole("button").first().click();
    const bash = tool("bash");
    assert.deepEqual(await bash.locator(".fields dt").allInnerTexts(), ["command", "cwd"]);
    const output = bash.getByRole("group", { name: "Output" });
    assert.equal((await output.innerText()).split("\n").length, 12);
    assert.match(await output.innerText(), /file-40\.txt$/);
    await bash.getByRole("button", { name: "Show all 40 lines" }).click();
    assert.equal((await output.innerText()).split("\n").length, 40);
    assert.match(await bash.getByRole("group", { name: "Errors" }).innerText(), /Permission denied/);
    await bash.getByText("Exit code 1").waitFor();
    await tool("read_file").getByText("no such file or directory").waitFor();
    await tool("delete").getByText("Not allowed.").waitFor();
    assert.match(await tool("write_file").getByRole("group", { name: "content" }).innerText(), /^# Notes\n\nline one\nline two$/);
    await tool("search").getByRole("button").first().click();
    await tool("search").getByText("These arguments are incomplete").waitFor();
    assert.equal(await tool("search").getByRole("group", { name: "Output" }).innerText(), "3 matches\n100%");
    await tool("web").getByText("Looking at example.com").waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await copy(page, bash.getByRole("button", { name: "Copy output" }));
    assert.equal((await page.evaluate(() => navigator.clipboard.readText())).split("\n").length, 41, "a copy has all of it");

    const status = page.getByRole("group", { name: "Status" });
    assert.equal(await status.locator("strong").innerText(), "Song");
    await status.getByRole("button", { name: "2 earlier" }).click();
    assert.deepEqual(await status.locator("ol li").allInnerTexts(), ["Looking up the track…", "Searching…"]);

    assert.equal(await page.getByText("taken back").count(), 0);
    await page.locator(".data", { hasText: "weather" }).getByRole("button").first().click();
    assert.match(await page.getByRole("group", { name: "JSON" }).innerText(), /"place": "Berlin"/);

    const inner = page.locator("article[data-depth]");
    assert.deepEqual(await inner.evaluateAll((elements) => elements.map((a) => a.dataset.depth)), ["1", "2", "3", "3"]);
    assert.match(await inner.nth(0).innerText(), /researcher\s*works for gallery/);
    assert.match(await inner.nth(3).innerText(), /checker\s*in gallery › researcher › reader › summer/);
    const edges = await inner.evaluateAll((elements) => elements.map((a) => a.getBoundingClientRect().left));
    assert.ok(edges[0] < edges[1] && edges[1] < edges[2] && edges[2] === edges[3]);
    await answer(page).hover();
    assert.match(await answer(page).locator(".used").innerText(), /test-large · 12\.5K → 812 tokens/);
    await wantClean(page);
  });

  test("media: space is reserved, each kind has its controls, and unavailable files are explained", async () => {
    const page = await open(gateway, { path: "/#/c/gallery" });
    await page.getByText("That is all.").waitFor();
    const box = page.locator(".media.image").first();
    await box.locator("img").evaluate((e) => e.decode());
    const loaded = (await box.boundingBox()).height;
    let go;
    const released = new Promise((r) => (go = r));
    await page.route(/\/files\//, async (route) => { await released; await route.continue(); });
    await page.reload();
    await page.getByText("That is all.").waitFor();
    assert.equal((await box.boundingBox()).height, loaded, "a picture that is not there yet takes the room that it will take");
    go();
    await box.scrollIntoViewIfNeeded();
    assert.ok(await box.locator("img").evaluate((e) => e.decode().then(() => e.naturalWidth === 640)));
    assert.equal(await box.locator("img").getAttribute("alt"), "A chart of the last week");
    assert.deepEqual(await page.locator(".media img.sized").evaluate((e) => [e.width, e.height]), [48, 48]);
    const audio = page.locator("audio");
    assert.equal(await audio.getAttribute("aria-label"), "note.wav");
    assert.ok(await audio.evaluate((e) => new Promise((r) => { e.onloadedmetadata = () => r(e.duration > 0.9); e.onerror = () => r(false); e.load(); e.preload = "auto"; })));
    const file = page.getByRole("link", { name: /^report-of-the-last-week/ });
    assert.match(await file.innerText(), /text\/plain · 5 B/);
    const [download] = await Promise.all([page.waitForEvent("download"), file.click()]);
    assert.equal(download.suggestedFilename(), "report-of-the-last-week-with-a-long-name.txt");
    assert.equal(readFileSync(await download.path(), "utf8"), "words");
    const away = page.getByRole("link", { name: /^paper\.pdf/ });
    assert.match(await away.innerText(), /1\.2 MB · on example\.com/);
    assert.equal(await away.getAttribute("rel"), "noopener noreferrer");
    assert.match(await page.locator(".media.file[data-bad]").innerText(), /lost\.png[\s\S]*does not have the file any more/);
    // A broken one shows that it is broken, in its place.
    await page.unroute(/\/files\//);
    await page.route(/\/files\//, (route) => route.abort());
    await page.evaluate(() => document.querySelector(".media.image img").setAttribute("src", document.querySelector(".media.image img").src + "?again"));
    await page.locator(".media.file", { hasText: "Couldn’t load this file." }).waitFor();
    await wantClean(page, { console: /ERR_FAILED/ });
  });

  test("pictures keep their elements while the answer grows: no flicker, and one request each", async () => {
    const page = await begin();
    const id = current(page);
    const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const fetched = [];
    page.on("request", (r) => /\/files\/[0-9a-f]{32}/.test(r.url()) && fetched.push(r.url()));
    await page.getByLabel("Attach files").setInputFiles({ name: "mine.png", mimeType: "image/png", buffer: Buffer.from(dot, "base64") });
    await page.locator(".attachments li", { hasText: "mine.png" }).getByText(/ B$/).waitFor();
    // From the moment in which each is drawn first.
    await page.evaluate(() => {
      window.pictures = { seen: [], gone: [], changed: [] };
      new MutationObserver((records) => {
        for (const r of records) {
          // React writes a picture's address once more as it comes into the page.
          if (r.type === "attributes" && r.target.matches(".log img") && r.target.getAttribute(r.attributeName) !== r.oldValue) window.pictures.changed.push(r.attributeName);
          for (const [nodes, to] of [[r.addedNodes, "seen"], [r.removedNodes, "gone"]]) {
            for (const n of nodes) if (n.nodeType === 1) for (const img of n.matches("img") ? [n] : n.querySelectorAll("img")) if (to === "gone" || img.closest(".log")) window.pictures[to].push(img.closest("article")?.dataset.message ?? img.alt);
          }
        }
      }).observe(document.querySelector(".log"), { subtree: true, childList: true, attributes: true, attributeOldValue: true, attributeFilter: ["src", "class", "width", "height", "loading"] });
    });
    let control;
    const response = fetch(`${gateway.url}/api/conversations/${id}/turns?dialect=leat`, { method: "POST", duplex: "half", body: new ReadableStream({ start: (c) => (control = c) }) }).then((r) => r.text());
    const say = (...lines) => control.enqueue(new TextEncoder().encode(lines.map((l) => `${JSON.stringify({ turn: "t", ...l })}\n`).join("")));
    const grow = async (part, text) => {
      say({ type: "part.append", message: "m", part, text });
      await answer(page).getByText(text.trim()).waitFor();
    };
    say({ type: "turn.start" }, { type: "message.start", message: "m", role: "assistant" }, { type: "part.start", message: "m", part: "a", kind: "text" });
    await grow("a", "It begins. ");
    // While it answers, a user sends a picture, and the answer contains another one.
    await composer(page).fill("look at this");
    await page.getByRole("button", { name: /^(Send now|Queue)$/ }).first().click();
    await page.locator("article.user img").waitFor();
    say({ type: "part.start", message: "m", part: "pic", kind: "media", media: { url: `data:image/png;base64,${dot}`, mime: "image/png", name: "theirs.png" } });
    await page.locator("article.assistant img").first().waitFor();
    const nodes = await page.locator(".log img").evaluateAll((elements) => { window.first = elements; return elements.length; });
    assert.equal(nodes, 2);
    for (let i = 0; i < 12; i++) await grow("a", `Word ${i}. `);
    say({ type: "part.end", message: "m", part: "pic" }, { type: "part.start", message: "m", part: "r", kind: "reasoning" }, { type: "part.append", message: "m", part: "r", text: "A thought." }, { type: "part.end", message: "m", part: "r" },
      { type: "part.start", message: "m", part: "t1", kind: "tool", name: "bash" }, { type: "part.update", message: "m", part: "t1", state: "done" }, { type: "part.end", message: "m", part: "t1" },
      { type: "part.start", message: "m", part: "b", kind: "text" });
    for (let i = 0; i < 4; i++) await grow("b", `More ${i}. `);
    say({ type: "turn.end", outcome: "completed" });
    control.close();
    await response;
    page.expected = 2;
    await idle(page);
    assert.equal(await page.evaluate(() => window.first.every((img) => img.isConnected && document.querySelector(".log").contains(img))), true, "they are the same elements");
    const pictureCount = await page.evaluate(() => window.pictures);
    assert.deepEqual([pictureCount.gone, pictureCount.changed], [[], []]);
    assert.equal(new Set(fetched).size, fetched.length, `fetched again: ${fetched}`);
    await wantClean(page);
  });

  test("a running tool: its arguments and output only grow", async () => {
    const page = await begin();
    const gate = (name) => writeFileSync(join(folder, name), "");
    await ask(page, `steps ${folder}`);
    await page.locator(".alive", { hasText: /Thinking · \d+ s/ }).waitFor();
    gate("begin");
    const reasoning = page.locator(".reasoning");
    await reasoning.getByRole("button", { name: /^Reasoning \d+ s/ }).click();
    await reasoning.getByText("First I think.").waitFor();
    gate("reasoned");
    const tool = page.locator(".tool");
    await tool.getByRole("img", { name: "running" }).waitFor();
    await tool.getByRole("button").first().click();
    await tool.locator(".fields dd", { hasText: /^make all$/ }).waitFor();
    assert.match(await tool.locator(".row").innerText(), /bash\s*make all\s*\d+ s/);
    gate("more");
    await tool.locator(".fields dt", { hasText: "dir" }).waitFor();
    await tool.locator(".fields dd", { hasText: /^make all -j2$/ }).waitFor();
    gate("given");
    const output = tool.getByRole("group", { name: "Output" });
    await output.getByText("built 15").waitFor();
    assert.deepEqual((await output.innerText()).split("\n"), Array.from({ length: 12 }, (_, i) => `built ${i + 4}`));
    await page.locator(".alive", { hasText: "Running bash" }).waitFor();
    await page.reload(); // in the middle: it continues from there
    await tool.getByRole("img", { name: "running" }).waitFor();
    await tool.getByRole("button").first().click();
    await output.getByText("built 15").waitFor();
    await page.evaluate(() => { window.row = document.querySelector(".tool"); });
    gate("output");
    await output.getByText("built 30").waitFor();
    assert.deepEqual((await output.innerText()).split("\n").slice(-2), ["built 29", "built 30"]);
    await tool.getByRole("button", { name: "Show all 30 lines" }).click();
    await output.getByText("built 1", { exact: false }).waitFor();
    assert.equal((await output.innerText()).split("\n").length, 30);
    await tool.getByRole("group", { name: "Errors" }).getByText("a warning").waitFor();
    gate("done");
    await tool.getByRole("img", { name: "done" }).waitFor();
    const status = page.getByRole("group", { name: "Status" });
    await status.getByText("Packing…").waitFor();
    const firstBox = await status.boundingBox();
    gate("packed");
    await status.getByText("Sending…").waitFor();
    assert.equal((await status.boundingBox()).height, firstBox.height, "one status after the other moves nothing");
    await status.getByRole("button", { name: "1 earlier" }).click();
    assert.deepEqual(await status.locator("li").allInnerTexts(), ["Packing…"]);
    await status.getByRole("button", { name: "Hide" }).click();
    gate("sent");
    await page.getByText("All is built.").waitFor();
    const acts = page.locator("article.assistant .acts");
    const reserved = (await acts.boundingBox()).height;
    await page.locator(".alive", { hasText: "Answering" }).waitFor();
    gate("end");
    await idle(page);
    assert.equal((await acts.boundingBox()).height, reserved, "the row of actions takes the room of what it did");
    assert.match(await tool.locator(".took").innerText(), /^\d+(\.\d)? (s|min)/);
    assert.equal(await page.evaluate(() => window.row.isConnected && window.row === document.querySelector(".tool")), true, "it is the same element throughout");
    await wantClean(page);
  });

  test("reasoning is expanded while it streams if the reader has expanded it before", async () => {
    const page = await begin();
    const reasoning = page.locator(".reasoning");
    for (const [i, open] of [false, false, true].entries()) {
      const workFolder = mkdtempSync(join(folder, "reasons-"));
      writeFileSync(join(workFolder, "begin"), "");
      await ask(page, `steps ${workFolder}`);
      await reasoning.nth(i).getByRole("button", { name: /^Reasoning/ }).waitFor();
      const header = reasoning.nth(i).getByRole("button", { name: /^Reasoning/ });
      if (open) await reasoning.nth(i).getByText("First I think.").waitFor(); // the text arrives after its part has begun
      assert.equal(await header.getAttribute("aria-expanded"), String(open));
      if (!open) assert.equal(await reasoning.nth(i).getByText("First I think.").count(), 0);
      for (const name of ["reasoned", "more", "given", "output", "done", "packed", "sent", "end"]) writeFileSync(join(workFolder, name), "");
      await idle(page);
      if (i === 1) await reasoning.nth(i).getByRole("button").click();
    }
    await wantClean(page);
  });

  test("a conversation that loads slowly shows a placeholder", async () => {
    const page = await (await open(gateway)).context().newPage();
    let go;
    const released = new Promise((r) => (go = r));
    await page.routeWebSocket(/\/api\/ws/, (ws) => {
      const upstream = ws.connectToServer();
      upstream.onMessage(async (m) => {
        if (/"type":"snapshot"/.test(m)) await released;
        ws.send(m);
      });
    });
    await page.goto(`${gateway.url}/#/c/gallery`);
    await page.waitForFunction(() => getComputedStyle(document.querySelector(".loading") ?? document.body).opacity === "1" && document.querySelector(".loading"));
    go();
    await page.getByText("That is all.").waitFor();
    assert.equal(await page.locator(".loading").count(), 0);
    await page.context().close();
  });

  test("a retraction changes exactly the retracted text", async () => {
    const page = await begin();
    const workFolder = mkdtempSync(join(folder, "taken-"));
    const gate = (name) => writeFileSync(join(workFolder, name), "");
    const visibleTexts = () => page.locator("article.assistant .text").allInnerTexts();
    const retractions = () => page.evaluate(() => window.takenBack.map(({ from, to }) => [from, to]));
    const finalText = "This stays as it is, whatever becomes of the rest.";
    await ask(page, `taken ${workFolder}`);
    await page.getByText("for so few files.").waitFor();
    assert.deepEqual(await retractions(), []);
    const draft = "The backup is done. It took nine minutes, and that was far too long for so few files.";
    gate("replace");
    await page.getByText("nine minutes").waitFor({ state: "detached" });
    assert.deepEqual((await visibleTexts()).map((t) => t.trim()), [finalText, "The backup is done."]);
    assert.deepEqual(await retractions(), [[draft.length, "The backup is done. ".length]]);
    gate("more");
    await page.getByText("Nobody should ever have read this").waitFor();
    assert.deepEqual((await visibleTexts()).slice(0, 2), [finalText, "The backup is done. It took nine seconds."]);
    gate("retract");
    await page.getByText("Nobody should ever have read this").waitFor({ state: "detached" });
    gate("end");
    await idle(page);
    assert.deepEqual((await visibleTexts()).filter(Boolean), [finalText, "The backup is done. It took nine seconds."]);
    assert.deepEqual(await retractions(), [[draft.length, 20], ["Nobody should ever have read this, so it is taken back.".length, 0]]);
    // A person elsewhere drops what came after the question.
    const id = `parts-${count}`;
    const { transcript } = await gateway.transcript(id);
    await gateway.call(`/api/conversations/${id}/commands`, { type: "truncate", after: transcript.messages[0].id });
    await page.locator("article.assistant[data-message]").first().waitFor({ state: "detached" });
    assert.equal(await page.locator("article[data-message]").count(), 1);
    await wantClean(page);
  });

  test("the watcher of these tests detects each fault", async () => {
    const page = await begin();
    await ask(page, `taken ${mkdtempSync(join(folder, "seen-"))}`);
    await page.getByText("for so few files.").waitFor();
    const faults = async (fault) => {
      await page.evaluate(fault);
      await page.waitForFunction(() => window.faults.length > 0);
      return page.evaluate(() => window.faults.splice(0).map((f) => f.replace(/^\S+ /, "")));
    };
    // A little at a time, never so much at once that it would be seen by that.
    assert.deepEqual(await faults(async () => {
      const text = document.querySelectorAll("article.assistant .text")[1].querySelector("p").firstChild;
      for (let i = 0; i < 2; i++) {
        text.data = text.data.slice(0, -24);
        await new Promise((r) => requestAnimationFrame(r));
      }
    }), ["stays at 29 letters after 65"]);
    assert.deepEqual(await faults(() => { document.querySelectorAll("article.assistant .text")[0].remove(); }), ["has 0 letters after 39"]);
    assert.deepEqual(await faults(() => { document.querySelectorAll("article.assistant")[1].dataset.len = "1"; }), ["shrank from 85 to 1"]);
    assert.deepEqual(await faults(() => { const a = document.querySelector("article.user"); a.replaceWith(a.cloneNode(true)); }), ["is another element"]);
    assert.deepEqual(await faults(() => { document.querySelector("article.user").remove(); }), ["went while it was seen"]);
    assert.equal(page.context().faults.splice(0).length, 5, "and the test harness is notified");
    await page.context().close();
  });

  test("arguments that were shown never disappear", async () => {
    const page = await begin();
    const workFolder = mkdtempSync(join(folder, "forming-"));
    await ask(page, `steps ${workFolder}`);
    writeFileSync(join(workFolder, "begin"), "");
    writeFileSync(join(workFolder, "reasoned"), "");
    await page.locator(".tool").getByRole("button").first().click();
    await page.evaluate(() => {
      window.shown = [];
      const sample = () => window.shown.push([...document.querySelectorAll(".tool .fields dd")].map((e) => e.textContent));
      sample();
      new MutationObserver(sample).observe(document.querySelector(".tool"), { subtree: true, childList: true, characterData: true });
    });
    for (const name of ["more", "given", "output", "done", "packed", "sent", "end"]) writeFileSync(join(workFolder, name), "");
    await idle(page);
    const samples = await page.evaluate(() => window.shown);
    assert.ok(samples.length > 1);
    samples.forEach((values, i) => (samples[i - 1] ?? []).forEach((text, k) => assert.ok(values[k]?.startsWith(text), `${JSON.stringify(values)} after ${JSON.stringify(samples[i - 1])}`)));
    assert.deepEqual(samples.at(-1), ["make all -j2", "/srv"]);
    await wantClean(page);
  });

  test("the end of a turn shows what happened, what is saved and what to do", async () => {
    const page = await begin();
    const end = page.locator(".turn-end").last();
    const ends = [
      ["failed rate_limited I begin, but", /^The provider’s rate limit was reached\. The partial answer is saved\. Try again in a minute\./, true],
      ["failed overloaded", /^The model is overloaded\. Try again\./, true],
      ["failed context_length_exceeded a", /^The conversation is too long for the model\. The partial answer is saved\. Start a new conversation/, false],
      ["failed key_refused", /^The provider rejected the API key\. Ask the operator of the gateway to renew it\./, false],
      ["failed cut_short half of", /^The answer was cut off\. The partial answer is saved\./, true],
      ["interrupted gateway_restart half of", /^Interrupted: the gateway was restarted\. The partial answer is saved\. Try again for a complete answer\./, true],
      ["completed max_tokens the first half", /^The answer reached the model’s length limit\. Ask it to continue\./, false],
      ["failed peculiar words", /^Upstream said peculiar\. The partial answer is saved\./, false],
    ];
    for (const [i, [text, want, hasRetry]] of ends.entries()) {
      await ask(page, `end ${text}`);
      await idle(page);
      await page.waitForFunction((n) => document.querySelectorAll(".turn-end").length === n, i + 1);
      assert.match(await end.innerText(), want, text);
      assert.equal(await end.getByRole("button", { name: "Try again" }).count(), hasRetry ? 1 : 0, text);
      assert.equal(await page.locator(".turn-end").getByRole("button", { name: "Try again" }).count(), hasRetry ? 1 : 0, "only where nothing is lost by it");
    }
    await end.getByRole("button", { name: "Details" }).click();
    for (const text of ["upstream said peculiar", "gallery"]) await end.getByText(text, { exact: true }).waitFor();
    await ask(page, "end failed overloaded again");
    await idle(page);
    await page.evaluate(() => { window.old = [...document.querySelectorAll(".turn-end")].at(-1); });
    const before = (await gateway.transcript("parts-" + count)).transcript.turns.length;
    await end.getByRole("button", { name: "Try again" }).click();
    await page.waitForFunction((n) => !window.old.isConnected && document.querySelectorAll(".turn-end").length === n && document.querySelector(".log").dataset.open === "0", ends.length + 1);
    assert.equal((await gateway.transcript("parts-" + count)).transcript.turns.length, before, "the new turn stands in the place of the old one");
    await wantClean(page);
  });

  test("a stopped turn shows who stopped it", async () => {
    const page = await begin();
    await ask(page, "forever");
    await page.getByText("I begin.").waitFor();
    await page.locator(".tool").getByRole("img", { name: "running" }).waitFor();
    const other = await open(gateway, { path: new URL(page.url()).hash.replace("#", "/#") });
    await other.getByText("I begin.").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText(/^Stopped by you after \d/).waitFor();
    await other.getByText(/^Stopped after \d/).waitFor();
    await page.locator(".tool").getByRole("img", { name: "stopped" }).waitFor();
    await page.locator(".tool").getByRole("button").first().click();
    await page.getByText("Stopped before it finished.").waitFor();
    await page.reload();
    await page.getByText(/^Stopped by you after \d/).waitFor();
    await wantClean(other);
    await wantClean(page);
  });

  test("an approval request: agent, tool and arguments; Deny comes first and Enter approves nothing", async () => {
    const page = await begin();
    const other = await open(gateway, { path: new URL(page.url()).hash.replace("#", "/#") });
    await ask(page, 'ask {"tool":"deploy","prompt":"May I deploy?","options":["allow-always"]}');
    const card = page.locator(".ask");
    await card.waitFor();
    assert.match(await card.innerText(), /gallery wants to run deploy[\s\S]*May I deploy\?[\s\S]*target\s*production[\s\S]*force\s*true/);
    assert.deepEqual(await card.getByRole("button").allInnerTexts(), ["Deny", "Allow once", "Always allow deploy"]);
    await page.locator(".tool").getByRole("img", { name: "waiting for you" }).waitFor();
    await page.locator(".alive", { hasText: "Waiting for you" }).waitFor();
    await accessible(page, "a question");
    await card.focus();
    await page.keyboard.press("Enter"); // goes into it, as into a message
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Deny");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Allow once");
    await composer(page).focus();
    await page.keyboard.press("Enter");
    assert.equal(await card.count(), 1, "nothing is answered by Enter");
    await other.locator(".ask").getByRole("button", { name: "Always allow deploy" }).click();
    await page.getByText("decision allow-always").waitFor();
    await page.locator(".answered", { hasText: "May I deploy? Allowed deploy from now on" }).waitFor();
    await other.locator(".answered", { hasText: "May I deploy? You allowed deploy from now on" }).waitFor();
    assert.equal(await card.count(), 0);
    await idle(page);
    await page.reload();
    await page.locator(".answered", { hasText: "May I deploy? Allowed deploy from now on" }).waitFor();
    await ask(page, 'ask {"tool":"deploy"}');
    await card.getByRole("button", { name: "Deny" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("You denied deploy").waitFor();
    await page.locator(".tool").last().getByRole("img", { name: "denied" }).waitFor();
    await page.waitForFunction(() => document.activeElement.matches(".log")); // the focus is not lost with the card
    await idle(page);
    await wantClean(other);
    await wantClean(page);
  });

  test("a question with choices, and one with a free answer", async () => {
    const page = await begin();
    await ask(page, 'ask {"kind":"input","prompt":"Which colour?","options":["red","dark blue"]}');
    const card = page.locator(".ask");
    await card.waitFor();
    assert.deepEqual(await card.getByRole("button").allInnerTexts(), ["red", "dark blue", "Answer"]);
    await card.getByRole("button", { name: "dark blue" }).click();
    await page.getByText("decision dark blue, text").waitFor();
    await page.getByText("You answered “dark blue”").waitFor();
    await idle(page);
    await ask(page, 'ask {"kind":"input","prompt":"What is it called?","tool":"name"}');
    await card.getByRole("textbox", { name: "Your answer" }).fill("a word of mine");
    await page.keyboard.press("Enter");
    await page.getByText("decision , text a word of mine").waitFor();
    await page.getByText("You answered: a word of mine").waitFor();
    await idle(page);
    await page.reload();
    await page.locator(".answered", { hasText: "What is it called? Answered: a word of mine" }).waitFor();
    assert.deepEqual(await page.locator(".answered").allInnerTexts(), ["Which colour? Answered “dark blue”", "What is it called? Answered: a word of mine"]);
    await wantClean(page);
  });

  test("an unknown part, or one that can't be rendered, affects no other part", async () => {
    const page = await (await open(gateway)).context().newPage();
    const frames = [];
    page.on("console", (m) => frames.push(m.text()));
    page.on("pageerror", (e) => frames.push(String(e)));
    await page.routeWebSocket(/\/api\/ws/, (ws) => {
      const upstream = ws.connectToServer();
      upstream.onMessage((m) => ws.send(String(m).replaceAll('"kind":"data"', '"kind":"hologram"').replaceAll('"text":"Here is what I found:"', '"text":{"not":"a text"}')));
    });
    await page.goto(`${gateway.url}/#/c/gallery`);
    await page.getByText("That is all.").waitFor();
    await page.getByRole("button", { name: /Part of kind hologram/ }).click();
    assert.match(await page.getByRole("group", { name: "JSON" }).innerText(), /"kind": "hologram"/);
    await page.getByText("This part can’t be shown.").waitFor();
    await page.getByRole("button", { name: "Show raw" }).click();
    assert.match(await page.locator(".broken pre").innerText(), /"not": "a text"/);
    assert.ok(await page.locator(".tool").count() >= 6, "the rest is there");
    assert.deepEqual(frames, []);
    await page.context().close();
  });
}
