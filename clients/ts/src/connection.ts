import { Backoff } from "./backoff.js";
import { asLeatError, LeatError } from "./errors.js";
import type { Dial, Link } from "./link.js";
import { toConsole, type Warn } from "./warn.js";
import type { ClientFrame, ServerFrame } from "./wire.js";

// The gateway says something at least every 15 s. A connection that is silent for longer than this is asked whether it lives,
// and so is one that the page, the network or a person makes doubtful; then it has pongLimit to say anything.
const silence = 17_000;
const pongLimit = 5_000;
/** After how long a connection that has stalled, without being closed, is made anew; in milliseconds. */
export const stallLimit = silence + pongLimit;
// How many times that a connection gets after others were left for their silence: over a slow link a large frame needs longer,
// and would never come whole if it were cut each time.
const patient = 16;
// What was heard this long ago or less proves that the connection lives.
const fresh = 5_000;
// How long a connection may take to be greeted.
const greetLimit = 15_000;
// A connection whose token ends sooner than this gets no next one at once: a source of dead tokens would make it a loop.
const shortLived = 10_000;
// How many different tokens in a row may be refused before the client stops asking for others.
const refusals = 3;

/** A token, or what makes one; it is asked before each connection, so that a short-lived token can be renewed. */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

/** The token to use now; empty where there is none. */
export async function tokenOf(source: TokenSource | undefined): Promise<string> {
  return (typeof source === "function" ? await source() : source) ?? "";
}

/**
 * connecting: the first try. reconnecting: it was there, or the first try failed. failed: 15 tries in a row have failed, and
 * it probes every 30 s. unauthorized: the token was refused; it tries again when there is another one, or connect is called.
 * forbidden: the gateway doesn't allow this page's origin, or the host name that it is addressed by; error names the setting that
 * would. It tries again when the page is seen again, or connect is called.
 */
export type ConnectionState = "idle" | "connecting" | "connected" | "reconnecting" | "failed" | "unauthorized" | "forbidden" | "closed";

/** The states in which the client does not try again by itself. */
export const refusedStates: readonly ConnectionState[] = ["unauthorized", "forbidden"];

// A connection that lasts as long as this was a good one, in milliseconds: the next one that breaks is tried again at once.
const lasting = 10_000;
// Frames that prove nothing about a connection: a gateway can send them before it fails at what the client wants.
const idleFrames: ReadonlySet<string> = new Set(["hello", "subscribed", "status", "error", "ping", "pong", "authenticated", "expiring"]);

export interface ConnectionEvents {
  state(state: ConnectionState, error: LeatError | undefined): void;
  /** The gateway has greeted: frames may be sent. All that was sent before has to be sent again. */
  ready(): void;
  frame(frame: ServerFrame): void;
}

/**
 * Keeps a connection to the gateway: makes it, watches its heartbeats, and makes it anew, waiting longer each time until the
 * gateway has greeted; at once when the network is back, the page is seen again, or a heartbeat is missed.
 */
export class Connection {
  state: ConnectionState = "idle";
  error: LeatError | undefined;
  /** When the next try begins, epoch milliseconds; 0 where none is planned. */
  retryAt = 0;
  /** When the gateway was heard last, epoch milliseconds; 0 is never. */
  heard = 0;
  private patience = 1;
  private asked = false; // whether the connection lives; nothing has come since
  private link: Link | null = null;
  private greeted = false;
  private attempt = 0; // counts connections, so that what belongs to one that was left is known
  private readonly backoff = new Backoff();
  private timer: ReturnType<typeof setTimeout> | undefined; // of the next try
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private since = 0; // when the gateway greeted last, epoch milliseconds
  private readonly awaited = new Set<string>(); // conversations that were subscribed to, and of which no state has come yet
  private refused: string[] = []; // tokens, since the gateway greeted last
  private unwatch: () => void = () => {};

  constructor(private readonly dial: Dial, private readonly token: TokenSource | undefined, private readonly events: ConnectionEvents,
    private readonly warn: Warn = toConsole) {}

  get connected(): boolean {
    return this.state === "connected";
  }

  /** Begins to connect, or tries again at once. */
  connect(): void {
    if (this.state === "closed") throw new LeatError("the client is closed", "closed");
    if (this.state === "idle") this.unwatch = this.watchPage();
    if (this.link || this.state === "connected") return;
    this.backoff.reset();
    if (refusedStates.includes(this.state)) {
      this.refused = [];
      this.become("connecting"); // at once, so that what is asked from now on waits for this try
    }
    void this.open();
  }

  close(): void {
    if (this.state === "closed") return;
    this.unwatch();
    this.leave();
    this.become("closed");
  }

  /** Somebody needs the connection now: one that may have stalled unseen must prove that it lives. */
  need(): void {
    if (this.connected && Date.now() - this.heard > fresh) this.prove();
  }

  /** Sends a frame. It reports false where there is no connection that could take it. */
  send(frame: ClientFrame): boolean {
    if (!this.greeted || !this.link) return false;
    if (frame.type === "subscribe" && !frame.after) this.awaited.add(frame.conversation);
    else if (frame.type === "unsubscribe") this.awaited.delete(frame.conversation);
    this.link.send(frame);
    return true;
  }

  private become(state: ConnectionState, error?: LeatError): void {
    this.state = state;
    this.error = error;
    this.events.state(state, error);
  }

  // leave drops the connection, and whatever is still to come of it.
  private leave(): void {
    this.attempt++;
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.retryAt = 0;
    if (this.greeted && this.awaited.size === 0 && Date.now() - this.since >= lasting) this.backoff.reset();
    this.awaited.clear();
    this.greeted = false;
    const link = this.link;
    this.link = null;
    link?.close();
  }

