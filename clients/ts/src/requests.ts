import { Backoff } from "./backoff.js";
import { LeatError } from "./errors.js";
import type { AckFrame, ClientFrame, Refusal } from "./wire.js";

/** How many control frames wait for a connection; when there are more, the oldest is dropped. */
export const queueLimit = 32;

// How often a request is repeated that the gateway refuses for a reason that may pass.
const repeats = 5;

type RequestFrame = Extract<ClientFrame, { type: "command" | "create" }>;

interface PendingRequest {
  frame: RequestFrame;
  resolve(ack: AckFrame): void;
  reject(err: LeatError): void;
  backoff: Backoff;
  timer?: ReturnType<typeof setTimeout>;
}

/**
 * The control frames that wait for their answer: stops, answers, renames, new conversations. Their answer may be lost with a
 * connection; so each carries a key, and is sent again on the next one. What a person says goes through the outbox instead.
 */
export class Requests {
  private readonly waiting = new Map<string, PendingRequest>(); // by the frame's id, the oldest first
  private ids = 0;

  /** send reports false where there is no connection. */
  constructor(private readonly send: (frame: ClientFrame) => boolean) {}

  /** Sends a request, now or when there is a connection. It fails with what the gateway says against it. */
  add(frame: { type: "command"; conversation: string; command: Extract<ClientFrame, { type: "command" }>["command"] } | Omit<Extract<ClientFrame, { type: "create" }>, "id">): Promise<AckFrame> {
    const whole = { ...frame, id: `r${++this.ids}` };
    return new Promise((resolve, reject) => {
      this.waiting.set(whole.id, { frame: whole, resolve, reject, backoff: new Backoff() });
      if (!this.send(whole)) this.trim();
    });
  }

  private trim(): void {
    for (const [id, w] of this.waiting) {
      if (this.waiting.size <= queueLimit) return;
      this.end(id, w);
      w.reject(new LeatError(`${queueLimit} newer requests wait for a connection; this ${name(w.frame)} was dropped`, "dropped"));
    }
  }

  /** Sends all that has no answer yet; there is a new connection. */
  flush(): void {
    for (const w of this.waiting.values()) {
      clearTimeout(w.timer);
      this.send(w.frame);
    }
  }

  /** Takes an answer. It reports false for one of something else. */
  take(f: AckFrame | ({ type: "rejected" } & Refusal)): boolean {
    const w = this.waiting.get(f.id ?? "");
    if (!w || !f.id) return false;
    if (f.type === "rejected") {
      const err = LeatError.of(f);
      if (err.temporary && w.backoff.failures < repeats) {
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

  /** Fails all that has no answer yet. */
  fail(why: LeatError): void {
    for (const [id, w] of this.waiting) {
      this.end(id, w);
      w.reject(why);
    }
  }

  private end(id: string, w: PendingRequest): void {
    clearTimeout(w.timer);
    this.waiting.delete(id);
  }
}

const name = (f: RequestFrame): string => (f.type === "command" ? f.command.type : f.type);
