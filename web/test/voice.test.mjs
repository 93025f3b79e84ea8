// Voice mode over a fake of the voice socket: the microphone is a file, and the loudspeaker is tapped.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessible } from "./axe.mjs";
import { answer, ask, browser, closeBrowser, composer, Gateway, idle, lacking, open, wantClean } from "./harness.mjs";
import { FakeVoice, microphone, recording, recordPhases, tap, waitForPhase } from "./voice.mjs";

const rate = 24_000;
const panel = (page) => page.getByRole("region", { name: "Voice mode" });
const phase = (page, word) => panel(page).locator(".phase", { hasText: word }).waitFor({ timeout: 15_000 });
const start = async (page) => {
  await composer(page).locator("xpath=..").getByRole("button", { name: "Voice mode" }).click();
  if (await page.evaluate(() => window.tapped)) await page.waitForFunction(() => window.isTapped);
};
const waitFor = async (condition, label) => {
  for (let i = 0; i < 300; i++) {
    if (await condition()) return;
    await new Promise((r) => setTimeout(r, 50));
  }
  assert.fail(`never: ${label}`);
};
/** The samples with a value that the loudspeaker got. */
const countOf = (page, value) => page.evaluate((v) => window.tapped.filter(([t]) => t === v).reduce((n, [, count]) => n + count, 0), value);
/** The samples of silence at the end. */
const silence = (page) => page.evaluate(() => (window.tapped.at(-1)?.[0] === 0 ? window.tapped.at(-1)[1] : 0));

async function voicePage(gateway, { fake: abilities, tapped = false, ...options } = {}) {
  let fake;
  const page = await open(gateway, { permissions: ["microphone"], bypassCSP: tapped, ...options, prepare: async (p) => {
    if (tapped) await tap(p);
    fake = await FakeVoice.attach(p, abilities);
    await options.prepare?.(p);
  } });
  return { page, fake };
}

