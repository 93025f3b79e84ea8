import { expect, it } from "vitest";

import { decibels, encode, type Frame, Framer, frameSize } from "./frames";
import { decode } from "./playout";

it("splits audio into frames of 20 ms, however it arrives", () => {
  const input = Float32Array.from({ length: 3333 }, (_, i) => Math.sin(i / 9) / 2);
  for (const size of [1, 42, 128, 5000]) {
    const framer = new Framer();
    const frames: Frame[] = [];
    for (let at = 0; at < input.length; at += size) framer.push(input.subarray(at, at + size), (f) => frames.push(f));
    expect(frames.length).toBe(Math.floor(input.length / frameSize));
    expect(frames.every((f) => f.pcm.byteLength === 640)).toBe(true);
    const output = frames.flatMap((f) => [...decode(f.pcm)]);
    output.forEach((s, i) => expect(s).toBeCloseTo(input[i]!, 4));
  }
});

it("clips instead of wrapping around", () => {
  expect([...new Int16Array(encode(Float32Array.of(1.5, -1.5, 1, -1, 0)))]).toEqual([32767, -32768, 32767, -32768, 0]);
});

it("measures levels in dB below full scale", () => {
  expect(decibels(new Float32Array(320))).toBe(-100);
  expect(decibels(new Float32Array(320).fill(0.1))).toBeCloseTo(-20, 3);
  expect(decibels(new Float32Array(320).fill(2))).toBe(0);
});
