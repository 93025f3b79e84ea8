// Voice activity by energy: a person speaks when the level is well above the noise of the room. If a model knows how probable speech is,
// that decides instead.

/** The duration of a frame in milliseconds. */
const frame = 20;

/** How far speech is above the noise floor in dB, to begin and to continue. */
const onset = 10;
const sustain = 6;
/** Quieter sounds are never speech. dB below full scale. */
const quietest = -48;
/** How probable speech is for a model, to begin and to continue. They are those of Silero's own detector. */
const probableOnset = 0.5;
const probableSustain = 0.35;
/** What speech needs in addition while the page speaks: echo cancellation leaves a remainder. dB. */
const echo = 8;
/** Speech is confirmed after this much of it. A cough or a door is shorter. Milliseconds. */
const confirmation = 180;
const echoConfirmation = 240;
/** The time in which the speech for a confirmation has to be. Words have short gaps. */
const confirmationWindow = 1.5;
/** An utterance ends after this much silence. Milliseconds. */
const hangover = 600;
/** The noise floor is the lowest level of the last blocks. Their duration is longer than a person speaks without a dip. */
const blockFrames = 20;
const blocks = 8;
/** The floor before anything was measured, and the lowest one. A muted or cleaned signal can be digital silence. */
const initialFloor = -60;
const lowestFloor = -75;

/** What a frame changes: speech begins (confirmed), an utterance ends, or nothing. */
export type Activity = "start" | "stop" | undefined;

/** Detects utterances in the levels of frames. */
export class Gate {
  /** A confirmed utterance is in progress. */
  isOpen = false;
  /** The noise floor in dB below full scale. */
  floor = initialFloor;

  private readonly minima: number[] = [];
  private blockMinimum = 0;
  private blockLength = 0;
  private smooth = initialFloor;
  private recent: boolean[] = []; // of the last frames, those that may be speech
  private silence = 0; // milliseconds since the last speech

  /**
   * Takes the level of the next frame in dB. isSpeaking: the page speaks, so its echo is in the signal. probability is that of speech,
   * from 0 to 1; undefined without a model.
   */
  push(level: number, isSpeaking = false, probability?: number): Activity {
    this.measure(level);
    const isSpeech = this.isSpeech(level, isSpeaking, probability);
    if (this.isOpen) {
      this.silence = isSpeech ? 0 : this.silence + frame;
      if (this.silence < hangover) return undefined;
      this.reset();
      return "stop";
    }
    const minFrames = (isSpeaking ? echoConfirmation : confirmation) / frame;
    this.recent.push(isSpeech);
    if (this.recent.length > minFrames * confirmationWindow) this.recent.shift();
    if (!isSpeech || this.recent.filter(Boolean).length < minFrames) return undefined;
    this.isOpen = true;
    this.silence = 0;
    return "start";
  }

  /** Forgets the current utterance, but not the noise floor. */
  reset(): void {
    this.isOpen = false;
    this.recent = [];
    this.silence = 0;
  }

  // isSpeech decides about a frame. The echo of the page is speech for a model too, so while the page speaks, both have to agree.
  private isSpeech(level: number, isSpeaking: boolean, probability?: number): boolean {
    const isLoud = level > Math.max(this.floor + (this.isOpen ? sustain : onset), quietest) + (isSpeaking ? echo : 0);
    if (probability === undefined) return isLoud;
    return probability >= (this.isOpen ? probableSustain : probableOnset) && (isLoud || !isSpeaking);
  }

  // measure tracks the noise floor: the minimum of the smoothed level in the last blocks. A new constant noise raises it within the
  // duration of all blocks, so a fan that starts doesn't hold the gate open.
  private measure(level: number): void {
    this.smooth += (Math.max(level, lowestFloor) - this.smooth) * 0.35;
    this.blockMinimum = this.blockLength === 0 ? this.smooth : Math.min(this.blockMinimum, this.smooth);
    if (++this.blockLength >= blockFrames) {
      this.minima.push(this.blockMinimum);
      if (this.minima.length > blocks) this.minima.shift();
      this.blockLength = 0;
    }
    this.floor = this.minima.length > 0 ? Math.min(this.smooth, ...this.minima) : Math.min(this.smooth, initialFloor);
  }
}
