import { describe, expect, it } from "vitest";

import { type Activity, Gate } from "./gate";

/** Feeds levels and returns when something changes: its time in milliseconds and what. */
function changes(gate: Gate, levels: readonly number[], isSpeaking = false): [number, Activity][] {
  return levels.flatMap((level, i) => {
    const a = gate.push(level, isSpeaking);
    return a ? [[(i + 1) * 20, a] as [number, Activity]] : [];
  });
}

const constant = (level: number, milliseconds: number): number[] => Array.from({ length: milliseconds / 20 }, () => level);
/** Speech as syllables of 160 ms with dips of 60 ms. */
const speech = (level: number, milliseconds: number): number[] => Array.from({ length: milliseconds / 20 }, (_, i) => (i % 11 < 8 ? level : level - 18));

describe("the gate", () => {
  it("opens about 200 ms after speech begins and closes 600 ms after it ends", () => {
    const gate = new Gate();
    changes(gate, constant(-65, 2000));
    const [start, stop, ...tail] = changes(gate, [...speech(-25, 1540), ...constant(-65, 1500)]);
    expect(start![1]).toBe("start");
    expect(start![0]).toBeGreaterThanOrEqual(150);
    expect(start![0]).toBeLessThanOrEqual(250);
    expect(stop![1]).toBe("stop");
    expect(stop![0]).toBeGreaterThanOrEqual(1540 + 500);
    expect(stop![0]).toBeLessThanOrEqual(1540 + 640);
    expect(tail).toEqual([]);
  });

  it("opens for speech from the first moment, before it knows the room", () => {
    expect(changes(new Gate(), speech(-30, 400))[0]).toEqual([expect.any(Number), "start"]);
  });

  it("ignores clicks, coughs and quiet noise", () => {
    const gate = new Gate();
    const cough = [...constant(-15, 120), ...constant(-60, 880)];
    expect(changes(gate, [...constant(-60, 1000), ...cough, ...cough, ...cough, ...constant(-52, 3000)])).toEqual([]);
  });

  it("keeps an utterance together across pauses between words", () => {
    const gate = new Gate();
    changes(gate, constant(-60, 1000));
    const events = changes(gate, [...speech(-25, 800), ...constant(-60, 400), ...speech(-28, 800), ...constant(-60, 1000)]);
    expect(events.map(([, a]) => a)).toEqual(["start", "stop"]);
  });

  it("learns a noise that begins, and still hears speech above it", () => {
    const gate = new Gate();
    changes(gate, constant(-65, 2000));
    const events = changes(gate, constant(-38, 8000));
    expect(events.map(([, a]) => a)).toEqual(["start", "stop"]);
    expect(gate.floor).toBeCloseTo(-38, 0);
    expect(changes(gate, speech(-20, 600)).map(([, a]) => a)).toEqual(["start"]);
  });

  it("stays open during a long speech", () => {
    const gate = new Gate();
    changes(gate, constant(-65, 2000));
    expect(changes(gate, speech(-25, 30_000)).map(([, a]) => a)).toEqual(["start"]);
  });

  it("isn't opened by the remaining echo of the page's own speech, but by a person who interrupts it", () => {
    const gate = new Gate();
    changes(gate, constant(-65, 2000));
    expect(changes(gate, speech(-44, 5000), true)).toEqual([]);
    const [start] = changes(gate, speech(-22, 600), true);
    expect(start![1]).toBe("start");
    expect(start![0]).toBeLessThanOrEqual(360);
  });

  it("works after digital silence", () => {
    const gate = new Gate();
    changes(gate, constant(-100, 5000));
    expect(changes(gate, constant(-58, 2000))).toEqual([]);
    expect(changes(gate, speech(-30, 600)).map(([, a]) => a)).toEqual(["start"]);
  });

  it("follows a model that knows how probable speech is, whatever the level", () => {
    const gate = new Gate();
    const push = (level: number, probability: number, frames: number, isSpeaking = false) =>
      Array.from({ length: frames }, () => gate.push(level, isSpeaking, probability)).filter(Boolean);
    expect(push(-20, 0.1, 200)).toEqual([]); // a loud noise
    expect(push(-50, 0.9, 20)).toEqual(["start"]); // a soft voice
    expect(push(-50, 0.4, 100)).toEqual([]); // it goes on
    expect(push(-20, 0.1, 40)).toEqual(["stop"]);
  });

  it("doesn't take the page's own voice for a person, though a model does", () => {
    const gate = new Gate();
    constant(-65, 2000).forEach((l) => gate.push(l, false, 0));
    const echo = constant(-50, 1000).map((l) => gate.push(l, true, 1));
    expect(echo.filter(Boolean)).toEqual([]);
    expect(speech(-20, 600).map((l) => gate.push(l, true, 1)).filter(Boolean)).toEqual(["start"]);
  });
});
