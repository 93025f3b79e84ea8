// The two live regions for screen readers: a polite one, which waits for silence, and an assertive one, which interrupts.

/** The least time between two announcements, in milliseconds: what comes faster is cut off. */
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
    // Emptied first, so that the same words are a change too.
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

/** Tells something when the screen reader is silent; told is called when its turn has come. */
export const say = (text: string, onSpoken?: () => void): void => polite.say(text, onSpoken);

/** Tells something at once. What is told of it, by its key, is told once. */
export function alarm(key: string, text: string): void {
  if (alarmed.has(key)) return;
  alarmed.add(key);
  urgent.say(text);
}
