// The wait before a client retries, in milliseconds: as in the Eliza front end, with jitter.

const initial = 500;
const factor = 1.5;
const longest = 10_000;
/** Number of retries before the client only probes. */
export const attempts = 15;
const probe = 30_000;

/** Waits longer after each failure, and after 15 of them probes every 30 s. */
export class Backoff {
  failures = 0;

  /** The client has stopped retrying quickly, and only probes. */
  get failed(): boolean {
    return this.failures > attempts;
  }

  /**
   * How long to wait after one more failure: up to a half shorter at random, so that clients that were disconnected at the same
   * time don't come back at the same time. If the gateway asks for a longer wait, it is that, and up to a half longer for the
   * same reason.
   */
  next(atLeast = 0): number {
    this.failures++;
    const wait = this.failed ? probe : Math.min(initial * factor ** (this.failures - 1), longest);
    return Math.max(wait * (1 - Math.random() / 2), atLeast * (1 + Math.random() / 2));
  }

  reset(): void {
    this.failures = 0;
  }
}
