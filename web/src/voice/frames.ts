// Splits the microphone's audio into the frames of the wire.

/** The rate of the microphone's audio in Hz, and the samples of one frame: 20 ms. */
export const microphoneRate = 16_000;
export const frameSize = 320;

/** 20 ms of the microphone. */
export interface Frame {
  pcm: ArrayBuffer; // signed 16-bit samples, little-endian
  level: number; // dB below full scale, from -100 to 0
}

/** Collects samples into frames. */
export class Framer {
  private readonly samples = new Float32Array(frameSize);
  private size = 0;

  /** Adds samples, and calls emit for each frame that they complete. */
  push(input: Float32Array, emit: (frame: Frame) => void): void {
    for (let at = 0; at < input.length;) {
      const n = Math.min(input.length - at, frameSize - this.size);
      this.samples.set(input.subarray(at, at + n), this.size);
      this.size += n;
      at += n;
      if (this.size < frameSize) return;
      this.size = 0;
      emit({ pcm: encode(this.samples), level: decibels(this.samples) });
    }
  }
}

/** Converts floats to signed 16-bit samples, little-endian. Samples beyond full scale are clipped. */
export function encode(samples: Float32Array): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((s, i) => view.setInt16(i * 2, Math.max(-0x8000, Math.min(0x7fff, Math.round(s * 0x8000))), true));
  return view.buffer;
}

/** Returns the level of samples in dB below full scale. */
export function decibels(samples: Float32Array): number {
  let energy = 0;
  for (const s of samples) energy += s * s;
  return Math.max(-100, Math.min(0, 10 * Math.log10(energy / samples.length + 1e-12)));
}
