// The conversation by voice, as the wire has it: generations, interrupts, captions and the position at which to resume.

import { Store } from "../store";
import { Captions } from "./captions";
import { Link, type Socket } from "./link";
import type { PlayoutState } from "./playout";
import { closeCodes, type ClientFrame, type GatewayState, parse, protocolFault, type ServerFrame } from "./wire";

/** The loudspeaker. It handles calls in order. */
export interface Player {
  push(pcm: ArrayBuffer): void;
  complete(): void;
  interrupt(): void;
  flush(): void;
  reset(): void;
}

/** What the loudspeaker has played since the last flush or reset. */
export interface PlayerReport { played: number; state: PlayoutState }

/** A message about a fault, and what to do about it. */
export interface Notice { code: string; text: string; action?: string | undefined }

export interface SessionView {
  connection: "connecting" | "open" | "reconnecting" | "ended";
  hasSpeech: boolean; // the gateway can speak
  hasRecognition: boolean; // the gateway understands speech
  hasDetector: boolean; // the gateway has a speech detector for the page
  gateway: GatewayState;
  isPlaying: boolean; // speech is audible, or waits for its prebuffer
  caption: string; // the sentence that is audible
  transcript: string; // what the person says or has just said
  isTranscribing: boolean; // an utterance has ended, and its text isn't final
  notice: Notice | undefined;
}

const initial: SessionView = {
  connection: "connecting", hasSpeech: true, hasRecognition: true, hasDetector: false, gateway: "listening", isPlaying: false, caption: "", transcript: "", isTranscribing: false, notice: undefined,
};

/** How often the gateway gets the played position, in samples: every 500 ms. */
const reportInterval = 12_000;

export class Session {
  readonly view = new Store<SessionView>(initial);

  private readonly link: Link;
  private readonly captions = new Captions();
  private generation = 1;
  private received = 0; // the samples since the last flush, in the player's count
  private offset = 0; // where the samples of the current connection begin in the player's count
  private played = 0;
  private reported = 0; // the position that the gateway has
  private playerState: PlayoutState = "idle";
  private isInterrupting = false; // an interrupt isn't answered by its flush

  /** connect opens the voice socket; after is the position at which to resume, or empty. */
  constructor(private readonly player: Player, connect: (after: string) => Socket) {
    this.link = new Link({
      connect: () => connect(this.position()),
      onOpen: () => {},
      onMessage: (data) => this.receive(data),
      onLost: () => this.lose(),
      onEnd: (code) => this.end(code),
    });
  }

  open(): void {
    this.change({ connection: "connecting", notice: undefined });
    this.link.open();
  }

  close(): void {
    this.link.close();
    this.player.reset();
    this.change({ connection: "ended", isPlaying: false });
  }

  /** Speech is audible or about to be, so a person who speaks interrupts it. */
  get isAudible(): boolean {
    return !this.isInterrupting && (this.playerState !== "idle" || this.view.get().gateway === "speaking");
  }

  /** Stops the speech at once, here and at the gateway. */
  interrupt(): void {
    if (this.isInterrupting) return;
    this.isInterrupting = true;
    this.player.interrupt();
    this.send({ type: "interrupt", played: this.position24(), generation: this.generation });
    this.change({ caption: "", isPlaying: false });
  }

  /**
   * Begins an utterance of the person. It interrupts what is audible. If it is deliberate, it also stops an agent that works on an
   * answer; a sound that only may be speech doesn't.
   */
  begin(isDeliberate = false): void {
    if (this.isAudible || isDeliberate && this.view.get().gateway !== "listening") this.interrupt();
    this.send({ type: "start" });
    this.change({ transcript: "", isTranscribing: false, notice: undefined });
  }

  /** Sends audio of the utterance. */
  speak(pcm: ArrayBuffer): void {
    this.link.send(pcm);
  }

  /** Ends the utterance. */
  finish(): void {
    this.send({ type: "stop" });
    this.change({ isTranscribing: this.view.get().connection === "open" });
  }

  /** Takes what the player has played. */
  report({ played, state }: PlayerReport): void {
    this.played = played;
    this.playerState = state;
    const isQuiet = state !== "playing";
    if (!this.isInterrupting && played !== this.reported && (isQuiet || played - this.reported >= reportInterval)) {
      this.reported = played;
      this.send({ type: "played", samples: this.position24(), generation: this.generation });
    }
    const isPlaying = state !== "idle" && !this.isInterrupting;
    this.change({ isPlaying, caption: isPlaying ? this.captions.textAt(played) : "" });
  }

  dismiss(): void {
    this.change({ notice: undefined });
  }

