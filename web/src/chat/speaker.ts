// The two live regions for screen readers: a polite one, which waits for silence, and an assertive one, which interrupts.

import { Store } from "../store";

/** The gateway's voice speaks the answers. Then screen readers don't read them as well. */
export const isAnswerSpoken = new Store(false);

/** The minimum time between two announcements, in milliseconds. Screen readers cut off an announcement that is replaced sooner. */
const gap = 500;

class Speaker {
  private queue: { text: string; told?: (() => void) | undefined }[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly id: string) {}

  say(text: string, onSpoken?: () => void): void {
    if (!text || this.queue.at(-1)?.text === text) {
      onSpoken?.();
      return;
    }
    this.queue.push({ text, told: onSpoken });
    if (this.timer === undefined) this.next();
  }

  private next(): void {
    const element = document.getElementById(this.id);
    const next = this.queue.shift();
    if (!element || !next) {
      this.timer = undefined;
      return;
    }
    // The element is emptied first, so that repeating the same text counts as a change.
    element.textContent = "";
    this.timer = setTimeout(() => {
      element.textContent = next.text;
      next.told?.();
      this.timer = setTimeout(() => this.next(), gap);
    });
  }
}

const polite = new Speaker("announcer");
const urgent = new Speaker("alarm");
const alarmed = new Set<string>();

/** Announces a text in the polite region. onSpoken is called when it is put there. */
export const say = (text: string, onSpoken?: () => void): void => polite.say(text, onSpoken);

/** Announces a text at once in the assertive region, but only once for each key. */
export function alarm(key: string, text: string): void {
  if (alarmed.has(key)) return;
  alarmed.add(key);
  urgent.say(text);
}
