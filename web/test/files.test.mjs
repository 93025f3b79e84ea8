// Uploads and downloads in a real browser over the real gateway: large files over a broken connection, pictures, and files of the
// workspace that agents name.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deflateSync } from "node:zlib";

import { accessible } from "./axe.mjs";
import { answer, ask, closeBrowser, composer, current, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";

const networkErrors = /ERR_|WebSocket connection|Failed to load resource/;
const mega = 1 << 20;

/** A proxy between the browser and the gateway that can be held or disconnected after a number of uploaded bytes. */
class Line {
  uploadedBytes = 0; // bytes that the proxy has handed over to the gateway, which disconnect doesn't discard
  state = "open"; // or "held": no data passes; or "cut": connections fail
  limit = Infinity; // bytes, after which the method atLimit is called
  atLimit = "disconnect";
  pairs = new Set();

  static async to(port) {
    const l = new Line();
    l.server = createServer((browser) => l.take(browser, port));
    await new Promise((r) => l.server.listen(0, "127.0.0.1", r));
    l.url = `http://127.0.0.1:${l.server.address().port}`;
    return l;
  }

  take(browser, port) {
    if (this.state === "cut") return void browser.destroy();
    const gateway = connect(port, "127.0.0.1");
    const pair = { browser, gateway };
    this.pairs.add(pair);
    const end = () => {
      browser.destroy();
      gateway.destroy();
      this.pairs.delete(pair);
    };
    for (const s of [browser, gateway]) s.on("error", end).on("close", end);
    browser.on("data", (d) => {
      const flows = gateway.write(d, (err) => {
        if (err) return;
        this.uploadedBytes += d.length;
        if (this.state === "open" && this.uploadedBytes > this.limit) this[this.atLimit]();
      });
      if (!flows) browser.pause();
    });
    gateway.on("drain", () => this.state === "open" && browser.resume());
    gateway.on("data", (d) => browser.write(d));
    if (this.state === "held") this.pause(pair);
  }

  pause({ browser, gateway }) {
    browser.pause();
    gateway.pause();
  }

  hold() {
    this.state = "held";
    for (const p of this.pairs) this.pause(p);
  }

  disconnect() {
    this.state = "cut";
    for (const p of [...this.pairs]) {
      p.browser.destroy();
      p.gateway.destroy();
    }
  }

  mend() {
    this.limit = Infinity;
    this.state = "open";
    for (const { browser, gateway } of this.pairs) {
      browser.resume();
      gateway.resume();
    }
  }

  close() {
    this.disconnect();
    return new Promise((r) => this.server.close(r));
  }
}

/** Waits until a condition is true. */
async function waitFor(label, is) {
  for (let i = 0; i < 1200; i++) {
    const v = await is();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 50));
  }
  assert.fail(`it never came to be that ${label}`);
}

const sum = (b) => createHash("sha256").update(b).digest("hex");
const chip = (page, name) => page.locator(".attachments li", { hasText: name });
const attach = (page, files) => page.locator("input[type=file]").setInputFiles(files);

/** Returns a PNG of one color. */
function png(width, height, [r, g, b]) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    let c = ~0;
    for (const x of body) for (let k = ((c ^= x), 0); k < 8; k++) c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0);
    const bytes = Buffer.alloc(body.length + 8);
    bytes.writeUInt32BE(data.length);
    body.copy(bytes, 4);
    bytes.writeUInt32BE(~c >>> 0, body.length + 4);
    return bytes;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([r, g, b]))]);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(Buffer.concat(Array(height).fill(row)))), chunk("IEND", Buffer.alloc(0))]);
}

