// The speech detector that an operator can add to the gateway: a model that tells speech from noise. web/vad/frame.mjs is the other side.

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

/** The samples that one probability is for. */
const windowSize = 512;
/** How far the model may be behind, in samples: one second. Speech that is found later is found too late. */
const maxLag = 16_000;

/** Asks the model about the microphone's audio. It knows the model only by its port. */
export class Detector {
  state: DetectorState = "loading";
  /** The probability that the person is speaking; undefined if it isn't known. */
  probability: number | undefined;
  private lag = 0; // the samples without an answer

  constructor(private readonly port: MessagePort, private readonly onState: (state: DetectorState) => void) {
    port.onmessage = ({ data }) => this.handle(data as DetectorMessage);
  }

  /** Takes the next audio of the microphone. Audio before the model is loaded is dropped. */
  take(pcm: ArrayBuffer): void {
    if (this.state !== "on") return;
    this.port.postMessage(pcm);
    this.lag += pcm.byteLength / 2;
    if (this.lag > maxLag) this.fail("slow");
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
