import { asLeatError, type LeatError } from "./errors.js";
import type { CreateOptions } from "./wire.js";

/**
 * The conversations that Client.open gets or creates. Until the gateway has answered, a conversation isn't followed, and its messages
 * wait.
 */
export class Openings {
  private readonly unanswered = new Map<string, CreateOptions>();
  private readonly inFlight = new Map<string, object>(); // the attempt of each
  private readonly knownIds = new Set<string>(); // so that each call after the first is free: a view calls open each time it renders

  /**
   * create rejects with the gateway's refusal. isRefused reports whether the client needs another token first. onAnswer is called with
   * an error if the conversation can't be opened.
   */
  constructor(private readonly create: (options: CreateOptions) => Promise<unknown>, private readonly isRefused: () => boolean,
    private readonly onAnswer: (id: string, err?: LeatError) => void) {}

  /** The gateway hasn't answered yet. */
  has(id: string): boolean {
    return this.unanswered.has(id);
  }

  open(id: string, options: CreateOptions): void {
    if (this.knownIds.has(id)) return;
    this.knownIds.add(id);
    this.unanswered.set(id, { ...options, id });
    void this.try(id);
  }

  /** Asks again for those that failed without a connection or with a refused token. */
  flush(): void {
    for (const id of this.unanswered.keys()) if (!this.inFlight.has(id)) void this.try(id);
  }

  /** The token or the page's origin was refused, which fails all requests. */
  suspend(): void {
    this.inFlight.clear();
  }

  private async try(id: string): Promise<void> {
    if (this.isRefused()) return; // flush is called after the next login
    const attempt = {};
    this.inFlight.set(id, attempt);
    const err = await this.create(this.unanswered.get(id)!).then(() => undefined, asLeatError);
    if (this.inFlight.get(id) !== attempt) return; // suspended
    this.inFlight.delete(id);
    if (err?.temporary) {
      void this.try(id);
      return;
    }
    this.unanswered.delete(id);
    if (!err || err.reason === "conflict") { // it exists; whether the user may read it, the subscription tells
      this.onAnswer(id);
      return;
    }
    this.knownIds.delete(id); // another call may succeed
    this.onAnswer(id, err);
  }
}
