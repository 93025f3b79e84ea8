// The speech detector that an operator can add to the gateway: a model that tells speech from noise. web/vad/frame.mjs is the other side.

import { frameSize } from "./frames";

/** A message of the model: it is loaded, the probability of speech in the next 32 ms, or what failed. */
export type DetectorMessage = { ready: true } | { probability: number } | { error: string };

/** Why the detector can't be used: it didn't load or has failed, or the device is too slow for it. */
export type DetectorFault = "unavailable" | "slow";

/** off: not needed, or the gateway has none. */
export type DetectorState = "off" | "loading" | "on" | DetectorFault;

/** The text for each fault. */
export const detectorFaults: Record<DetectorFault, string> = {
  unavailable: "The speech detector can’t be loaded.",
  slow: "The speech detector is too slow on this device.",
};

/** What a model knows of the newest audio. */
export interface Estimate {
  probability: number; // that the person is speaking
  delay: number; // how many frames of the microphone it is behind
}

/** The samples that one probability is for. */
const windowSize = 512;
/** The model's answers are used until it is this many frames behind: 1.5 s. A busy device catches up. */
export const maxDelay = 75;
/** The device is too slow if the model is this many frames behind: 10 s. */
const slowDelay = 500;

/** Asks the model about the microphone's audio. It knows the model only by its port. */
export class Detector {
  state: DetectorState = "loading";
  private probability: number | undefined;
  private lag = 0; // the samples without an answer

  constructor(private readonly port: MessagePort, private readonly onState: (state: DetectorState) => void) {
    port.onmessage = ({ data }) => this.handle(data as DetectorMessage);
  }

  /** What the model knows; undefined if it isn't loaded, has failed, or is too far behind. */
  get estimate(): Estimate | undefined {
    const delay = Math.ceil(this.lag / frameSize);
    return this.probability === undefined || delay > maxDelay ? undefined : { probability: this.probability, delay };
  }

  /** Takes the next audio of the microphone. Audio before the model is loaded is dropped. */
  take(pcm: ArrayBuffer): void {
    if (this.state !== "on") return;
    this.port.postMessage(pcm);
    this.lag += pcm.byteLength / 2;
    if (this.lag > slowDelay * frameSize) this.fail("slow");
  }

  /** Ends the detector with a fault. */
  fail(fault: DetectorFault): void {
    if (this.state !== "loading" && this.state !== "on") return;
    this.change(fault);
  }

  close(): void {
    if (this.state !== "off") this.change("off");
  }

  private handle(message: DetectorMessage): void {
    if ("error" in message) {
      this.fail("unavailable");
    } else if ("ready" in message) {
      this.change("on");
    } else if (this.state === "on") {
      this.lag -= windowSize;
      this.probability = message.probability;
    }
  }

  private change(state: DetectorState): void {
    this.state = state;
    if (state !== "on") {
      this.probability = undefined;
      this.port.close();
    }
    this.onState(state);
  }
}
