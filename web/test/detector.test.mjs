// The speech detector: the real model in the real frame, with sentences by espeak-ng as the microphone.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { accessible } from "./axe.mjs";
import { browser, closeBrowser, composer, Gateway, lacking, open, wantClean } from "./harness.mjs";
import { FakeVoice, microphone, recording, sentence } from "./voice.mjs";

const detector = fileURLToPath(new URL("../vad/dist", import.meta.url));
const reason = lacking || (existsSync("/usr/bin/espeak-ng") ? "" : "needs espeak-ng; on Debian: apt-get install espeak-ng")
  || (existsSync(detector) ? "" : "needs the speech detector; in the root of the tree: make vad");

const panel = (page) => page.getByRole("region", { name: "Voice mode" });
const state = (page, name) => panel(page).locator(`.panel[data-detector="${name}"]`).waitFor({ timeout: 30_000 });
const start = (page) => composer(page).press("Alt+v");

/**
 * Opens a page whose first microphone is silent, so that the detector loads before the file is played. play replaces it by the file.
 * utterances(n) resolves with the lengths of the first n utterances, in seconds.
 */
async function voicePage(gateway, { fake: abilities, prepare } = {}) {
  let fake;
  const page = await open(gateway, { permissions: ["microphone"], prepare: async (p) => {
    await p.addInitScript(() => {
      if (window !== top) return;
      const getUserMedia = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = (constraints) => {
        if (window.silent) return getUserMedia(constraints);
        window.silent = new AudioContext().createMediaStreamDestination().stream;
        return Promise.resolve(window.silent);
      };
    });
    fake = await FakeVoice.attach(p, { detector: true, ...abilities });
    await prepare?.(p);
  } });
  const play = async () => {
    await page.evaluate(() => window.silent.getAudioTracks()[0].dispatchEvent(new Event("ended")));
    await panel(page).getByText("The microphone was disconnected.").locator("xpath=..").getByRole("button", { name: "Try again" }).click();
  };
  const utterances = (n) => new Promise((resolve) => {
    fake.onFrame = () => {
      const stops = fake.frames.filter((f) => f.type === "stop");
      if (stops.length === n) resolve(stops.map((f, i) => (f.audio - (stops[i - 1]?.audio ?? 0)) / 16_000));
    };
  });
  return { page, fake, play, utterances };
}

if (reason) {
  test("the speech detector", { skip: reason }, () => {});
} else {
  const words = sentence("What is the weather like in Hamburg tomorrow, and do I need an umbrella?");
  const seconds = words.length / 48_000;
  let gateway;
  before(async () => {
    gateway = await Gateway.start([], { LEAT_VOICE_VAD: detector });
    await browser(microphone(recording([["silence", 1], ["noise", 3], ["silence", 2], ["samples", words], ["silence", 30]])));
  });
  after(async () => {
    await closeBrowser();
    await gateway?.close();
  });

  test("speech starts a message, and noise doesn't", async () => {
    const { page, fake, play, utterances } = await voicePage(gateway);
    await start(page);
    await state(page, "on");
    await accessible(page, "with the frame");
    const lengths = utterances(1);
    await play();
    const [length] = await lengths;
    assert.deepEqual(fake.types(), ["start", "stop"]);
    assert.ok(length > seconds && length < seconds + 1.5, `${length} s were sent of a sentence of ${seconds} s`);
    await panel(page).getByRole("button", { name: "End voice mode" }).click();
    assert.equal(await page.locator("iframe").count(), 0, "the frame is removed");
    await wantClean(page);
  });

  test("the same noise starts a message without the detector", async () => {
    const { page, play, utterances } = await voicePage(gateway, { fake: { detector: false } });
    await start(page);
    await panel(page).locator(".meter").waitFor();
    const lengths = utterances(2);
    await play();
    const [noise, length] = await lengths;
    assert.ok(noise > 1 && noise < 4.5, `${noise} s of noise`);
    assert.ok(length > seconds && length < seconds + 1.5, `${length} s of speech`);
    assert.equal(await page.locator("iframe").count(), 0);
    await wantClean(page);
  });

  test("the frame has no access to the page, and can't connect", async () => {
    const { page } = await voicePage(gateway);
    await start(page);
    await state(page, "on");
    const frame = page.frames().find((f) => f.url().endsWith("/ui/vad/detector.html"));
    const attempts = await frame.evaluate(async () => {
      const outcome = async (f) => {
        try {
          await f();
          return "done";
        } catch (err) {
          return err.name;
        }
      };
      return [origin, await outcome(() => parent.document.title), await outcome(() => document.cookie), await outcome(() => fetch("../../api/session"))];
    });
    assert.deepEqual(attempts, ["null", "SecurityError", "SecurityError", "TypeError"]);
    await wantClean(page, { console: /Content Security Policy|violates/ });
  });

  test("without its files, voice mode shows a notice and listens for loudness", async () => {
    const { page, play, utterances } = await voicePage(gateway, { prepare: (p) => p.route("**/ui/vad/model.onnx", (r) => r.fulfill({ status: 404 })) });
    await start(page);
    await state(page, "unavailable");
    await panel(page).getByText("The speech detector can’t be loaded. Voice mode detects speech by its loudness").waitFor();
    await accessible(page, "without its files");
    if (process.env.LEAT_SHOTS) await page.screenshot({ path: `${process.env.LEAT_SHOTS}/detector-unavailable.png` });
    assert.equal(await page.locator("iframe").count(), 0);
    const lengths = utterances(2);
    await play();
    await lengths;
    await page.unroute("**/ui/vad/model.onnx");
    await panel(page).getByText("The speech detector can’t be loaded.").locator("xpath=..").getByRole("button", { name: "Try again" }).click();
    await state(page, "on");
    await wantClean(page, { console: /404/ });
  });

  test("a frame that the browser blocks is reported", async () => {
    const { page } = await voicePage(gateway, { prepare: async (p) => {
      await p.clock.install();
      await p.route("**/ui/vad/detector.html", (r) => r.fulfill({ body: "<!doctype html><title>Empty</title>", contentType: "text/html" }));
    } });
    await start(page);
    await state(page, "loading");
    await page.locator("iframe").waitFor({ state: "attached" });
    await page.waitForLoadState("networkidle");
    await page.clock.fastForward(40_000);
    await state(page, "unavailable");
    await wantClean(page);
  });
}
