// Voice mode in one conversation: the socket, the loudspeaker and the microphone together.

import type { LeatError } from "@leat/client";

import { base, call } from "../gateway";
import { persistent, Store } from "../store";
import type { Detector, DetectorState } from "./detector";
import { openDetector } from "./detectorFrame";
import { faultOf, isSecure, Microphone, type MicrophoneFault } from "./microphone";
import { Session } from "./session";
import { Speaker } from "./speaker";
import { Talk, type TalkMode } from "./talk";

/** How the person talks, stored in this browser. */
export const talkMode = persistent<TalkMode>("talk", "hands-free", (v): v is TalkMode => v === "hands-free" || v === "push");

/** off: not needed, because the gateway doesn't understand speech. */
export type MicrophoneState = "off" | "asking" | "on" | MicrophoneFault;

export interface CallView {
  microphone: MicrophoneState;
  detector: DetectorState;
  isMuted: boolean;
  isHearing: boolean; // the person is speaking
  isBlocked: boolean; // the browser plays no sound before the person presses something
  isSilent: boolean; // the audio processor can't be loaded
}

/** The level of a microphone that is off, in dB. */
const silence = -100;

/** The status of a request for the socket's address that isn't an upgrade. */
const upgradeRequired = 426;

export class Call {
  readonly view = new Store<CallView>({ microphone: "off", detector: "off", isMuted: false, isHearing: false, isBlocked: false, isSilent: false });
  readonly session: Session;
  /** The level of the microphone in dB. It isn't part of the view, because it changes 50 times a second. */
  readonly level = new Store(silence);
  private readonly speaker: Speaker;
  private readonly talk: Talk;
  private readonly path: string;
  private microphone: Microphone | undefined;
  private detector: Detector | undefined;
  private isClosed = false;
  private wasOpen = false;
  private readonly unsubscribe: (() => void)[];

  constructor(conversation: string) {
    this.path = `api/conversations/${encodeURIComponent(conversation)}/voice`;
    this.speaker = new Speaker((report) => this.session.report(report), () => this.change({ isBlocked: !this.isClosed && this.speaker.isBlocked }));
    this.session = new Session(this.speaker, (after) => new WebSocket(`${base.replace(/^http/, "ws")}/${this.path}${after && `?after=${encodeURIComponent(after)}`}`));
    this.talk = new Talk(this.session, talkMode.get());
    this.unsubscribe = [this.session.view.subscribe(() => this.follow()), talkMode.subscribe(() => this.setMode(talkMode.get()))];
    this.speaker.open().catch(() => this.change({ isSilent: true }));
    this.session.open();
  }

  close(): void {
    this.isClosed = true;
    for (const f of this.unsubscribe) f();
    this.talk.close();
    this.session.close();
    this.closeMicrophone("off");
    this.detector?.close();
    this.speaker.close();
  }

  /** Lets the sound begin, in an event of the person. */
  resume(): void {
    void this.speaker.resume();
    this.microphone?.resume();
  }

  /** Opens the microphone, or tries it again after a fault. */
  async listen(): Promise<void> {
    if (this.microphone || this.view.get().microphone === "asking") return;
    if (!isSecure()) {
      this.change({ microphone: "insecure" });
      return;
    }
    this.change({ microphone: "asking" });
    try {
      const microphone = await Microphone.open((frame) => {
        if (this.view.get().isMuted) return;
        if (talkMode.get() === "hands-free") this.detector?.take(frame.pcm);
        this.talk.take(frame, this.detector?.estimate);
        this.level.set(frame.level);
        this.change({ isHearing: this.talk.isOpen });
      }, () => this.closeMicrophone("lost"));
      if (this.isClosed || !this.needsMicrophone()) {
        microphone.close();
        this.change({ microphone: "off" });
        return;
      }
      microphone.isMuted = this.view.get().isMuted;
      this.microphone = microphone;
      this.change({ microphone: "on" });
      this.detect();
    } catch (err) {
      this.change({ microphone: faultOf(err) });
    }
  }

  /** Loads the speech detector again after a fault. */
  retryDetector(): void {
    this.detector = undefined;
    this.detect();
  }

  mute(isMuted: boolean): void {
    this.change({ isMuted, isHearing: false });
    if (this.microphone) this.microphone.isMuted = isMuted;
    if (isMuted) this.talk.close();
    this.level.set(silence);
  }

  /** Begins to talk in push-to-talk mode. */
  hold(): void {
    this.resume();
    if (this.microphone && !this.view.get().isMuted) this.talk.hold();
  }

  release(): void {
    this.talk.release();
  }

  private setMode(mode: TalkMode): void {
    this.talk.setMode(mode);
    this.change({ isHearing: false });
    this.detect();
  }

  // detect loads the speech detector if the gateway has one and the page needs it. Until it is loaded, the loudness decides.
  private detect(): void {
    if (this.detector || !this.microphone || !this.session.view.get().hasDetector || talkMode.get() !== "hands-free") return;
    this.change({ detector: "loading" });
    this.detector = openDetector((detector) => this.change({ detector }));
  }

  private needsMicrophone(): boolean {
    const { connection, hasRecognition } = this.session.view.get();
    return connection !== "ended" && hasRecognition;
  }

  // follow reacts to the session: the microphone is asked for when the gateway can use it.
  private follow(): void {
    const { connection, hasRecognition } = this.session.view.get();
    if (connection === "open") {
      this.wasOpen = true;
      if (hasRecognition && this.view.get().microphone === "off") void this.listen();
    }
    // An utterance can't continue on another connection.
    if (connection === "reconnecting") this.talk.close();
    if (!this.needsMicrophone() && this.microphone) this.closeMicrophone("off");
    if (connection === "reconnecting" && !this.wasOpen) void this.diagnose();
  }

  // diagnose asks why the socket is refused: browsers don't say.
  private async diagnose(): Promise<void> {
    try {
      await call(this.path);
    } catch (err) {
      const { status, reason, message } = err as LeatError;
      if (this.isClosed || status < 400 || status >= 500 || status === upgradeRequired || status === 429) return; // it may pass
      this.session.fail(status === 404 ? { code: reason, text: "Voice isn’t available here.", action: "The gateway or the conversation doesn’t have it." } : { code: reason, text: message });
    }
  }

  private closeMicrophone(state: "off" | "lost"): void {
    this.microphone?.close();
    this.microphone = undefined;
    this.talk.close();
    this.level.set(silence);
    this.change({ microphone: state, isHearing: false });
  }

  private change(update: Partial<CallView>): void {
    const view = this.view.get();
    if (Object.entries(update).some(([key, value]) => view[key as keyof CallView] !== value)) this.view.set({ ...view, ...update });
  }
}
