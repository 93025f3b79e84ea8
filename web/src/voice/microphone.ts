// The microphone of the person, and why there may be none.

import captureUrl from "./captureProcessor.ts?worker&url";
import type { Frame } from "./frames";

/** Why the microphone can't be used. */
export type MicrophoneFault = "insecure" | "denied" | "missing" | "busy" | "lost";

/** The text for each fault, and what to do. */
export const faults: Record<MicrophoneFault, { text: string; action: string }> = {
  insecure: { text: "The microphone needs a secure connection.", action: "Open this page over HTTPS, or on the gateway’s own machine at localhost." },
  denied: { text: "This page may not use the microphone.", action: "Allow it in the browser’s site settings, then try again." },
  missing: { text: "No microphone found.", action: "Connect one, then try again." },
  busy: { text: "The microphone can’t be opened.", action: "Close other programs that use it, then try again." },
  lost: { text: "The microphone was disconnected.", action: "Connect it, then try again." },
};

/** Reports whether browsers allow microphones and audio processors here: over HTTPS and at localhost only. */
export const isSecure = (): boolean => window.isSecureContext;

/** Names the fault of an error of getUserMedia. */
export function faultOf(error: unknown): MicrophoneFault {
  switch ((error as DOMException | undefined)?.name) {
    case "NotAllowedError":
    case "SecurityError":
      return "denied";
    case "NotFoundError":
    case "OverconstrainedError":
      return "missing";
    default:
      return "busy";
  }
}

export class Microphone {
  private constructor(private readonly stream: MediaStream, private readonly context: AudioContext, private readonly node: AudioWorkletNode) {}

  /** Asks for the microphone and calls onFrame every 20 ms. It throws the error of the browser; faultOf names it. */
  static async open(onFrame: (frame: Frame) => void, onLost: () => void): Promise<Microphone> {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 } });
    // The context has the microphone's own rate, because some browsers can't connect one with another.
    const context = new AudioContext({ latencyHint: "interactive" });
    try {
      await context.audioWorklet.addModule(captureUrl);
      const node = new AudioWorkletNode(context, "leat-capture", { numberOfInputs: 1, numberOfOutputs: 1, outputChannelCount: [1] });
      node.port.onmessage = ({ data }) => onFrame(data as Frame);
      context.createMediaStreamSource(stream).connect(node);
      node.connect(context.destination); // it is silent, but browsers process only what leads to the output
      void context.resume();
      stream.getAudioTracks().forEach((t) => { t.onended = onLost; });
      return new Microphone(stream, context, node);
    } catch (err) {
      for (const t of stream.getTracks()) t.stop();
      void context.close();
      throw err;
    }
  }

  /** Mutes the microphone: the browser delivers silence. */
  set isMuted(muted: boolean) {
    for (const t of this.stream.getAudioTracks()) t.enabled = !muted;
  }

  /** Lets audio begin, in an event of the person. */
  resume(): void {
    void this.context.resume().catch(() => {}); // refused: the next event tries it
  }

  close(): void {
    this.node.port.postMessage("end");
    for (const t of this.stream.getTracks()) {
      t.onended = null;
      t.stop();
    }
    void this.context.close();
  }
}
