import type { Refusal } from "./wire.js";

// Reasons that a later repeat of the same request may mend.
const passing = new Set(["unavailable", "draining", "busy", "queue_full", "timeout", "internal", "network", "restarting"]);

/**
 * What the gateway says of a request that it did not carry out, or why it can't be reached. The message is for people and may
 * change, the reason is for programs: those of docs/protocol.md, and of this client itself `network` (no connection),
 * `restarting` (it was ended by a gateway that stops), `dropped` (pushed out of the send queue), `discarded` (a message that was
 * taken back), `closed` (the client was closed), `protocol` (no gateway that it knows).
 */
export class LeatError extends Error {
  override readonly name = "LeatError";
  readonly reason: string;
  /** HTTP's; 0 for what came over a socket. */
  readonly status: number;
  /** Milliseconds until a repeat is worth it; 0 says nothing. */
  readonly retryAfter: number;

  constructor(message: string, reason: string, status = 0, retryAfter = 0) {
    super(message);
    this.reason = reason;
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** The same request may succeed later. */
  get temporary(): boolean {
    return passing.has(this.reason) || this.retryAfter > 0;
  }

  static of(f: Refusal): LeatError {
    return new LeatError(f.error, f.reason || "internal", 0, f.retryAfter || 0);
  }
}

/** Returns the reason of an aborted signal as an error. */
export const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));

/** The error as a LeatError; anything else that is thrown is a failure of the network. */
export function asLeatError(err: unknown): LeatError {
  if (err instanceof LeatError) return err;
  const cause = err instanceof Error && err.cause instanceof Error ? `: ${err.cause.message}` : "";
  return new LeatError(err instanceof Error ? err.message + cause : String(err), "network");
}
