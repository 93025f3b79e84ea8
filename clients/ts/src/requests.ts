import { Backoff } from "./backoff.js";
import { LeatError } from "./errors.js";
import type { AckFrame, ClientFrame, Refusal } from "./wire.js";

/** The number of control frames that wait for a connection; the oldest is dropped first. */
export const queueLimit = 32;

// How often a request is repeated after a temporary refusal.
const maxRepeats = 5;

type RequestFrame = Extract<ClientFrame, { type: "command" | "create" }>;

interface PendingRequest {
  frame: RequestFrame;
  resolve(ack: AckFrame): void;
  reject(err: LeatError): void;
  backoff: Backoff;
  timer?: ReturnType<typeof setTimeout>;
}

/**
 * The control frames without an answer: stops, answers, renames, new conversations. An answer may be lost with a connection, so
 * each frame has a key and is sent again on the next connection. Messages use the outbox instead.
 */
export class Requests {
  private readonly pending = new Map<string, PendingRequest>(); // by the frame's id, oldest first
  private ids = 0;

  /** send returns false without a connection. */
  constructor(private readonly send: (frame: ClientFrame) => boolean) {}

  /** Sends a request, now or when there is a connection. The promise rejects with the gateway's refusal. */
  add(frame: { type: "command"; conversation: string; command: Extract<ClientFrame, { type: "command" }>["command"] } | Omit<Extract<ClientFrame, { type: "create" }>, "id">): Promise<AckFrame> {
    const request = { ...frame, id: `r${++this.ids}` };
    return new Promise((resolve, reject) => {
      this.pending.set(request.id, { frame: request, resolve, reject, backoff: new Backoff() });
      if (!this.send(request)) this.trim();
    });
  }

  private trim(): void {
    for (const [id, w] of this.pending) {
      if (this.pending.size <= queueLimit) return;
      this.end(id, w);
      w.reject(new LeatError(`${queueLimit} newer requests wait for a connection; this ${name(w.frame)} was dropped`, "dropped"));
    }
  }

  /** Sends all unanswered requests over a new connection. */
  flush(): void {
    for (const w of this.pending.values()) {
      clearTimeout(w.timer);
      this.send(w.frame);
    }
  }

  /** Handles an answer. It returns false if the answer belongs to another request. */
  take(f: AckFrame | ({ type: "rejected" } & Refusal)): boolean {
    const w = this.pending.get(f.id ?? "");
    if (!w || !f.id) return false;
    if (f.type === "rejected") {
      const err = LeatError.of(f);
      if (err.temporary && w.backoff.failures < maxRepeats) {
        w.timer = setTimeout(() => this.send(w.frame), w.backoff.next(err.retryAfter));
        return true;
      }
      this.end(f.id, w);
      w.reject(err);
    } else {
      this.end(f.id, w);
      w.resolve(f);
    }
    return true;
  }

  /** Fails all unanswered requests. */
  fail(cause: LeatError): void {
    for (const [id, w] of this.pending) {
      this.end(id, w);
      w.reject(cause);
    }
  }

  private end(id: string, w: PendingRequest): void {
    clearTimeout(w.timer);
    this.pending.delete(id);
  }
}

const name = (f: RequestFrame): string => (f.type === "command" ? f.command.type : f.type);
