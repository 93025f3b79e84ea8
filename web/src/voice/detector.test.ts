import { expect, it } from "vitest";

import { Detector, type DetectorMessage, type DetectorState, maxDelay } from "./detector";

/** A detector and its model, which takes audio and answers through a port that delivers at once. */
function start() {
  const states: DetectorState[] = [];
  const port = { onmessage: null as ((e: { data: DetectorMessage }) => void) | null, sent: 0, isClosed: false, postMessage: () => void port.sent++, close: () => { port.isClosed = true; } };
  const detector = new Detector(port as unknown as MessagePort, (s) => states.push(s));
  return { detector, states, port, answer: (data: DetectorMessage) => port.onmessage!({ data }) };
}

const frame = new ArrayBuffer(640); // 20 ms

it("sends audio when the model is loaded, and knows the newest answer and its delay", () => {
  const { detector, states, port, answer } = start();
  detector.take(frame);
  expect([port.sent, detector.estimate]).toEqual([0, undefined]);
  answer({ ready: true });
  for (let i = 0; i < 8; i++) detector.take(frame); // 2560 samples: five windows
  expect([port.sent, detector.estimate]).toEqual([8, undefined]);
  answer({ probability: 0.1 });
  expect(detector.estimate).toEqual({ probability: 0.1, delay: 7 });
  for (let i = 0; i < 4; i++) answer({ probability: 0.9 });
  expect(detector.estimate).toEqual({ probability: 0.9, delay: 0 });
  expect(states).toEqual(["on"]);
});

it("isn't used while it is far behind, and is given up if it doesn't catch up", () => {
  const { detector, states, port, answer } = start();
  answer({ ready: true });
  answer({ probability: 0.9 });
  for (let i = 0; i <= maxDelay + 2; i++) detector.take(frame);
  expect(detector.estimate).toBeUndefined();
  for (let i = 0; i < 10; i++) answer({ probability: 0.9 });
  expect(detector.estimate?.probability).toBe(0.9);
  for (let i = 0; i < 600; i++) detector.take(frame);
  expect(detector.estimate).toBeUndefined();
  expect(states).toEqual(["on", "slow"]);
  expect(port.isClosed).toBe(true);
});

it("reports a model that fails, and forgets its last answer", () => {
  const { detector, states, port, answer } = start();
  answer({ ready: true });
  answer({ probability: 0.9 });
  answer({ error: "out of memory" });
  detector.fail("slow");
  answer({ probability: 0.9 });
  detector.take(frame);
  expect([detector.estimate, port.sent, states]).toEqual([undefined, 0, ["on", "unavailable"]]);
  detector.close();
  expect(states.at(-1)).toBe("off");
});
