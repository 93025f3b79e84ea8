import { describe, expect, it } from "vitest";

import { decode, Playout } from "./playout";
import { Ring } from "./ring";

/** Samples with a value that identifies them, well below full scale. */
const ramp = (from: number, count: number): Float32Array => Float32Array.from({ length: count }, (_, i) => 0.1 + ((from + i) % 10_000) / 20_000);

function render(playout: Playout, count: number, quantum = 128): Float32Array {
  const output = new Float32Array(count);
  for (let at = 0; at < count; at += quantum) playout.render(output.subarray(at, Math.min(count, at + quantum)));
  return output;
}

const ms = (n: number) => n * 24;
const loud = (output: Float32Array) => output.filter((s) => s > 0.09).length;
const steepest = (output: Float32Array) => output.slice(1).reduce((max, s, i) => Math.max(max, Math.abs(s - output[i]!)), 0);

describe("playout", () => {
  it("waits for its prebuffer, and then plays every sample once and in order", () => {
    const p = new Playout();
    p.push(ramp(0, ms(40)));
    expect(loud(render(p, ms(20)))).toBe(0);
    p.push(ramp(ms(40), ms(60)));
    p.complete();
    const output = render(p, ms(120));
    // The first 5 ms fade in, so they are compared by their neighbours.
    expect([...output.subarray(ms(5), ms(100))]).toEqual([...ramp(0, ms(100)).subarray(ms(5))]);
    expect(p.played).toBe(ms(100));
    expect(p.state).toBe("idle");
    expect(p.underruns).toBe(0);
  });

  it("plays audio that is shorter than the prebuffer, at once if it is complete and else after a moment", () => {
    const complete = new Playout();
    complete.push(ramp(0, ms(10)));
    complete.complete();
    render(complete, ms(20));
    expect(complete.played).toBe(ms(10));

    const open = new Playout();
    open.push(ramp(0, ms(10)));
    render(open, ms(140));
    expect(open.played).toBe(0);
    render(open, ms(40));
    expect(open.played).toBe(ms(10));
  });

  it("buffers again after an underrun, a little longer, however late the audio comes", () => {
    const p = new Playout();
    p.push(ramp(0, ms(100)));
    render(p, ms(1000));
    expect([p.played, p.underruns, p.state]).toEqual([ms(100), 1, "buffering"]);
    p.push(ramp(0, ms(90)));
    render(p, ms(20));
    expect(p.played).toBe(ms(100));
    p.push(ramp(0, ms(30)));
    render(p, ms(20));
    expect(p.played).toBe(ms(120));
  });

  it("doesn't take the end of an answer for an underrun, also if it is known late", () => {
    const p = new Playout();
    p.push(ramp(0, ms(100)));
    render(p, ms(200));
    p.complete();
    expect(p.state).toBe("idle");
  });

  it("stops within 5 ms without a click, and then is silent", () => {
    const p = new Playout();
    p.push(new Float32Array(ms(1000)).fill(0.8));
    render(p, ms(500));
    p.flush();
    const output = render(p, ms(100));
    expect(steepest(output)).toBeLessThan(0.06);
    expect(output.subarray(ms(10)).every((s) => s === 0)).toBe(true);
    expect([p.played, p.queued, p.state]).toEqual([0, 0, "idle"]);
  });

  it("discards the audio of an interrupted answer until its flush, and plays what follows", () => {
    const p = new Playout();
    p.push(ramp(0, ms(500)));
    render(p, ms(100));
    p.interrupt();
    const { played } = p;
    p.push(ramp(0, ms(200)));
    p.complete();
    expect(loud(render(p, ms(300)).subarray(ms(5)))).toBe(0);
    expect(p.played).toBe(played);
    p.flush();
    p.push(ramp(0, ms(100)));
    p.complete();
    render(p, ms(200));
    expect(p.played).toBe(ms(100));
  });

  it("lets the next answer begin while the last one still fades out", () => {
    const p = new Playout();
    p.push(ramp(0, ms(500)));
    render(p, ms(100));
    p.flush();
    p.push(ramp(0, ms(100)));
    p.complete();
    render(p, ms(200));
    expect(p.played).toBe(ms(100));
  });

  it("forgets an interrupt whose connection is gone", () => {
    const p = new Playout();
    p.interrupt();
    p.reset();
    p.push(ramp(0, ms(100)));
    render(p, ms(50));
    expect(p.played).toBeGreaterThan(0);
  });

  it("never plays old audio after a flush, in a thousand random interruptions", () => {
    let state = 7;
    const random = (n: number) => (state = (state * 48_271) % 2_147_483_647) % n;
    const p = new Playout();
    const [old, recent] = [0.25, -0.75];
    for (let i = 0; i < 1000; i++) {
      p.push(new Float32Array(1 + random(6000)).fill(old));
      render(p, random(5000));
      if (random(2) === 0) {
        p.interrupt();
        render(p, random(500));
        p.push(new Float32Array(random(3000)).fill(old));
      }
      p.flush();
      p.push(new Float32Array(3000).fill(recent));
      p.complete();
      const output = render(p, 6000);
      expect(output.subarray(ms(5) + 130).some((s) => s > 0.01)).toBe(false);
      expect(p.played).toBe(3000);
      p.flush();
    }
  });

  it("drops what doesn't fit into its memory", () => {
    const p = new Playout();
    for (let i = 0; i < 70; i++) p.push(new Float32Array(ms(1000)));
    expect(p.queued).toBe(ms(60_000));
    expect(p.overflow).toBe(ms(10_000));
  });
});

describe("the ring", () => {
  it("returns what was written, in order, while it wraps and grows", () => {
    const ring = new Ring(16, 1000);
    let [count, expected, random] = [0, 0, 3];
    for (let i = 0; i < 2000; i++) {
      random = (random * 48_271) % 2_147_483_647;
      count += ring.write(Float32Array.from({ length: random % 40 }, (_, k) => count + k));
      const output = new Float32Array(random % 37);
      const n = ring.read(output);
      for (let k = 0; k < n; k++) expect(output[k]).toBe(expected++);
      expect(ring.length).toBe(count - expected);
    }
    expect(expected).toBeGreaterThan(10_000);
  });
});

describe("decode", () => {
  it("reads 16-bit samples, little-endian", () => {
    expect([...decode(Uint8Array.of(0, 0, 0xff, 0x7f, 0, 0x80, 0, 0x40).buffer)]).toEqual([0, 0x7fff / 0x8000, -1, 0.5]);
  });
});