if (lacking) {
  test("voice mode", { skip: lacking }, () => {});
} else {
  let gateway;
  before(async () => {
    gateway = await Gateway.start();
    // Silence, an utterance, silence: the file begins when the microphone is opened.
    await browser(microphone(recording([["silence", 2], ["speech", 2], ["silence", 20]])));
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("a spoken answer reaches the loudspeaker whole, and its captions follow the sound", async () => {
    const { page, fake } = await voicePage(gateway, { tapped: true, fake: { recognition: false } });
    await start(page);
    await phase(page, "Ready");
    await panel(page).getByText("No speech recognition is configured at this gateway.").waitFor();
    assert.equal(await composer(page).evaluate((e) => e === document.activeElement), true, "the person can type");
    fake.state("thinking", "t1");
    await phase(page, "Thinking");
    fake.state("speaking", "t1");
    fake.caption("The first sentence.", 0);
    fake.play(rate, 8000);
    fake.caption("The second one.", rate);
    fake.play(rate, -8000);
    fake.finish(2 * rate);
    await phase(page, "Speaking");
    await panel(page).getByText("The first sentence.").waitFor();
    await panel(page).getByText("The second one.").waitFor();
    const atSecond = await countOf(page, 8000);
    assert.ok(atSecond >= rate - 600, `the caption came at ${atSecond} samples of the first sentence`);
    await phase(page, "Ready");
    assert.equal(await page.evaluate(() => window.tapRate), rate);
    // 5 ms fade in; everything else has its value.
    const [positive, negative] = [await countOf(page, 8000), await countOf(page, -8000)];
    assert.ok(positive >= rate - 125 && positive <= rate, `${positive} of ${rate} samples`);
    assert.equal(negative, rate);
    await waitFor(() => fake.frames.some((f) => f.type === "played" && f.samples === 2 * rate), "the end is reported as played");
    const reports = fake.frames.filter((f) => f.type === "played").map((f) => f.samples);
    assert.ok(reports.length >= 4 && reports.every((n, i) => n > (reports[i - 1] ?? 0)), `reports ${reports}`);
    await wantClean(page);
  });

  test("a flush silences the loudspeaker within 5 ms, and the next answer is whole", async () => {
    const { page, fake } = await voicePage(gateway, { tapped: true, fake: { recognition: false } });
    await start(page);
    await phase(page, "Ready");
    fake.state("speaking", "t1");
    fake.play(2 * rate, 8000);
    await waitFor(async () => await countOf(page, 8000) > rate / 2, "half a second is audible");
    fake.flush();
    fake.state("listening");
    await phase(page, "Ready");
    await waitFor(async () => await silence(page) > rate / 4, "silence");
    const played = await countOf(page, 8000);
    assert.ok(played < 1.5 * rate, `${played} samples of the old answer`);
    fake.state("speaking", "t2");
    fake.play(rate, -4000);
    await phase(page, "Speaking");
    fake.finish(rate, "t2");
    await phase(page, "Ready");
    const next = await countOf(page, -4000);
    assert.ok(next >= rate - 125 && next <= rate, `${next} samples of the next answer`);
    assert.equal(await countOf(page, 8000), played, "nothing of the old answer followed");
    // Two fades in and one out of 5 ms each, and the decay of the last sample. Everything else is whole audio or silence.
    const fading = await page.evaluate(() => window.tapped.filter(([v]) => ![0, 8000, -4000].includes(v)).reduce((n, [, count]) => n + count, 0));
    assert.ok(fading <= 3 * 120 + 150, `${fading} samples of fades`);
    await wantClean(page);
  });

  test("Stop silences the answer at once, and audio that is still on its way isn't heard", async () => {
    const { page, fake } = await voicePage(gateway, { tapped: true, fake: { recognition: false } });
    await start(page);
    await phase(page, "Ready");
    fake.state("speaking", "t1");
    fake.play(2 * rate, 8000);
    await waitFor(async () => await countOf(page, 8000) > rate / 2, "half a second is audible");
    await panel(page).getByRole("button", { name: "Stop speaking" }).click();
    await waitFor(() => fake.types().includes("interrupt"), "the interrupt is sent");
    fake.play(rate, 8000); // the gateway hasn't stopped yet
    await waitFor(async () => await silence(page) > rate / 4, "silence");
    const interrupt = fake.frames.find((f) => f.type === "interrupt");
    const played = await countOf(page, 8000);
    assert.ok(Math.abs(interrupt.played - played) < rate / 5, `it reports ${interrupt.played} samples, and ${played} were played`);
    assert.equal(interrupt.generation, 1);
    fake.flush();
    fake.state("listening");
    await phase(page, "Ready");
    assert.equal(await countOf(page, 8000), played);
    await wantClean(page);
  });

  test("an utterance is sent whole, and interrupts the answer", async () => {
    const { page, fake } = await voicePage(gateway, { tapped: true, prepare: recordPhases });
    await start(page);
    await phase(page, "Listening");
    fake.state("speaking", "t1");
    fake.caption("A long answer.", 0);
    fake.play(30 * rate, 8000);
    await waitFor(() => fake.types().includes("start"), "the person is heard");
    assert.deepEqual(fake.types().slice(0, 2), ["interrupt", "start"]);
    fake.flush();
    fake.state("listening");
    await waitForPhase(page, "Hearing you");
    await waitFor(() => fake.types().includes("stop"), "the utterance ends");
    await phase(page, "Transcribing");
    // Two seconds of speech, its first sound, and the silence after it: at 16 kHz.
    const samples = fake.frames.find((f) => f.type === "stop").audio;
    assert.ok(samples > 2.2 * 16_000 && samples < 3.4 * 16_000, `${samples / 16_000} s of audio`);
    assert.equal(samples % 320, 0, "whole frames");
    fake.send({ type: "transcript", text: "What is the time?", final: true });
    await panel(page).getByText("What is the time?").waitFor();
    await waitFor(async () => await silence(page) > rate / 4, "silence");
    assert.deepEqual(fake.types(), ["interrupt", "start", "stop"]);
    await wantClean(page);
  });

  test("push to talk sends audio while the button or the space bar is held", async () => {
    const { page, fake } = await voicePage(gateway);
    await start(page);
    await phase(page, "Listening");
    await panel(page).getByText("Push to talk").click();
    await phase(page, "Ready");
    const button = panel(page).getByRole("button", { name: "Hold to talk" });
    await button.hover();
    await page.mouse.down();
    await phase(page, "Hearing you");
    await waitFor(() => fake.audio > 16_000 / 2, "half a second");
    await page.mouse.up();
    await waitFor(() => fake.types().length === 2, "the end");
    assert.deepEqual(fake.types(), ["start", "stop"]);
    // The space bar does the same when no text field has the focus.
    await panel(page).locator(".panel").focus();
    await page.keyboard.down(" ");
    await waitFor(() => fake.types().length === 3, "the space bar");
    const before = fake.audio;
    await waitFor(() => fake.audio > before + 16_000 / 2, "half a second");
    await page.keyboard.up(" ");
    await waitFor(() => fake.types().length === 4, "its end");
    await composer(page).focus();
    await page.keyboard.type("a b");
    assert.equal(await composer(page).inputValue(), "a b");
    assert.deepEqual(fake.types(), ["start", "stop", "start", "stop"]);
    // The mode is remembered.
    await page.reload();
    await start(page);
    await phase(page, "Ready");
    assert.equal(await panel(page).getByRole("radio", { name: "Push to talk" }).isChecked(), true);
    await wantClean(page);
  });

  test("mute sends nothing, and voice mode ends and begins with a key", async () => {
    const { page, fake } = await voicePage(gateway);
    await composer(page).press("Alt+v");
    await phase(page, "Listening");
    await panel(page).getByRole("button", { name: "Mute microphone" }).click();
    await phase(page, "Muted");
    await page.waitForTimeout(3500); // the file's speech passes
    assert.deepEqual(fake.types(), []);
    assert.equal(fake.audio, 0);
    await page.keyboard.press("Alt+v");
    await panel(page).waitFor({ state: "detached" });
    assert.equal(await composer(page).evaluate((e) => e === document.activeElement), true);
    await wantClean(page);
  });

  test("a lost connection resumes where the audio ended", async () => {
    const { page, fake } = await voicePage(gateway, { tapped: true, fake: { recognition: false } });
    await start(page);
    await phase(page, "Ready");
    fake.state("speaking", "t1");
    fake.caption("The first sentence.", 0);
    fake.play(rate, 8000);
    await phase(page, "Speaking");
    fake.socket.close({ code: 1012 });
    await waitFor(() => fake.connections === 2, "it reconnects");
    assert.equal(decodeURIComponent(fake.queries[1]), `?after=t1:0:${rate}`);
    fake.state("speaking", "t1");
    fake.play(rate, 8000);
    await phase(page, "Speaking");
    fake.finish(rate);
    await phase(page, "Ready");
    const samples = await countOf(page, 8000);
    assert.ok(samples > 2 * rate - 400 && samples <= 2 * rate, `${samples} samples`);
    await wantClean(page);
  });

  test("a typed message silences the answer, and the text of answers stays in the log", async () => {
    const { page, fake } = await voicePage(gateway, { fake: { recognition: false } });
    await start(page);
    await phase(page, "Ready");
    await ask(page, "echo first words");
    await idle(page);
    fake.state("speaking", "t1");
    fake.play(10 * rate, 8000);
    await phase(page, "Speaking");
    await ask(page, "echo other words");
    await waitFor(() => fake.types().includes("interrupt"), "the interrupt");
    fake.flush();
    fake.state("listening");
    await idle(page);
    assert.match(await answer(page).innerText(), /other words/);
    await wantClean(page);
  });

  const problems = {
    "no permission": { script: () => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError")); }, want: /may not use the microphone.*site settings/ },
    "no device": { script: () => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotFoundError")); }, want: /No microphone found/ },
    "a device in use": { script: () => { navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotReadableError")); }, want: /can’t be opened.*other programs/ },
    "an insecure connection": { script: () => { Object.defineProperty(window, "isSecureContext", { value: false }); }, want: /secure connection.*HTTPS/ },
    "no engine": { fake: { speech: false }, want: /No speech engine is configured/ },
    "neither engine nor recogniser": { fake: { speech: false, recognition: false }, want: /No speech recognition is configured at this gateway. Type your messages\./ },
  };
  for (const [name, { script, fake: abilities, want }] of Object.entries(problems)) {
    test(`a clear message and a usable page with ${name}`, async () => {
      const { page } = await voicePage(gateway, { ...(abilities && { fake: abilities }), ...(script && { prepare: (p) => p.addInitScript(script) }) });
      await start(page);
      await panel(page).getByText(want).waitFor();
      await accessible(page, name);
      await ask(page, "echo typed words");
      await idle(page);
      assert.match(await answer(page).innerText(), /typed words/);
      await wantClean(page);
    });
  }

  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of [[1280, 800], [360, 740]]) {
      test(`accessible and in its place: ${colorScheme}, ${width} px wide`, async () => {
        const { page, fake } = await voicePage(gateway, { colorScheme, viewport: { width, height }, hasTouch: width < 400 });
        const shot = (name) => process.env.LEAT_SHOTS && page.screenshot({ path: `${process.env.LEAT_SHOTS}/voice-${name}-${colorScheme}-${width}.png` });
        const fits = async (label) => {
          await accessible(page, label);
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${label}: not wider than the window`);
          await shot(label);
        };
        await composer(page).fill("echo Hamburg has 1.9 million people, and the port is the third largest of Europe.");
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await idle(page);
        await start(page);
        await phase(page, "Listening");
        await fits("listening");
        await waitFor(() => fake.types().includes("start"), "an utterance");
        fake.send({ type: "transcript", text: "And how many people live in", final: false });
        await panel(page).getByText("And how many people").waitFor();
        await fits("hearing");
        fake.state("thinking", "t1");
        await waitFor(() => fake.types().includes("stop"), "its end");
        fake.state("speaking", "t1");
        fake.caption("About 3.8 million people live in Berlin, twice as many as in Hamburg.", 0);
        fake.play(20 * rate, 4000);
        await phase(page, "Speaking");
        await panel(page).getByText("About 3.8 million").waitFor();
        await fits("speaking");
        await panel(page).getByText("Push to talk").click();
        await panel(page).getByRole("button", { name: "Hold to talk" }).waitFor();
        fake.send({ type: "error", code: "speech_failed", message: "A sentence couldn’t be spoken.", action: "Read it in the log." });
        await panel(page).getByText("A sentence couldn’t be spoken.").waitFor();
        await fits("push");
        await wantClean(page);
      });
    }
  }
}
