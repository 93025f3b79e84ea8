import { describe, expect, it } from "vitest";

import { Resampler } from "./resample";

const sine = (rate: number, frequency: number, count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => 0.5 * Math.sin((2 * Math.PI * frequency * i) / rate));

function convert(input: Float32Array, from: number, to: number, pieces: () => number): Float32Array {
  const resampler = new Resampler(from, to);
  const output: number[] = [];
  for (let at = 0; at < input.length;) {
    const n = pieces();
    output.push(...resampler.process(input.subarray(at, at + n)));
    at += n;
  }
  return Float32Array.from(output);
}

/** Returns the ratio of a signal to its difference from the output, in dB, without the filter's edges. */
function quality(output: Float32Array, reference: Float32Array): number {
  let [signal, noise] = [0, 0];
  for (let i = 100; i < output.length - 100; i++) {
    signal += reference[i]! ** 2;
    noise += (output[i]! - reference[i]!) ** 2;
  }
  return 10 * Math.log10(signal / noise);
}

describe("the resampler", () => {
  for (const [from, to] of [[48_000, 16_000], [44_100, 16_000], [24_000, 44_100], [24_000, 48_000], [22_050, 16_000], [8000, 16_000], [192_000, 16_000], [16_000, 16_000]] as const) {
    it(`converts ${from} to ${to} Hz without delay or distortion`, () => {
      const output = convert(sine(from, 1000, from), from, to, () => 128);
      expect(quality(output, sine(to, 1000, output.length))).toBeGreaterThan(70);
      // The last samples need input that hasn't come.
      expect(output.length).toBeLessThanOrEqual(to);
      expect(output.length).toBeGreaterThan(to * 0.997);
    });
  }

  it("gives the same output for any split of the input", () => {
    const input = sine(44_100, 440, 10_000);
    const reference = convert(input, 44_100, 16_000, () => input.length);
    let state = 1;
    const random = convert(input, 44_100, 16_000, () => 1 + (state = (state * 48_271) % 2_147_483_647) % 300);
    expect(random).toEqual(reference);
    expect(convert(input, 44_100, 16_000, () => 1)).toEqual(reference);
  });

  it("removes what the lower rate can't carry", () => {
    const output = convert(sine(48_000, 11_000, 48_000), 48_000, 16_000, () => 128);
    expect(Math.max(...output.subarray(200, -200).map(Math.abs))).toBeLessThan(0.5 * 10 ** (-60 / 20));
  });

  it("keeps a constant signal constant", () => {
    const output = convert(new Float32Array(5000).fill(0.25), 44_100, 16_000, () => 128);
    for (const s of output.subarray(50)) expect(s).toBeCloseTo(0.25, 4);
  });
});
