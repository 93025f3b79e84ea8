// A fake of the gateway's voice socket, a microphone made of a WAV file, and a tap at the loudspeaker.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The arguments of a browser whose microphone is a WAV file. */
export const microphone = (file) => ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${file}%noloop`, "--autoplay-policy=no-user-gesture-required"];

const rate = 48_000;

/** Returns the samples of a sentence at 48 kHz, by espeak-ng. */
export function sentence(text) {
  const wav = execFileSync("espeak-ng", ["-v", "en-us", "--stdout", text], { maxBuffer: 10_000_000 });
  const step = wav.readUInt32LE(24) / rate;
  const sample = (i) => wav.readInt16LE(44 + 2 * i) / 0x8000;
  return Array.from({ length: Math.floor(((wav.length - 44) / 2 - 1) / step) }, (_, i) => {
    const at = Math.floor(i * step);
    return sample(at) + (i * step - at) * (sample(at + 1) - sample(at));
  });
}

/**
 * Writes a WAV file, 48 kHz mono: [["silence", seconds], ["speech", seconds], ["noise", seconds], ["samples", samples]]. The speech is
 * synthetic syllables, and the noise is that of a machine that is on for 0.4 s and off for 0.4 s.
 */
export function recording(stretches) {
  const samples = [];
  for (const [kind, seconds] of stretches) {
    if (kind === "samples") {
      for (const s of seconds) samples.push(s);
      continue;
    }
    for (let i = 0; i < seconds * rate; i++) {
      const t = i / rate;
      // Syllables of a voice: harmonics of a pitch that moves, with formants, four times a second.
      const syllable = Math.max(0, Math.sin(2 * Math.PI * 4 * t)) ** 0.5;
      const pitch = 120 + 30 * Math.sin(2 * Math.PI * 1.3 * t);
      let s = 0;
      for (let h = 1; h <= 20; h++) s += Math.sin(2 * Math.PI * pitch * h * t) / (1 + Math.abs(h * pitch - 600 - 300 * Math.sin(7 * t)) / 200);
      const noise = Math.random() - 0.5;
      if (kind === "noise") samples.push(t % 0.8 < 0.4 ? 0.6 * noise : 0);
      else samples.push(kind === "speech" ? 0.09 * syllable * s : 0.0005 * noise);
    }
  }
  const wav = Buffer.alloc(44 + samples.length * 2);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.set([1, 0, 1, 0], 20);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate * 2, 28);
  wav.set([2, 0, 16, 0], 32);
  wav.write("data", 36);
  wav.writeUInt32LE(samples.length * 2, 40);
  samples.forEach((s, i) => wav.writeInt16LE(Math.round(Math.max(-1, Math.min(1, s)) * 32767), 44 + i * 2));
  const folder = mkdtempSync(join(tmpdir(), "leat-voice-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "microphone.wav");
  writeFileSync(file, wav);
  return file;
}

/** Returns PCM of a constant value, which is easy to find in what the loudspeaker gets. */
export function pcm(samples, value) {
  const b = Buffer.alloc(samples * 2);
  for (let i = 0; i < samples; i++) b.writeInt16LE(value, i * 2);
  return b;
}

/** The voice socket of a page. */
export class FakeVoice {
  frames = []; // text frames of the page
  audio = 0; // samples of the page
  connections = 0;
  generation = 1;
  queries = [];

  /** Answers the voice sockets of a page from now on. */
  static async attach(page, { speech = true, recognition = true, detector = false } = {}) {
    const fake = new FakeVoice();
    await page.routeWebSocket(/\/api\/conversations\/[^/]+\/voice/, (ws) => {
      fake.socket = ws;
      fake.connections++;
      fake.queries.push(new URL(ws.url()).search);
      ws.onMessage((data) => fake.take(data));
      fake.send({ type: "ready", generation: fake.generation, speech, recognition, vad: "client", detector });
    });
    return fake;
  }

  take(data) {
    if (typeof data !== "string") {
      this.audio += data.length / 2;
      return;
    }
    const frame = JSON.parse(data);
    this.frames.push({ ...frame, audio: this.audio });
    if (frame.type === "ping") this.send({ type: "pong" });
    this.onFrame?.(frame);
  }

  send(frame) {
    this.socket.send(JSON.stringify(frame));
  }

  state(state, turn) {
    this.send({ type: "state", state, generation: this.generation, ...(turn && { turn }) });
  }

  caption(text, sample, turn = "t1") {
    this.send({ type: "caption", turn, start: 0, end: text.length, sample, generation: this.generation, text });
  }

  /** Sends audio in frames of 40 ms, without a pause. */
  play(samples, value) {
    for (let at = 0; at < samples; at += 960) this.socket.send(pcm(Math.min(960, samples - at), value));
  }

  flush() {
    this.generation++;
    this.socket.send(Buffer.of(0));
  }

  finish(samples, turn = "t1") {
    this.send({ type: "stream_done", turn, generation: this.generation, samples });
    this.state("listening");
  }

  types() {
    return this.frames.map((f) => f.type).filter((t) => t !== "played" && t !== "ping");
  }
}

/** Stores the phases that voice mode shows on a page in window.phases. Some last for a second only. */
export async function recordPhases(page) {
  await page.addInitScript(() => {
    window.phases = [];
    new MutationObserver(() => {
      const phase = document.querySelector(".phase")?.textContent;
      if (phase && phase !== window.phases.at(-1)) window.phases.push(phase);
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
}

/** Waits until voice mode has shown a phase, or shows it. */
export const waitForPhase = (page, word) => page.waitForFunction((w) => window.phases.some((p) => p.includes(w)), word, { timeout: 20_000 });

// The processor of the tap. It counts equal samples, so that seconds of audio are few messages.
const tapProcessor = `
class Tap extends AudioWorkletProcessor {
  process([[samples]]) {
    if (!samples) return true;
    const runs = [];
    for (const s of samples) {
      const value = Math.round(s * 32768);
      if (runs.at(-1)?.[0] === value) runs.at(-1)[1]++;
      else runs.push([value, 1]);
    }
    this.port.postMessage(runs);
    return true;
  }
}
registerProcessor("tap", Tap);`;

/**
 * Copies what a page sends to its loudspeaker into window.tapped: pairs of a 16-bit value and the number of samples that have it.
 * window.isTapped is true when all later samples are copied. The page's policy forbids the tap, so its context needs bypassCSP.
 */
export async function tap(page) {
  await page.addInitScript((processor) => {
    window.tapped = [];
    const { connect } = AudioNode.prototype;
    AudioNode.prototype.connect = function (target, ...args) {
      if (target === this.context.destination && this instanceof AudioWorkletNode && this.numberOfInputs === 0) {
        window.tapRate = this.context.sampleRate;
        void this.context.audioWorklet.addModule(`data:text/javascript,${encodeURIComponent(processor)}`).then(() => {
          const node = new AudioWorkletNode(this.context, "tap");
          node.port.onmessage = ({ data }) => {
            window.isTapped = true;
            for (const [value, count] of data) {
              if (window.tapped.at(-1)?.[0] === value) window.tapped.at(-1)[1] += count;
              else window.tapped.push([value, count]);
            }
          };
          connect.call(this, node);
          connect.call(node, target);
        });
      }
      return connect.call(this, target, ...args);
    };
  }, tapProcessor);
}