  /** Ends the session, because the gateway refuses it. */
  fail(notice: Notice): void {
    this.link.close();
    this.change({ connection: "ended", notice });
  }

  // position24 returns the played samples in the gateway's count. Those of the previous connection don't count.
  private position24(): number {
    return Math.max(0, this.played - this.offset);
  }

  // position returns where the next connection continues the answer: after the last sample that was received.
  private position(): string {
    const caption = this.captions.last(this.received);
    return caption ? `${caption.turn}:${caption.start}:${this.received - caption.at}` : "";
  }

  private receive(data: string | ArrayBuffer): void {
    if (typeof data !== "string") {
      this.takeAudio(data);
      return;
    }
    let frame: ServerFrame | undefined;
    try {
      frame = parse(data);
    } catch {
      this.link.restart(protocolFault);
      return;
    }
    if (frame) this.take(frame);
  }

  private takeAudio(pcm: ArrayBuffer): void {
    if (pcm.byteLength === 1 && new Uint8Array(pcm)[0] === 0) {
      this.flush();
    } else if (pcm.byteLength % 2 !== 0) {
      this.link.restart(protocolFault);
    } else if (!this.isInterrupting) {
      this.received += pcm.byteLength / 2;
      this.player.push(pcm);
    }
  }

  private flush(): void {
    this.player.flush();
    this.generation++;
    this.forget();
    this.isInterrupting = false;
  }

  // forget drops all positions, because the player has dropped its queue.
  private forget(): void {
    this.received = this.offset = this.played = this.reported = 0;
    this.playerState = "idle";
    this.captions.clear();
    this.change({ caption: "", isPlaying: false });
  }

  private take(frame: ServerFrame): void {
    switch (frame.type) {
      case "ready":
        this.greet(frame);
        break;
      case "state":
        // The text of the person is in the log when the agent works on it.
        this.change({ gateway: frame.state, ...(frame.state !== "listening" && { transcript: "", isTranscribing: false }) });
        if (frame.state === "listening") this.player.complete();
        break;
      case "transcript":
        this.change({ transcript: frame.text, ...(frame.final && { isTranscribing: false }), ...(frame.final && frame.text === "" && { notice: { code: "silence", text: "Nothing was understood.", action: "Try again." } }) });
        break;
      case "caption":
        if (!this.isInterrupting) this.captions.add({ text: frame.text, turn: frame.turn, start: frame.start, at: this.offset + frame.sample });
        break;
      case "stream_done":
        this.player.complete();
        break;
      case "error":
        this.change({ notice: { code: frame.code, text: frame.message, action: frame.action }, isTranscribing: false });
        break;
      case "pong":
    }
  }

  private greet(frame: ServerFrame & { type: "ready" }): void {
    this.generation = frame.generation;
    this.offset = this.received;
    this.captions.truncate(this.received); // the gateway repeats sentences whose audio was lost
    this.change({ connection: "open", hasSpeech: frame.speech, hasRecognition: frame.recognition, hasDetector: frame.detector === true, gateway: "listening" });
    // The connection was lost before the gateway answered an interrupt, so the interrupt may be lost too.
    if (this.isInterrupting) {
      this.isInterrupting = false;
      this.interrupt();
    }
  }

  private lose(): void {
    if (this.isInterrupting) {
      this.player.reset();
      this.forget();
    }
    this.change({ connection: "reconnecting", isTranscribing: false, transcript: "" });
  }

  private end(code: number): void {
    const { notice } = this.view.get();
    this.player.reset(); // another window may continue
    this.forget();
    this.change({ connection: "ended", notice: ends[code] && notice?.code !== ends[code].code ? ends[code] : notice, gateway: "listening", isTranscribing: false });
  }

  private send(frame: ClientFrame): void {
    this.link.send(JSON.stringify(frame));
  }

  // change updates the view only if something differs, because reports arrive many times a second.
  private change(update: Partial<SessionView>): void {
    const view = this.view.get();
    if (Object.entries(update).some(([key, value]) => view[key as keyof SessionView] !== value)) this.view.set({ ...view, ...update });
  }
}

/** Why the gateway ended voice mode, by close code. */
const ends: Record<number, Notice> = {
  [closeCodes.noAccess]: { code: "forbidden", text: "You don’t have access to voice in this conversation." },
  [closeCodes.busy]: { code: "busy", text: "Too many people use voice right now.", action: "Try again later." },
  [closeCodes.expired]: { code: "expired", text: "Your session has expired.", action: "Reload the page to sign in again." },
  [closeCodes.idle]: { code: "idle", text: "Voice ended after a long silence." },
  [closeCodes.replaced]: { code: "replaced", text: "Voice continues in another window." },
};
