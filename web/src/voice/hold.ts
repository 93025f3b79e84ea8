/** A press shorter than this starts an utterance that the next press ends. Holding a button is hard for some people. Milliseconds. */
const tap = 300;

/** A button that is held, or tapped to start and to stop. */
export class HoldButton {
  private isDown = false;
  private isLatched = false;
  private since = 0;

  constructor(private readonly start: () => void, private readonly stop: () => void) {}

  press(time: number): void {
    if (this.isDown) return;
    this.isDown = true;
    this.since = time;
    if (!this.isLatched) this.start();
  }

  lift(time: number): void {
    if (!this.isDown) return;
    this.isDown = false;
    this.isLatched = !this.isLatched && time - this.since < tap;
    if (!this.isLatched) this.stop();
  }

  /** Toggles at once, for a click without a press: screen readers send only that. */
  click(): void {
    if (this.isDown) return;
    if (this.isLatched) this.stop();
    else this.start();
    this.isLatched = !this.isLatched;
  }

  /** Ends an utterance whose end wouldn't be seen, because the page loses the keyboard. */
  cancel(): void {
    if (this.isDown || this.isLatched) this.stop();
    this.isDown = this.isLatched = false;
  }
}
