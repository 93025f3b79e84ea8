// Turns the microphone's frames into utterances: by voice activity, or while a button is held.

import { type Estimate, maxDelay } from "./detector";
import type { Frame } from "./frames";
import { Gate } from "./gate";

/** How an utterance begins and ends: the person just speaks, or holds a button. */
export type TalkMode = "hands-free" | "push";

/** Where utterances go. */
export interface Listener {
  readonly isAudible: boolean;
  begin(isDeliberate: boolean): void;
  speak(pcm: ArrayBuffer): void;
  finish(): void;
}

/** The frames before an utterance is confirmed that belong to it: its first sound is in them. */
const lead = 24;
/** The frames before the button is pressed. People press it a little late. */
const pushLead = 5;
/** The frames after the button is released. People release it a little early. */
const pushTail = 10;
/** The longest utterance in frames: two minutes. A stuck key or a radio would go on forever. */
const longest = 6000;

export class Talk {
  /** A person is speaking. */
  isOpen = false;

  private readonly gate = new Gate();
  private recent: ArrayBuffer[] = [];
  private isHeld = false;
  private tail = 0; // the frames since the button was released
  private length = 0; // of the utterance, in frames

  constructor(private readonly listener: Listener, private mode: TalkMode) {}

  setMode(mode: TalkMode): void {
    if (mode === this.mode) return;
    this.close();
    this.mode = mode;
  }

  /** Begins an utterance in push-to-talk mode. */
  hold(): void {
    if (this.mode !== "push" || this.isHeld) return;
    this.isHeld = true;
    this.tail = 0;
    if (!this.isOpen) this.begin(pushLead);
  }

  /** Ends the utterance a moment later. */
  release(): void {
    this.isHeld = false;
  }

  /** Takes the next frame of the microphone, and what a model knows if there is one. */
  take({ pcm, level }: Frame, estimate?: Estimate): void {
    const activity = this.mode === "hands-free" ? this.gate.push(level, this.listener.isAudible, estimate?.probability) : undefined;
    if (!this.isOpen) {
      this.recent.push(pcm);
      if (this.recent.length > lead + maxDelay) this.recent.shift();
      if (activity === "start") this.begin(lead + (estimate?.delay ?? 0));
      return;
    }
    this.listener.speak(pcm);
    this.length++;
    const isReleased = this.mode === "push" && !this.isHeld && ++this.tail > pushTail;
    if (activity === "stop" || isReleased || this.length > longest) this.close();
  }

  /** Ends the current utterance, because the microphone is muted or gone. */
  close(): void {
    this.gate.reset();
    this.recent = [];
    this.isHeld = false;
    if (!this.isOpen) return;
    this.isOpen = false;
    this.listener.finish();
  }

  private begin(frames: number): void {
    this.isOpen = true;
    this.length = 0;
    this.listener.begin(this.mode === "push");
    for (const pcm of this.recent.slice(-frames)) this.listener.speak(pcm);
    this.recent = [];
  }
}
