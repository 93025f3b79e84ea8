// Voice over the real gateway: espeak-ng speaks, a fake of a transcription service understands, and a file is the microphone.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { answer, ask, browser, closeBrowser, composer, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { microphone, recording, recordPhases, tap, waitForPhase } from "./voice.mjs";

const reason = lacking || (existsSync("/usr/bin/espeak-ng") ? "" : "needs espeak-ng; on Debian: apt-get install espeak-ng");

const panel = (page) => page.getByRole("region", { name: "Voice mode" });
const waitFor = async (condition, label) => {
  for (let i = 0; i < 600; i++) {
    if (await condition()) return;
    await new Promise((r) => setTimeout(r, 50));
  }
  assert.fail(`never: ${label}`);
};
/** The samples of the loudspeaker that aren't silence, and those of silence at the end. */
const tapped = (page) => page.evaluate(() => ({
  loud: window.tapped.filter(([v]) => v !== 0).reduce((n, [, count]) => n + count, 0), total: window.tapped.reduce((n, [, count]) => n + count, 0),
  silence: window.tapped.at(-1)?.[0] === 0 ? window.tapped.at(-1)[1] : 0,
}));

/** A service for transcriptions: each recording becomes the next of the texts. */
async function transcriber(texts) {
  const service = { uploads: [] };
  service.server = createServer((req, res) => {
    const chunks = [];
    req.on("data", (c) => chunks.push(c));
    req.on("end", () => {
      service.uploads.push(Buffer.concat(chunks));
      res.setHeader("Content-Type", "application/json");
      res.end(JSON.stringify({ text: texts[service.uploads.length - 1] ?? "echo nothing left" }));
    });
  });
  await new Promise((resolve) => service.server.listen(0, "127.0.0.1", resolve));
  service.url = `http://127.0.0.1:${service.server.address().port}/v1`;
  return service;
}

