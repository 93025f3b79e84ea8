import type { Refusal } from "./wire.js";

// Reasons for which a repeated request may succeed.
const temporaryReasons = new Set(["unavailable", "draining", "busy", "queue_full", "timeout", "internal", "network", "restarting"]);

/**
 * The gateway's refusal of a request, or the reason why it can't be reached. The message is for people and may change; the reason
 * is for programs. Besides the reasons in docs/protocol.md the client has its own: `network` (no connection), `restarting` (the
 * gateway stops), `dropped` (the send queue was full), `discarded` (the user deleted the message), `closed` (the client was
 * closed), `protocol` (an unsupported gateway).
 */
export class LeatError extends Error {
  override readonly name = "LeatError";
  readonly reason: string;
  /** The HTTP status; 0 if the error came over a socket. */
  readonly status: number;
  /** Milliseconds until a retry is useful; 0 if unknown. */
  readonly retryAfter: number;

  constructor(message: string, reason: string, status = 0, retryAfter = 0) {
    super(message);
    this.reason = reason;
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Repeating the same request may succeed. */
  get temporary(): boolean {
    return temporaryReasons.has(this.reason) || this.retryAfter > 0;
  }

  static of(f: Refusal): LeatError {
    return new LeatError(f.error, f.reason || "internal", 0, f.retryAfter || 0);
  }
}

/** Returns the reason of an aborted signal as an error. */
export const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));

/** Returns the error as a LeatError. Any other exception counts as a network failure. */
export function asLeatError(err: unknown): LeatError {
  if (err instanceof LeatError) return err;
  const cause = err instanceof Error && err.cause instanceof Error ? `: ${err.cause.message}` : "";
  return new LeatError(err instanceof Error ? err.message + cause : String(err), "network");
}
