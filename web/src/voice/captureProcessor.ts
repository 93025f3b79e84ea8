// The processor that reads the microphone. It runs in the browser's audio thread.

import { Framer, microphoneRate } from "./frames";
import { Resampler } from "./resample";
import type { WorkletScope } from "./worklet";

const { sampleRate, AudioWorkletProcessor, registerProcessor } = globalThis as unknown as WorkletScope;

class Capture extends AudioWorkletProcessor {
  private readonly resampler = new Resampler(sampleRate, microphoneRate);
  private readonly framer = new Framer();
  private mono = new Float32Array(128);
  private isRunning = true;

  constructor() {
    super();
    this.port.onmessage = () => { this.isRunning = false; };
  }

  process([channels = []]: Float32Array[][]): boolean {
    const [channel, ...additional] = channels;
    if (!channel) return this.isRunning; // the microphone isn't connected yet
    if (this.mono.length !== channel.length) this.mono = new Float32Array(channel.length);
    this.mono.set(channel);
    for (const a of additional) for (let i = 0; i < a.length; i++) this.mono[i]! += a[i]!;
    if (additional.length > 0) for (let i = 0; i < this.mono.length; i++) this.mono[i]! /= channels.length;
    this.framer.push(this.resampler.process(this.mono), (frame) => this.port.postMessage(frame, [frame.pcm]));
    return this.isRunning;
  }
}

registerProcessor("leat-capture", Capture);
