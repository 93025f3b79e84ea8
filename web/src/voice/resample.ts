// A streaming resampler: a polyphase filter with a sinc under a Kaiser window.

/** The zero crossings of the sinc on each side, at the lower of both rates. More give a steeper filter and more delay. */
const lobes = 16;
/** The passband's end as a part of the lower rate's Nyquist frequency. The filter needs the rest for its slope. */
const passband = 0.92;
/** The shape of the Kaiser window: side lobes are below -80 dB. */
const beta = 8;

/** Converts audio from one sample rate to another. The result doesn't depend on how the input is split. */
export class Resampler {
  private readonly phases: number; // output samples per period
  private readonly step: number; // input samples per period
  private readonly taps: number;
  private readonly table: Float32Array; // the taps of each phase
  private buffer: Float32Array; // input that later outputs need
  private size: number;
  private phase = 0; // the position of the next output behind the buffer's first sample, in 1/phases samples
  private output = new Float32Array(0);

  constructor(from: number, to: number) {
    const divisor = gcd(from, to);
    this.phases = to / divisor;
    this.step = from / divisor;
    const scale = Math.min(1, to / from);
    const half = Math.ceil(lobes / scale);
    this.taps = 2 * half;
    this.table = design(this.phases, half, scale * passband);
    this.buffer = new Float32Array(this.taps * 4);
    this.size = half - 1; // silence before the first sample, so that the output isn't delayed
  }

  /** Returns the output that the input completes. The array is valid until the next call. */
  process(input: Float32Array): Float32Array {
    if (this.phases === this.step) return input;
    this.append(input);
    const { phases, step, taps, table, buffer } = this;
    const count = Math.max(0, Math.ceil(((this.size - taps + 1) * phases - this.phase) / step));
    if (this.output.length < count) this.output = new Float32Array(count);
    let { phase } = this;
    let start = 0;
    for (let n = 0; n < count; n++) {
      let sum = 0;
      for (let j = 0, k = phase * taps; j < taps; j++, k++) sum += buffer[start + j]! * table[k]!;
      this.output[n] = sum;
      phase += step;
      start += Math.floor(phase / phases);
      phase %= phases;
    }
    // At a low output rate the next position can be beyond the buffer. Then the phase carries the distance.
    const consumed = Math.min(start, this.size);
    buffer.copyWithin(0, consumed, this.size);
    this.size -= consumed;
    this.phase = phase + (start - consumed) * phases;
    return this.output.subarray(0, count);
  }

  private append(input: Float32Array): void {
    const size = this.size + input.length;
    if (size > this.buffer.length) {
      const larger = new Float32Array(size * 2);
      larger.set(this.buffer.subarray(0, this.size));
      this.buffer = larger;
    }
    this.buffer.set(input, this.size);
    this.size = size;
  }
}

/** Computes the taps of all phases. Each phase has a gain of 1 for a constant signal. */
function design(phases: number, half: number, cutoff: number): Float32Array {
  const taps = 2 * half;
  const table = new Float32Array(phases * taps);
  for (let p = 0; p < phases; p++) {
    const row = table.subarray(p * taps, (p + 1) * taps);
    let sum = 0;
    for (let j = 0; j < taps; j++) {
      const d = j - (half - 1) - p / phases;
      row[j] = sinc(cutoff * d) * kaiser(d / half);
      sum += row[j]!;
    }
    for (let j = 0; j < taps; j++) row[j]! /= sum;
  }
  return table;
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
const kaiser = (x: number): number => (Math.abs(x) >= 1 ? 0 : bessel(beta * Math.sqrt(1 - x * x)) / bessel(beta));

/** The modified Bessel function of the first kind, of order 0. */
function bessel(x: number): number {
  let sum = 1;
  for (let k = 1, term = 1; term > sum * 1e-12; k++) sum += term *= (x / (2 * k)) ** 2;
  return sum;
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
