// The names of the browser's audio thread, which TypeScript's library for pages lacks, and the messages of the playback processor.

import type { PlayerReport } from "./session";

interface Processor { readonly port: MessagePort }

export interface WorkletScope {
  readonly sampleRate: number;
  readonly AudioWorkletProcessor: new () => Processor;
  registerProcessor: (name: string, processor: new () => Processor) => void;
}

/** A message to the playback processor. end: the page needs it no longer. */
export type PlaybackCommand = { type: "push"; pcm: ArrayBuffer } | { type: "complete" | "interrupt" | "flush" | "reset" | "end" };

/** A message of the playback processor. drops is the number of times that it has dropped its queue and restarted its count. */
export interface PlaybackReport extends PlayerReport { drops: number }
