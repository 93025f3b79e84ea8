// The processor that plays speech. It runs in the browser's audio thread.

import { decode, Playout, speechRate } from "./playout";
import { Resampler } from "./resample";
import type { PlaybackCommand, PlaybackReport, WorkletScope } from "./worklet";

const { sampleRate, AudioWorkletProcessor, registerProcessor } = globalThis as unknown as WorkletScope;

/** How often the page learns the position: every 40 ms. */
const interval = Math.round(sampleRate / 25);

class Playback extends AudioWorkletProcessor {
  private readonly playout = new Playout();
  private readonly resampler = new Resampler(speechRate, sampleRate); // for browsers that ignore the requested rate
  private readonly block = new Float32Array(64);
  private pending: Float32Array = new Float32Array(0); // resampled audio
  private isRunning = true;
  private drops = 0;
  private elapsed = 0; // since the last report, in samples
  private report: PlaybackReport = { played: 0, state: "idle", drops: 0 };

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.handle(data as PlaybackCommand);
  }

  process(_: Float32Array[][], [channels = []]: Float32Array[][]): boolean {
    const [channel, ...additional] = channels;
    if (!channel) return this.isRunning;
    this.render(channel);
    for (const a of additional) a.set(channel);
    this.elapsed += channel.length;
    this.tell(this.elapsed >= interval);
    return this.isRunning;
  }

  private handle(command: PlaybackCommand): void {
    switch (command.type) {
      case "push":
        this.playout.push(decode(command.pcm));
        return;
      case "complete":
        this.playout.complete();
        return;
      case "interrupt":
        this.playout.interrupt();
        break;
      case "flush":
      case "reset":
        this.drops++;
        this.playout[command.type]();
        break;
      case "end":
        this.isRunning = false;
    }
    this.tell(true);
  }

  private render(output: Float32Array): void {
    if (sampleRate === speechRate) {
      this.playout.render(output);
      return;
    }
    for (let at = 0; at < output.length;) {
      if (this.pending.length === 0) {
        this.playout.render(this.block);
        this.pending = this.resampler.process(this.block);
      }
      const n = Math.min(this.pending.length, output.length - at);
      output.set(this.pending.subarray(0, n), at);
      this.pending = this.pending.subarray(n);
      at += n;
    }
  }

  // tell reports a new state at once, and a new position now and then.
  private tell(isDue: boolean): void {
    const { played, state } = this.playout;
    const { report: before, drops } = this;
    if (state === before.state && drops === before.drops && (!isDue || played === before.played)) return;
    this.elapsed = 0;
    this.report = { played, state, drops };
    this.port.postMessage(this.report);
  }
}

registerProcessor("leat-playback", Playback);