if (reason) {
  test("voice over the real gateway", { skip: reason }, () => {});
} else {
  const longAnswer = "echo " + Array.from({ length: 12 }, (_, i) => `This is sentence number ${i + 1}, and it takes a while to say it aloud.`).join(" ");
  let gateway, service;
  before(async () => {
    service = await transcriber([longAnswer, "echo Second answer."]);
    gateway = await Gateway.start([], { LEAT_VOICE_RECOGNITION_ENGINE: "openai", LEAT_VOICE_RECOGNITION_URL: service.url, LEAT_VOICE_RECOGNITION_KEY: "key-of-the-tests" });
    await browser(microphone(recording([["silence", 2], ["speech", 1.5], ["silence", 9], ["speech", 2], ["silence", 60]])));
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
    service?.server.close();
  });

  test("speech becomes a message, its answer is spoken, and speech interrupts it", async () => {
    let counters;
    const page = await open(gateway, { permissions: ["microphone"], bypassCSP: true, prepare: async (p) => {
      await tap(p);
      await recordPhases(p);
      p.on("websocket", (ws) => {
        if (!ws.url().includes("/voice")) return;
        counters = { samples: 0, atFlush: [], frames: [], sent: [] };
        ws.on("framereceived", ({ payload }) => {
          if (typeof payload === "string") counters.frames.push(JSON.parse(payload));
          else if (payload.length === 1) counters.atFlush.push(counters.samples);
          else counters.samples += payload.length / 2;
        });
        ws.on("framesent", ({ payload }) => { if (typeof payload === "string") counters.sent.push(JSON.parse(payload)); });
      });
    } });
    await composer(page).press("Alt+v");
    await waitForPhase(page, "Hearing you");
    await panel(page).locator(".phase", { hasText: "Speaking" }).waitFor({ timeout: 30_000 });
    await panel(page).locator(".caption", { hasText: "sentence number" }).waitFor();
    assert.match(await page.locator("article.message.user").innerText(), /sentence number 12/);
    // The second utterance of the file interrupts the answer.
    await waitFor(() => counters.atFlush.length === 1, "the flush");
    const interrupt = counters.sent.find((f) => f.type === "interrupt");
    assert.ok(interrupt.played > 0 && interrupt.played <= counters.atFlush[0], `played ${interrupt.played} of ${counters.atFlush[0]}`);
    assert.equal(counters.frames.some((f) => f.type === "stream_done"), false, "no end of an interrupted answer");
    const { loud } = await tapped(page);
    await page.locator("article.message.user", { hasText: "Second answer" }).waitFor({ timeout: 30_000 });
    await waitFor(() => counters.frames.some((f) => f.type === "stream_done"), "the second answer is spoken");
    const streamDone = counters.frames.find((f) => f.type === "stream_done");
    assert.equal(streamDone.samples, counters.samples - counters.atFlush[0], "all samples of the second answer arrived");
    await waitFor(async () => (await tapped(page)).silence > 24_000, "silence");
    const end = await tapped(page);
    assert.ok(end.loud - loud <= streamDone.samples + 24_000 / 4, "only the second answer was audible after the interruption");
    await waitFor(() => counters.sent.some((f) => f.type === "played" && f.samples === streamDone.samples), "the second answer was played whole");
    assert.equal(service.uploads.length, 2);
    assert.ok(service.uploads.every((u) => u.includes("RIFF")), "recordings are WAV files");
    await wantClean(page);
  });

  test("an answer is read aloud, paused, continued and stopped, one at a time", async () => {
    const page = await open(gateway);
    await ask(page, "echo The first answer has a sentence. It also has another one, which is a little longer than the first.");
    await idle(page);
    await ask(page, "echo The second answer is read as well.");
    await idle(page);
    const firstAnswer = page.locator("article.message.assistant").first();
    const pieces = [];
    page.on("response", (r) => { if (r.url().includes("/speech")) pieces.push([r.status(), r.headers()["content-type"], r.headers()["leat-speech-pieces"]]); });
    await firstAnswer.hover();
    await firstAnswer.getByRole("button", { name: "Read aloud" }).click();
    const pause = firstAnswer.getByRole("button", { name: "Pause reading" });
    await firstAnswer.locator('.reading[data-state="playing"]').waitFor();
    await accessible(page, "reading aloud");
    if (process.env.LEAT_SHOTS) await page.screenshot({ path: `${process.env.LEAT_SHOTS}/reading.png` });
    await pause.click();
    await firstAnswer.locator('.reading[data-state="paused"]').waitFor();
    await page.waitForTimeout(1000);
    await firstAnswer.getByRole("button", { name: "Continue reading" }).click();
    await firstAnswer.locator('.reading[data-state="playing"]').waitFor();
    // Another answer takes over.
    await answer(page).hover();
    await answer(page).getByRole("button", { name: "Read aloud" }).click();
    await answer(page).locator('.reading[data-state="playing"]').waitFor();
    assert.equal(await firstAnswer.locator(".reading").getAttribute("data-state"), "idle");
    await answer(page).locator('.reading[data-state="idle"]').waitFor({ timeout: 20_000 }); // its end
    await firstAnswer.getByRole("button", { name: "Read aloud" }).click();
    await firstAnswer.getByRole("button", { name: "Stop reading" }).click();
    await firstAnswer.locator('.reading[data-state="idle"]').waitFor();
    assert.ok(pieces.length >= 3 && pieces.every(([status, type]) => status === 200 && type === "audio/wav"), JSON.stringify(pieces));
    await wantClean(page);
  });

  test("without an engine, the button says so", async () => {
    const silent = await Gateway.start([], { LEAT_VOICE_SPEECH_ENGINE: "off" });
    try {
      const page = await open(silent);
      await ask(page, "echo words");
      await idle(page);
      await answer(page).hover();
      await answer(page).getByRole("button", { name: "Read aloud" }).click();
      await answer(page).getByRole("alert").getByText("No speech engine is configured at this gateway").waitFor();
      await accessible(page, "no engine");
      if (process.env.LEAT_SHOTS) await page.screenshot({ path: `${process.env.LEAT_SHOTS}/reading-none.png` });
      await composer(page).press("Alt+v");
      await panel(page).getByText("No speech engine is configured at this gateway.").waitFor();
      await wantClean(page, { console: /501/ });
    } finally {
      await silent.close();
    }
  });
}