/** Returns frames of an OpenClaw gateway (protocol 3) that stream a text in pieces. */
function speech(pieces) {
  let seq = 0;
  let t = 0;
  let text = "";
  const line = (frame) => JSON.stringify({ t: (t += 60), c: "c", dir: "in", frame });
  const agent = (stream, data) => line({ type: "event", event: "agent", payload: { runId: "r", stream, data, sessionKey: "agent:main:s", seq: ++seq, ts: t } });
  return [
    line({ type: "res", id: "1", ok: true, payload: { type: "hello-ok", protocol: 3 } }),
    agent("lifecycle", { phase: "start", startedAt: 1 }),
    ...pieces.map((delta) => agent("assistant", { text: (text += delta), delta })),
    agent("lifecycle", { phase: "end", endedAt: 2 }),
    line({ type: "event", event: "chat", payload: { runId: "r", sessionKey: "agent:main:s", seq, state: "final", message: { role: "assistant", content: [{ type: "text", text }] } } }),
  ].join("\n") + "\n";
}

if (lacking) {
  test("files", { skip: lacking }, () => {});
} else {
  let gateway, line, folder, workspace;
  const film = randomBytes(24 * mega);
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "leat-web-files-"));
    workspace = join(folder, "space");
    writeFileSync(join(folder, "secret.txt"), "the secret");
    for (const name of ["film.bin", "held.bin"]) writeFileSync(join(folder, name), film);
    writeFileSync(join(folder, "take.jsonl"), speech(`Look at this:\nMEDIA:${workspace}/plot.png\nand at this:\nMEDIA:./notes.txt\nbut not at this:\nMEDIA:${folder}/secret.txt\nThat was it.`.match(/[\s\S]{1,3}/g)));
    gateway = await Gateway.start(["--agent", `claw=replay:${join(folder, "take.jsonl")}?dialect=openclaw`], { LEAT_FILES_WORKSPACE: workspace });
    writeFileSync(join(workspace, "plot.png"), png(120, 80, [20, 120, 90]));
    writeFileSync(join(workspace, "notes.txt"), "some notes");
    line = await Line.to(gateway.port);
  });
  after(async () => {
    await closeBrowser();
    await line?.close();
    await gateway?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Checks that the agent received the file, and that its own copy comes back. */
  const arrived = async (page, name, content) => {
    await ask(page, "files");
    await idle(page);
    const { transcript } = await gateway.transcript(current(page));
    const media = transcript.messages[0].parts.find((p) => p.kind === "media").media;
    assert.equal(media.size, content.length);
    const res = await fetch(new URL(media.url, gateway.url));
    assert.equal(sum(Buffer.from(await res.arrayBuffer())), sum(content));
  };

  test("a large upload continues after a disconnect and a kill of the gateway", async () => {
    const page = await open({ url: line.url });
    line.limit = line.uploadedBytes + 10 * mega;
    line.atLimit = "disconnect";
    await attach(page, join(folder, "film.bin"));
    await chip(page, "film.bin").getByText("waiting for the connection").waitFor({ timeout: 60_000 });
    assert.equal(line.state, "cut");
    const partial = () => {
      const [came] = readdirSync(join(gateway.data, "uploads")).filter((n) => !n.includes("."));
      return came ? statSync(join(gateway.data, "uploads", came)).size : 0;
    };
    await waitFor("a part of the file is stored", () => partial() > mega); // the gateway may still read what it was sent
    await gateway.kill();
    const there = partial();
    assert.ok(there < film.length, `${there} bytes are there`);
    await gateway.run();
    const before = line.uploadedBytes;
    line.mend();
    await chip(page, "film.bin").getByText(/^25 MB$/).waitFor({ timeout: 60_000 });
    const repeatedBytes = line.uploadedBytes - before - (film.length - there);
    assert.ok(repeatedBytes < mega, `${repeatedBytes} bytes went twice`);
    await arrived(page, "film.bin", film);
    // The file is in the workspace, where the agent finds it.
    const [at] = readdirSync(join(workspace, "uploads", "operator"), { recursive: true }).filter((n) => n.endsWith("film.bin"));
    assert.equal(sum(readFileSync(join(workspace, "uploads", "operator", at))), sum(film));
    await wantClean(page, { console: networkErrors });
  });

  test("the progress of an upload is announced, and it can be removed in the middle", async () => {
    const page = await open({ url: line.url });
    line.limit = line.uploadedBytes + 10 * mega;
    line.atLimit = "hold";
    await attach(page, join(folder, "held.bin"));
    await waitFor("the line is held", () => line.state === "held");
    const bar = page.getByRole("progressbar", { name: "Uploading held.bin" });
    await waitFor("progress is shown", async () => Number(await bar.getAttribute("value")) > 0.2);
    assert.ok(Number(await bar.getAttribute("value")) < 0.95);
    assert.match(await chip(page, "held.bin").innerText(), /\d+ % of 25 MB sent/);
    const before = readdirSync(join(gateway.data, "uploads")).filter((n) => !n.includes(".")).length;
    assert.equal(before, 1);
    await page.getByRole("button", { name: "Remove held.bin" }).click();
    await chip(page, "held.bin").waitFor({ state: "detached" });
    line.mend();
    await waitFor("the upload is taken back", () => readdirSync(join(gateway.data, "uploads")).every((n) => existsSync(join(gateway.data, "uploads", n)) && !/^[0-9a-f]{32}$/.test(n)));
    await composer(page).fill("echo on");
    assert.ok(await page.getByRole("button", { name: "Send", exact: true }).isEnabled());
    await wantClean(page, { console: networkErrors });
  });

  test("a file that can't be uploaded is explained before it is sent", async () => {
    const small = await Gateway.start([], { LEAT_LIMITS_FILE: "1MiB" });
    try {
      const page = await open(small);
      const bodies = [];
      page.on("request", (r) => r.method() === "POST" && bodies.push(r.url()));
      await attach(page, [{ name: "big.bin", mimeType: "application/octet-stream", buffer: film.subarray(0, 2 * mega) }, { name: "empty.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) }]);
      await chip(page, "big.bin").getByText("the file has 2.1 MB; the limit is 1.0 MB").waitFor();
      await chip(page, "empty.txt").getByText("the file is empty").waitFor();
      assert.equal(await page.getByRole("button", { name: "Try again" }).count(), 0);
      assert.deepEqual(bodies.filter((u) => u.includes("files")), []);
      for (const name of ["big.bin", "empty.txt"]) await page.getByRole("button", { name: `Remove ${name}` }).click();
      await attach(page, { name: "fits.bin", mimeType: "application/octet-stream", buffer: film.subarray(0, mega) });
      await chip(page, "fits.bin").getByText(/^1\.0 MB$/).waitFor();
      await wantClean(page);
    } finally {
      await small.close();
    }
  });

  test("a refused upload can be tried again", async () => {
    const page = await open(gateway);
    let refuse = true;
    await page.route(/\/api\/conversations\/[^/]+\/files/, (route) => (refuse ? route.fulfill({ status: 429, contentType: "application/json", body: '{"error":"a user may store no more","reason":"quota"}' }) : route.continue()));
    await attach(page, { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
    await chip(page, "note.txt").getByText("a user may store no more").waitFor();
    refuse = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await chip(page, "note.txt").getByText(/^5 B$/).waitFor();
    await arrived(page, "note.txt", Buffer.from("words"));
    await wantClean(page, { console: networkErrors });
  });

  test("a small file waits for the connection too", async (t) => {
    t.after(() => line.mend());
    const page = await open({ url: line.url });
    line.disconnect();
    await attach(page, { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
    await chip(page, "note.txt").getByText("waiting for the connection").waitFor();
    line.mend();
    await chip(page, "note.txt").getByText(/^5 B$/).waitFor({ timeout: 60_000 });
    await arrived(page, "note.txt", Buffer.from("words"));
    await wantClean(page, { console: networkErrors });
  });

  test("a message sent during an upload is delivered when the upload is complete", async (t) => {
    t.after(() => line.mend());
    const page = await open({ url: line.url });
    const userMessage = page.locator(".message.user", { hasText: "what is in it" });
    line.disconnect();
    await attach(page, { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
    await chip(page, "note.txt").getByText("waiting for the connection").waitFor();
    const note = page.getByText("The message is sent when its files are uploaded");
    await composer(page).fill("what is in it");
    await composer(page).press("Enter");
    await note.waitFor();
    // A message that the user continues to edit must not be sent as it is.
    await composer(page).fill("echo what is in it");
    await note.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await note.waitFor();
    assert.equal(await userMessage.count(), 0);
    line.mend();
    await userMessage.waitFor({ timeout: 60_000 });
    assert.match(await userMessage.innerText(), /note\.txt/);
    await page.waitForFunction(() => document.getElementById("composer").value === "");
    await note.waitFor({ state: "detached" });
    await wantClean(page, { console: networkErrors });
  });

  test("a failed upload keeps its message in the composer, with the reason", async () => {
    const page = await open(gateway);
    await page.route(/\/api\/conversations\/[^/]+\/files/, (route) => route.fulfill({ status: 429, contentType: "application/json", body: '{"error":"a user may store no more","reason":"quota"}' }));
    await attach(page, { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
    await chip(page, "note.txt").getByText("a user may store no more").waitFor();
    await composer(page).fill("echo without it");
    await composer(page).press("Enter");
    await page.getByText("An upload failed").waitFor();
    assert.equal(await page.locator(".message.user").count(), 0);
    await page.getByRole("button", { name: "Remove note.txt" }).click();
    await page.locator(".message.user", { hasText: "echo without it" }).waitFor();
    await wantClean(page, { console: networkErrors });
  });

  test("a picture that is pasted or dropped is shown at once, and in the message", async (t) => {
    t.after(() => line.mend());
    const page = await open({ url: line.url });
    line.hold(); // before the gateway has received any of it
    const bytes = [...png(64, 48, [200, 80, 20])];
    for (const [kind, name] of [["paste", "pasted.png"], ["drop", "dropped.png"]]) {
      await page.evaluate(([kind, name, bytes]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
        const e = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
        document.querySelector("#composer").dispatchEvent(e);
      }, [kind, name, bytes]);
      const thumb = chip(page, name).locator("img");
      await thumb.waitFor();
      assert.ok(await thumb.evaluate((e) => e.decode().then(() => e.naturalWidth === 64)));
    }
    line.mend();
    for (const name of ["pasted.png", "dropped.png"]) await chip(page, name).getByText(/ B$/).waitFor({ timeout: 60_000 });
    await ask(page, "files");
    await idle(page);
    const pictures = page.locator("article.user img");
    assert.equal(await pictures.count(), 2);
    for (const i of [0, 1]) assert.ok(await pictures.nth(i).evaluate((e) => e.decode().then(() => e.naturalWidth === 64)));
    await wantClean(page, { console: networkErrors });
  });

  test("files can be dropped anywhere on the page", async () => {
    await gateway.conversation("drop", "Drop", [["assistant", "Drop it here."]]);
    const page = await open(gateway, { path: "/#/c/drop" });
    await page.getByText("Drop it here.").waitFor();
    const overlay = page.getByText("Drop files to attach them");
    const drag = (type, selector, withFile = true) => page.evaluate(([type, selector, withFile]) => {
      const data = new DataTransfer();
      if (withFile) data.items.add(new File(["words"], "note.txt", { type: "text/plain" }));
      else data.setData("text/plain", "words");
      const e = new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true });
      document.querySelector(selector).dispatchEvent(e);
      return e.defaultPrevented;
    }, [type, selector, withFile]);
    await drag("dragenter", ".log");
    await overlay.waitFor();
    await accessible(page, "dragging");
    await drag("dragenter", ".message");
    await drag("dragleave", ".log");
    await overlay.waitFor();
    await drag("dragleave", ".message");
    await overlay.waitFor({ state: "detached" });
    assert.equal(await drag("dragover", ".log", false), false, "dragged text is the browser's");
    await drag("dragenter", ".log");
    assert.equal(await drag("dragover", ".rail"), true);
    assert.equal(await drag("drop", ".log"), true);
    await overlay.waitFor({ state: "detached" });
    await chip(page, "note.txt").getByText("5 B", { exact: true }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), "composer");
    await wantClean(page);
  });

  test("on a touch screen a photo can be taken", async () => {
    const page = await open(gateway, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
    await page.getByRole("button", { name: "Attach", exact: true }).click();
    await accessible(page, "attaching on a phone");
    const [camera] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("menuitem", { name: "Take a photo" }).click()]);
    assert.deepEqual(await camera.element().evaluate((e) => [e.getAttribute("accept"), e.getAttribute("capture")]), ["image/*", "environment"]);
    await camera.setFiles({ name: "photo.png", mimeType: "image/png", buffer: png(64, 48, [200, 80, 20]) });
    await chip(page, "photo.png").locator("img").waitFor();
    await page.getByRole("button", { name: "Attach", exact: true }).click();
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.getByRole("menuitem", { name: "Photos and files" }).click()]);
    assert.ok(chooser.isMultiple());
    await chooser.setFiles({ name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("words") });
    await chip(page, "note.txt").getByText("5 B", { exact: true }).waitFor();
    await wantClean(page);
  });

  test("a message can name a file of the workspace by its path", async () => {
    const upload = await fetch(`${gateway.url}/api/files/upload?name=beach.png`, { method: "POST", body: png(30, 20, [0, 0, 200]) });
    const { path } = await upload.json();
    await gateway.conversation("named", "Named");
    const page = await open(gateway, { path: "/#/c/named" });
    const say = (text) => gateway.call("/api/conversations/named/commands", { type: "send", message: { text } }); // as any page does
    await say(`files\nMEDIA:${path}`);
    await page.getByText("beach.png image/png").waitFor();
    const userMessages = page.locator("article.user");
    assert.ok(await userMessages.locator("img").evaluate((e) => e.decode().then(() => e.naturalWidth === 30)));
    await say(`echo\nMEDIA:${folder}/secret.txt`);
    await userMessages.nth(1).getByText("it is outside the workspace").waitFor();
    assert.match(await userMessages.nth(1).innerText(), /secret\.txt/);
    assert.ok(!(await page.locator(".log").innerText()).includes(folder));
    await page.reload();
    await userMessages.nth(1).getByText("it is outside the workspace").waitFor();
    await wantClean(page);
  });

  test("a file that an agent names in a MEDIA: line is shown, and the line is not", async () => {
    const page = await open(gateway);
    await page.evaluate(() => {
      window.seen = [];
      new MutationObserver(() => {
        const text = [...document.querySelectorAll("article.assistant")].map((e) => e.innerText).join("\n");
        if (/MEDIA|\/plot|space\/|\bMED?I?A?$/m.test(text)) window.seen.push(text);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await gateway.call("/api/conversations", { id: "shown", title: "Shown", agent: "claw" });
    await page.goto(`${gateway.url}/#/c/shown`);
    await page.getByRole("heading", { level: 1, name: "Shown" }).waitFor();
    await ask(page, "show me");
    await page.getByText("That was it.").waitFor({ timeout: 60_000 });
    await idle(page);
    const text = await answer(page).innerText();
    assert.match(text, /Look at this:[\s\S]*and at this:[\s\S]*but not at this:[\s\S]*That was it\./);
    assert.ok(await answer(page).locator("img").evaluate((e) => e.decode().then(() => e.naturalWidth === 120)));
    assert.match(text, /secret\.txt[\s\S]*it is outside the workspace/);
    assert.deepEqual(await page.evaluate(() => window.seen), []);
    const [download] = await Promise.all([page.waitForEvent("download"), answer(page).getByRole("link", { name: /notes\.txt/ }).click()]);
    assert.equal(download.suggestedFilename(), "notes.txt");
    assert.equal(readFileSync(await download.path(), "utf8"), "some notes");
    const { transcript } = await gateway.transcript("shown");
    assert.ok(!JSON.stringify(transcript).includes(folder), "the log contains a path of the machine");
    await page.reload();
    await answer(page).locator("img").waitFor();
    await wantClean(page);
  });
}
