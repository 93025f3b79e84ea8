// The queue between the gateway's audio and the loudspeaker: it hides the jitter of the network and stops without a click.

import { Ring } from "./ring";

/** The rate of the gateway's speech in Hz. */
export const speechRate = 24_000;

const ms = (n: number): number => (n * speechRate) / 1000;

/** Playback starts when the queue has this much, so that short delays of the network can't be heard. Each underrun adds a step. */
const firstTarget = ms(80);
const targetStep = ms(35);
const maxTarget = ms(150);
/** The longest wait for a full prebuffer. Audio shorter than the prebuffer would wait forever otherwise. */
const maxWait = ms(150);
/** The length of the fade where audio stops or starts in the middle of a wave. */
const fade = ms(5);
/** The gateway sends at most 2 s ahead. Above this limit audio is dropped. */
const limit = ms(60_000);

/** What a playout does: nothing is queued, it waits for its prebuffer, or it plays. */
export type PlayoutState = "idle" | "buffering" | "playing";

/** Plays queued speech, at the rate of the gateway. It knows nothing of the browser, so that it can be tested in virtual time. */
export class Playout {
  /** The samples that were played since the last flush or reset. Silence doesn't count, nor does audio that was faded out or dropped. */
  played = 0;
  /** How often the queue ran empty before the end of the audio. */
  underruns = 0;
  /** The samples that were dropped because the queue was full. */
  overflow = 0;
  state: PlayoutState = "idle";

  private readonly queue = new Ring(ms(4000), limit);
  private target = firstTarget;
  private isComplete = false; // the queue has the end of the audio, so playing it doesn't wait for a prebuffer
  private isDiscarding = false; // the audio of an interrupted answer is still arriving
  private patience = 0; // the samples that queued audio has waited for more
  private tail = new Float32Array(0); // the fade-out of audio that was stopped
  private rise = fade; // the samples of the fade-in that were played
  private last = 0; // the last sample that was written

  /** The queued samples. */
  get queued(): number {
    return this.queue.length;
  }

  /** Queues audio. */
  push(samples: Float32Array): void {
    if (this.isDiscarding || samples.length === 0) return;
    if (this.state === "idle") this.buffer();
    this.isComplete = false;
    this.overflow += samples.length - this.queue.write(samples);
  }

  /** Reports that the queued audio is complete. Its end is not an underrun. */
  complete(): void {
    this.isComplete = true;
    if (this.queue.length === 0) this.state = "idle";
  }

  /** Stops the audio because the person interrupts it, and discards what arrives until the gateway has flushed it as well. */
  interrupt(): void {
    this.stop();
    this.isDiscarding = true;
  }

  /** Handles the gateway's flush: audio before it is stale, audio after it belongs to the next answer. */
  flush(): void {
    if (!this.isDiscarding) this.stop();
    this.isDiscarding = false;
    this.played = 0;
  }

  /** Prepares for another connection, which doesn't answer an interrupt of the last one. */
  reset(): void {
    this.stop();
    this.isDiscarding = false;
    this.played = 0;
  }

  /** Writes the next samples, with silence where there is no audio. */
  render(output: Float32Array): void {
    output.fill(0);
    const faded = Math.min(this.tail.length, output.length);
    if (faded > 0) {
      output.set(this.tail.subarray(0, faded));
      this.tail = this.tail.subarray(faded);
      this.last = output[faded - 1]!;
    }
    this.renderQueue(output.subarray(faded));
  }

  private renderQueue(output: Float32Array): void {
    if (this.state === "buffering" && this.queue.length > 0) {
      this.patience += output.length;
      if (this.queue.length >= this.target || this.isComplete || this.patience > maxWait) this.state = "playing";
    }
    const n = this.state === "playing" ? this.queue.read(output) : 0;
    for (let i = 0; i < n && this.rise < fade; i++, this.rise++) output[i]! *= this.rise / fade;
    this.played += n;
    if (n > 0) this.last = output[n - 1]!;
    this.decay(output.subarray(n));
    if (this.state === "playing" && this.queue.length === 0) this.drain(n < output.length);
  }

  // drain handles an empty queue. Only a gap in the middle of the audio is an underrun.
  private drain(isGap: boolean): void {
    if (this.isComplete) {
      this.state = "idle";
    } else if (isGap) {
      this.underruns++;
      this.target = Math.min(maxTarget, this.target + targetStep);
      this.buffer();
    }
  }

  private buffer(): void {
    this.state = "buffering";
    this.patience = 0;
    this.rise = 0;
  }

  private stop(): void {
    if (this.state === "playing") {
      const tail = new Float32Array(Math.min(fade, this.queue.length));
      this.queue.read(tail);
      for (let i = 0; i < tail.length; i++) tail[i]! *= 1 - (i + 1) / (tail.length + 1);
      this.tail = tail;
    }
    this.queue.truncate(0);
    this.isComplete = false;
    this.state = "idle";
  }

  // decay leads the last sample to zero, so that audio that ends in the middle of a wave doesn't click.
  private decay(output: Float32Array): void {
    for (let i = 0; i < output.length && this.last !== 0; i++) {
      this.last = Math.abs(this.last) < 1e-4 ? 0 : this.last * 0.93;
      output[i] = this.last;
    }
  }
}

/** Converts signed 16-bit samples, little-endian, to floats. */
export function decode(bytes: ArrayBuffer): Float32Array {
  const view = new DataView(bytes);
  const samples = new Float32Array(bytes.byteLength >> 1);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(2 * i, true) / 0x8000;
  return samples;
}
