// The answer that is read aloud, one at a time. The code that reads is loaded when it is first used.

import { Store } from "../store";

/** message is the answer that is read aloud or couldn't be; empty if there is none. */
export interface ReadingView { message: string; state: "idle" | "loading" | "playing" | "paused" | "failed"; error: string }

/** Controls the audio of an answer. */
export interface ReadingControl { pause(): void; resume(): void; stop(): void }

const idle: ReadingView = { message: "", state: "idle", error: "" };

export const readingView = new Store<ReadingView>(idle);

let control: ReadingControl | undefined;

/** Reads an answer aloud from its beginning. */
export async function startReading(conversation: string, message: string): Promise<void> {
  stopReading();
  const view: ReadingView = { message, state: "loading", error: "" };
  readingView.set(view);
  try {
    const { playAnswer } = await import("../voice/reading");
    if (readingView.get() !== view) return; // stopped, or another answer was chosen meanwhile
    control = playAnswer(conversation, message, (update) => readingView.change((v) => (update ? { ...v, ...update } : idle)));
  } catch {
    if (readingView.get() === view) readingView.set({ message, state: "failed", error: "This part of the page can’t be loaded. Reload the page." });
  }
}

export const pauseReading = (): void => control?.pause();
export const resumeReading = (): void => control?.resume();

export function stopReading(): void {
  control?.stop();
  control = undefined;
  readingView.set(idle);
}