  private async open(): Promise<void> {
    this.leave();
    const mine = this.attempt;
    if (this.state === "idle") this.become("connecting");
    let token: string;
    try {
      token = await tokenOf(this.token);
    } catch (err) {
      if (mine === this.attempt) this.retryLater(asLeatError(err));
      return;
    }
    if (mine !== this.attempt) return;
    if (this.refused.includes(token)) {
      this.refuse();
      return;
    }
    if (refusedStates.includes(this.state)) this.become("connecting");
    this.asked = false;
    this.watch(greetLimit, () => this.retryLater(new LeatError("the gateway does not answer", "network")));
    this.link = this.dial(token, {
      frame: (f) => mine === this.attempt && this.take(f),
      alive: () => mine === this.attempt && this.greeted && this.hear(),
      closed: (why) => mine === this.attempt && this.handleClose(why, token),
    });
  }

  private take(f: ServerFrame): void {
    if (f.type === "hello") {
      if (f.protocol !== "leat/1") {
        this.leave();
        this.become("failed", new LeatError(`the gateway speaks ${JSON.stringify(f.protocol)}, not "leat/1"`, "protocol"));
        return;
      }
      this.greeted = true;
      this.since = Date.now();
      this.refused = [];
      this.hear();
      this.become("connected");
      this.events.ready();
      return;
    }
    if (this.greeted) this.hear();
    this.progress(f);
    if (f.type === "ping") this.send({ type: "pong" });
    else if (f.type === "expiring") void this.renew();
    else if (f.type !== "authenticated") this.events.frame(f);
  }

  // progress begins the waits again from the shortest, once a connection has brought what it was made for. That the gateway has
  // greeted is not enough: a connection that breaks in each snapshot would be made again in a loop.
  private progress(f: ServerFrame): void {
    if ("conversation" in f && f.conversation && (f.type === "snapshot" || f.type === "error")) this.awaited.delete(f.conversation);
    if (this.awaited.size === 0 && !idleFrames.has(f.type)) this.backoff.reset();
  }

  // renew sends another token before the old one ends. Where there is none, the connection ends with the old one, and the next
  // one asks again.
  private async renew(): Promise<void> {
    if (typeof this.token !== "function") return;
    const mine = this.attempt;
    try {
      const token = await tokenOf(this.token);
      if (mine === this.attempt && token) this.send({ type: "auth", token });
    } catch (err) {
      this.warn("there is no new token yet:", err);
    }
  }

  private handleClose(why: LeatError, token: string): void {
    if (why.reason === "expired" && this.greeted) {
      this.refused.push(token); // the gateway may take it for a while yet, only to end it again
      if (Date.now() - this.since < shortLived) this.retryLater(why);
      else this.reconnect(why);
    } else if (why.reason === "unauthorized" || why.reason === "expired") {
      this.refused.push(token);
      // A source of tokens may have a better one; a fixed token stays wrong.
      if (typeof this.token === "function" && this.refused.length < refusals) void this.open();
      else this.refuse(why);
    } else if (why.reason === "forbidden") {
      this.leave();
      this.become("forbidden", why); // the Host or Origin is not allowed
    } else {
      this.retryLater(why);
    }
  }

  private refuse(why?: LeatError): void {
    this.leave();
    if (!why && this.state === "unauthorized") return; // it is the same token still
    this.become("unauthorized", why ?? this.error ?? new LeatError("the token was refused", "unauthorized"));
  }

  // again tries once more, after a while.
  private retryLater(why: LeatError): void {
    this.leave();
    const wait = this.backoff.next(why.retryAfter);
    this.timer = setTimeout(() => void this.open(), wait);
    this.retryAt = Date.now() + wait;
    this.become(this.backoff.failed ? "failed" : "reconnecting", why);
  }

  // hurry tries at once: the network or the person is back.
  private hurry(): void {
    if (this.connected) {
      this.prove();
    } else if (this.state === "reconnecting" || this.state === "failed") {
      this.backoff.reset();
      void this.open();
    } else if (this.state === "forbidden" || (this.state === "unauthorized" && typeof this.token === "function")) {
      void this.open(); // the gateway may allow it, or there may be another token, by now
    }
  }

  // prove asks whether the connection lives; it is made anew where nothing comes.
  private prove(): void {
    if (this.asked) return;
    this.asked = true;
    this.send({ type: "ping" });
    this.watch(pongLimit * this.patience, () => this.handleSilence());
  }

  private handleSilence(): void {
    this.patience = Math.min(2 * this.patience, patient);
    this.reconnect(new LeatError("the gateway has fallen silent", "network"));
  }

  // anew leaves a connection and makes another one at once.
  private reconnect(why: LeatError): void {
    this.leave();
    this.become("reconnecting", why);
    void this.open();
  }

  // hear is called with all that comes.
  private hear(): void {
    this.heard = Date.now();
    this.asked = false;
    if (this.heard - this.since > stallLimit * this.patience) this.patience = 1;
    this.watch(silence * this.patience, () => this.prove());
  }

  private watch(limit: number, late: () => void): void {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(late, limit);
  }

  private watchPage(): () => void {
    const online = () => this.hurry();
    // A browser that says so may be wrong, of a gateway on the same machine at least; and a socket may not notice for long.
    const offline = () => this.connected && this.prove();
    const seen = () => document.visibilityState === "visible" && this.hurry();
    const page = typeof document === "undefined" ? undefined : document;
    globalThis.addEventListener?.("online", online);
    globalThis.addEventListener?.("offline", offline);
    page?.addEventListener("visibilitychange", seen);
    return () => {
      globalThis.removeEventListener?.("online", online);
      globalThis.removeEventListener?.("offline", offline);
      page?.removeEventListener("visibilitychange", seen);
    };
  }
}
