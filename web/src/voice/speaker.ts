// The loudspeaker of the page: an audio context with the playback processor.

import playbackUrl from "./playbackProcessor.ts?worker&url";
import { speechRate } from "./playout";
import type { Player, PlayerReport } from "./session";
import type { PlaybackCommand, PlaybackReport } from "./worklet";

/** Creates an audio context with the wanted rate, or with the device's own if the browser refuses it. The processor resamples then. */
function createContext(): AudioContext {
  try {
    return new AudioContext({ sampleRate: speechRate, latencyHint: "interactive" });
  } catch {
    return new AudioContext({ latencyHint: "interactive" });
  }
}

export class Speaker implements Player {
  private readonly context = createContext();
  private node: AudioWorkletNode | undefined;
  private backlog: PlaybackCommand[] = []; // commands before the processor is loaded
  private drops = 0; // the flushes and resets that were sent

  constructor(private readonly onReport: (report: PlayerReport) => void, private readonly onState: () => void) {
    this.context.onstatechange = onState;
  }

  /** The browser plays no sound before the person has pressed something on the page. */
  get isBlocked(): boolean {
    return this.context.state === "suspended" || (this.context.state as string) === "interrupted"; // Safari's, during a phone call
  }

  /** Loads the processor. */
  async open(): Promise<void> {
    void this.resume();
    await this.context.audioWorklet.addModule(playbackUrl);
    if (this.context.state === "closed") return;
    this.node = new AudioWorkletNode(this.context, "leat-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    this.node.port.onmessage = ({ data }) => {
      const report = data as PlaybackReport;
      if (report.drops === this.drops) this.onReport(report); // others are older than the last flush
    };
    this.node.connect(this.context.destination);
    for (const command of this.backlog.splice(0)) this.post(command);
    this.onState(); // a context that the browser blocks reports no change
  }

  /** Lets the sound begin, in an event of the person. */
  async resume(): Promise<void> {
    await this.context.resume().catch(() => {}); // refused: the state stays as it is
    this.onState();
  }

  push(pcm: ArrayBuffer): void {
    this.post({ type: "push", pcm });
  }

  complete(): void {
    this.post({ type: "complete" });
  }

  interrupt(): void {
    this.post({ type: "interrupt" });
  }

  flush(): void {
    this.drops++;
    this.post({ type: "flush" });
  }

  reset(): void {
    this.drops++;
    this.post({ type: "reset" });
  }

  close(): void {
    this.post({ type: "end" });
    this.context.onstatechange = null;
    void this.context.close();
  }

  private post(command: PlaybackCommand): void {
    if (this.node) this.node.port.postMessage(command, command.type === "push" ? [command.pcm] : []);
    else this.backlog.push(command);
  }
}
