import { describe, expect, it } from "vitest";

import { HoldButton } from "./hold";
import { Talk } from "./talk";

/** Records what a talk does. Audio is shown by the number of its frame. */
class Recorder {
  isAudible = false;
  calls: (string | number)[] = [];
  begin = () => void this.calls.push("begin");
  speak = (pcm: ArrayBuffer) => void this.calls.push(new Uint16Array(pcm)[0]!);
  finish = () => void this.calls.push("finish");
}

function feeder(talk: Talk) {
  let n = 0;
  return (level: number, count: number) => {
    for (let i = 0; i < count; i++) talk.take({ pcm: Uint16Array.of(n++).buffer, level });
  };
}

describe("hands-free", () => {
  it("sends whole utterances with their first sound, and nothing between them", () => {
    const r = new Recorder();
    const feed = feeder(new Talk(r, "hands-free"));
    feed(-65, 100);
    feed(-20, 50);
    feed(-65, 100);
    const audio = r.calls.filter((c) => typeof c === "number");
    expect([r.calls[0], r.calls.at(-1)]).toEqual(["begin", "finish"]);
    expect(audio[0]).toBeLessThan(100);
    expect(audio[0]).toBeGreaterThan(80);
    expect(audio).toEqual(Array.from({ length: audio.length }, (_, i) => Number(audio[0]) + i));
    expect(audio.length).toBeLessThan(24 + 50 + 40);
    expect(r.calls.filter((c) => c === "begin" || c === "finish").length).toBe(2);
  });

  it("sends the first sound also if a model finds it late", () => {
    const r = new Recorder();
    const talk = new Talk(r, "hands-free");
    let n = 0;
    const feed = (probability: number, count: number, delay: number) => {
      for (let i = 0; i < count; i++) talk.take({ pcm: Uint16Array.of(n++).buffer, level: -30 }, { probability, delay });
    };
    feed(0, 150, 0); // the person begins at frame 100, and the model is 50 frames behind
    feed(1, 20, 50);
    expect(r.calls[0]).toBe("begin");
    expect(r.calls[1]).toBeLessThan(100);
    expect(r.calls[1]).toBeGreaterThan(75);
  });

  it("ends an utterance when the microphone is muted", () => {
    const r = new Recorder();
    const talk = new Talk(r, "hands-free");
    feeder(talk)(-20, 30);
    talk.close();
    expect(r.calls.at(-1)).toBe("finish");
    talk.close();
    expect(r.calls.filter((c) => c === "finish").length).toBe(1);
  });

  it("ends an utterance that never ends", () => {
    const r = new Recorder();
    const feed = feeder(new Talk(r, "hands-free"));
    for (let i = 0; i < 400; i++) {
      feed(-20, 10);
      feed(-50, 8);
    }
    expect(r.calls.filter((c) => c === "finish").length).toBe(1);
  });
});

describe("push to talk", () => {
  it("sends audio from shortly before the press until shortly after the release", () => {
    const r = new Recorder();
    const talk = new Talk(r, "push");
    const feed = feeder(talk);
    feed(-20, 50);
    expect(r.calls).toEqual([]);
    talk.hold();
    feed(-20, 20);
    talk.release();
    feed(-20, 50);
    expect(r.calls).toEqual(["begin", ...Array.from({ length: 5 + 20 + 11 }, (_, i) => 45 + i), "finish"]);
  });

  it("continues the utterance if the button is pressed again at once", () => {
    const r = new Recorder();
    const talk = new Talk(r, "push");
    const feed = feeder(talk);
    talk.hold();
    feed(-20, 10);
    talk.release();
    feed(-20, 5);
    talk.hold();
    feed(-20, 30);
    talk.release();
    feed(-20, 30);
    expect(r.calls.filter((c) => typeof c === "string")).toEqual(["begin", "finish"]);
  });

  it("ends the utterance when the mode changes", () => {
    const r = new Recorder();
    const talk = new Talk(r, "push");
    talk.hold();
    talk.setMode("hands-free");
    expect(r.calls).toEqual(["begin", "finish"]);
    talk.hold();
    expect(r.calls.length).toBe(2);
  });
});

describe("the button", () => {
  function button() {
    const calls: string[] = [];
    return { calls, hold: new HoldButton(() => calls.push("start"), () => calls.push("stop")) };
  }

  it("talks while it is held", () => {
    const { calls, hold } = button();
    hold.press(0);
    hold.press(100); // the repeat of a key
    expect(calls).toEqual(["start"]);
    hold.lift(900);
    hold.lift(901);
    expect(calls).toEqual(["start", "stop"]);
  });

  it("starts and stops by taps", () => {
    const { calls, hold } = button();
    hold.press(0);
    hold.lift(100);
    expect(calls).toEqual(["start"]);
    hold.press(2000);
    hold.lift(2100);
    expect(calls).toEqual(["start", "stop"]);
  });

  it("toggles by the clicks of a screen reader, and stops when the page loses the keyboard", () => {
    const { calls, hold } = button();
    hold.click();
    hold.click();
    hold.press(0);
    hold.cancel();
    hold.lift(500);
    expect(calls).toEqual(["start", "stop", "start", "stop"]);
  });
});
