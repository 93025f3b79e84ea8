import { Backoff } from "./backoff.js";
import { asLeatError, LeatError } from "./errors.js";
import type { Dial, Link } from "./link.js";
import { toConsole, type Warn } from "./warn.js";
import type { ClientFrame, ServerFrame } from "./wire.js";

// The gateway sends at least one frame every 15 s. If the connection is silent for longer than silenceLimit, or the page, the
// network or the user makes it doubtful, the client sends a ping, and the gateway has pongLimit to send anything.
const silenceLimit = 17_000;
const pongLimit = 5_000;
/** The time after which a stalled connection is replaced, in milliseconds. */
export const stallLimit = silenceLimit + pongLimit;
// The largest factor by which the limits grow after stalls. On a slow link a large frame takes longer than the limits, and would
// never arrive if every connection were cut after the same time.
const maxPatience = 16;
// Data received within this time proves that the connection is alive, in milliseconds.
const recentLimit = 5_000;
// The time limit for the gateway's hello, in milliseconds.
const greetLimit = 15_000;
// If a token expires sooner than this after the hello, the client waits before it reconnects. Otherwise a source of expired tokens
// would cause a loop. Milliseconds.
const shortLifetime = 10_000;
// The number of different tokens that may be refused in a row before the client stops asking for others.
const maxRefusals = 3;

/** A token, or a function that returns one. It is called before each connection, so that short-lived tokens can be renewed. */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

/** Returns the token to use now, or an empty string. */
export async function tokenOf(source: TokenSource | undefined): Promise<string> {
  return (typeof source === "function" ? await source() : source) ?? "";
}

/**
 * connecting: the first attempt. reconnecting: the connection was lost, or the first attempt failed. failed: 15 attempts in a row
 * have failed, and the client probes every 30 s. unauthorized: the token was refused; the client retries when there is another one,
 * or when connect is called. forbidden: the gateway doesn't allow this page's origin, or the host name in its address; error names
 * the setting. The client retries when the page becomes visible, or when connect is called.
 */
export type ConnectionState = "idle" | "connecting" | "connected" | "reconnecting" | "failed" | "unauthorized" | "forbidden" | "closed";

/** The states in which the client doesn't retry by itself. */
export const refusedStates: readonly ConnectionState[] = ["unauthorized", "forbidden"];

// A connection that has lasted this long counts as stable, in milliseconds: when it breaks, the waits start again from the
// shortest.
const stableAge = 10_000;
// Frames that don't prove that a connection works: a gateway can send them before it fails at the client's actual requests.
const idleFrames: ReadonlySet<string> = new Set(["hello", "subscribed", "status", "error", "ping", "pong", "authenticated", "expiring"]);

export interface ConnectionEvents {
  state(state: ConnectionState, error: LeatError | undefined): void;
  /** The gateway has sent its hello: frames may be sent. All unanswered frames have to be sent again. */
  ready(): void;
  frame(frame: ServerFrame): void;
}

/**
 * Keeps a connection to the gateway: it connects, watches the heartbeats, and reconnects with growing waits until a connection
 * works. It retries at once when the network is back, the page becomes visible, or a heartbeat is missing.
 */
export class Connection {
  state: ConnectionState = "idle";
  error: LeatError | undefined;
  /** The time of the next attempt, in epoch milliseconds; 0 if none is scheduled. */
  retryAt = 0;
  /** The time of the last data from the gateway, in epoch milliseconds; 0 if there was none. */
  lastHeard = 0;
  private patience = 1;
  private isProbing = false; // a ping was sent, and nothing has arrived since
  private link: Link | null = null;
  private isGreeted = false;
  private attempt = 0; // counts connections, so that late callbacks of an earlier one are ignored
  private readonly backoff = new Backoff();
  private timer: ReturnType<typeof setTimeout> | undefined; // for the next attempt
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private greetedAt = 0; // the time of the last hello, epoch milliseconds
  private readonly pendingSnapshots = new Set<string>(); // subscribed conversations whose snapshot hasn't arrived
  private refusedTokens: string[] = []; // refused since the last hello
  private unwatch: () => void = () => {};

  constructor(private readonly dial: Dial, private readonly token: TokenSource | undefined, private readonly events: ConnectionEvents,
    private readonly warn: Warn = toConsole) {}

  get connected(): boolean {
    return this.state === "connected";
  }

  /** Connects, or retries at once. */
  connect(): void {
    if (this.state === "closed") throw new LeatError("the client is closed", "closed");
    if (this.state === "idle") this.unwatch = this.watchPage();
    if (this.link || this.state === "connected") return;
    this.backoff.reset();
    if (refusedStates.includes(this.state)) {
      this.refusedTokens = [];
      this.setState("connecting"); // now, so that requests from here on wait for this attempt
    }
    void this.open();
  }

  close(): void {
    if (this.state === "closed") return;
    this.unwatch();
    this.disconnect();
    this.setState("closed");
  }

  /** Called when the connection is about to be used: probes it if it may have stalled unnoticed. */
  ensureAlive(): void {
    if (this.connected && Date.now() - this.lastHeard > recentLimit) this.probe();
  }

  /** Sends a frame. It returns false if there is no connection for it. */
  send(frame: ClientFrame): boolean {
    if (!this.isGreeted || !this.link) return false;
    if (frame.type === "subscribe" && !frame.after) this.pendingSnapshots.add(frame.conversation);
    else if (frame.type === "unsubscribe") this.pendingSnapshots.delete(frame.conversation);
    this.link.send(frame);
    return true;
  }

  private setState(state: ConnectionState, error?: LeatError): void {
    this.state = state;
    this.error = error;
    this.events.state(state, error);
  }

  // disconnect drops the connection and ignores its later callbacks.
  private disconnect(): void {
    this.attempt++;
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.retryAt = 0;
    if (this.isGreeted && this.pendingSnapshots.size === 0 && Date.now() - this.greetedAt >= stableAge) this.backoff.reset();
    this.pendingSnapshots.clear();
    this.isGreeted = false;
    const link = this.link;
    this.link = null;
    link?.close();
  }

  private async open(): Promise<void> {
    this.disconnect();
    const generation = this.attempt;
    if (this.state === "idle") this.setState("connecting");
    let token: string;
    try {
      token = await tokenOf(this.token);
    } catch (err) {
      if (generation === this.attempt) this.retryLater(asLeatError(err));
      return;
    }
    if (generation !== this.attempt) return;
    if (this.refusedTokens.includes(token)) {
      this.refuse();
      return;
    }
    if (refusedStates.includes(this.state)) this.setState("connecting");
    this.isProbing = false;
    this.watch(greetLimit, () => this.retryLater(new LeatError("the gateway doesn't answer", "network")));
    this.link = this.dial(token, {
      frame: (f) => generation === this.attempt && this.take(f),
      alive: () => generation === this.attempt && this.isGreeted && this.recordActivity(),
      closed: (cause) => generation === this.attempt && this.handleClose(cause, token),
    });
  }

  private take(f: ServerFrame): void {
    if (f.type === "hello") {
      if (f.protocol !== "leat/1") {
        this.disconnect();
        this.setState("failed", new LeatError(`unsupported protocol ${JSON.stringify(f.protocol)}: this client supports "leat/1"`, "protocol"));
        return;
      }
      this.isGreeted = true;
      this.greetedAt = Date.now();
      this.refusedTokens = [];
      this.recordActivity();
      this.setState("connected");
      this.events.ready();
      return;
    }
    if (this.isGreeted) this.recordActivity();
    this.progress(f);
    if (f.type === "ping") this.send({ type: "pong" });
    else if (f.type === "expiring") void this.renew();
    else if (f.type !== "authenticated") this.events.frame(f);
  }

  // progress resets the waits once a connection has delivered every requested snapshot. A hello isn't enough: if the connection
  // broke in each snapshot, the client would reconnect in a loop.
  private progress(f: ServerFrame): void {
    if ("conversation" in f && f.conversation && (f.type === "snapshot" || f.type === "error")) this.pendingSnapshots.delete(f.conversation);
    if (this.pendingSnapshots.size === 0 && !idleFrames.has(f.type)) this.backoff.reset();
  }

  // renew sends a new token before the old one expires. If there is none, the connection ends with the old token, and the next
  // connection asks again.
  private async renew(): Promise<void> {
    if (typeof this.token !== "function") return;
    const generation = this.attempt;
    try {
      const token = await tokenOf(this.token);
      if (generation === this.attempt && token) this.send({ type: "auth", token });
    } catch (err) {
      this.warn("could not renew the token:", err);
    }
  }

  private handleClose(cause: LeatError, token: string): void {
    if (cause.reason === "expired" && this.isGreeted) {
      this.refusedTokens.push(token); // the gateway may still accept it for a moment, only to end the connection again
      if (Date.now() - this.greetedAt < shortLifetime) this.retryLater(cause);
      else this.reconnect(cause);
    } else if (cause.reason === "unauthorized" || cause.reason === "expired") {
      this.refusedTokens.push(token);
      // A token source may have a better one; a fixed token stays invalid.
      if (typeof this.token === "function" && this.refusedTokens.length < maxRefusals) void this.open();
      else this.refuse(cause);
    } else if (cause.reason === "forbidden") {
      this.disconnect();
      this.setState("forbidden", cause); // the Host or Origin is not allowed
    } else {
      this.retryLater(cause);
    }
  }

  private refuse(cause?: LeatError): void {
    this.disconnect();
    if (!cause && this.state === "unauthorized") return; // the token hasn't changed
    this.setState("unauthorized", cause ?? this.error ?? new LeatError("the token was refused", "unauthorized"));
  }

  // retryLater schedules the next attempt.
  private retryLater(cause: LeatError): void {
    this.disconnect();
    const wait = this.backoff.next(cause.retryAfter);
    this.timer = setTimeout(() => void this.open(), wait);
    this.retryAt = Date.now() + wait;
    this.setState(this.backoff.failed ? "failed" : "reconnecting", cause);
  }

  // retryNow retries at once, because the network or the user is back.
  private retryNow(): void {
    if (this.connected) {
      this.probe();
    } else if (this.state === "reconnecting" || this.state === "failed") {
      this.backoff.reset();
      void this.open();
    } else if (this.state === "forbidden" || (this.state === "unauthorized" && typeof this.token === "function")) {
      void this.open(); // by now the gateway may allow the origin, or there may be another token
    }
  }

  // probe sends a ping, and replaces the connection if nothing arrives in time.
  private probe(): void {
    if (this.isProbing) return;
    this.isProbing = true;
    this.send({ type: "ping" });
    this.watch(pongLimit * this.patience, () => this.handleSilence());
  }

  private handleSilence(): void {
    this.patience = Math.min(2 * this.patience, maxPatience);
    this.reconnect(new LeatError("no data from the gateway", "network"));
  }

  // reconnect replaces the connection at once.
  private reconnect(cause: LeatError): void {
    this.disconnect();
    this.setState("reconnecting", cause);
    void this.open();
  }

  // recordActivity is called for all received data.
  private recordActivity(): void {
    this.lastHeard = Date.now();
    this.isProbing = false;
    if (this.lastHeard - this.greetedAt > stallLimit * this.patience) this.patience = 1;
    this.watch(silenceLimit * this.patience, () => this.probe());
  }

  private watch(limit: number, onTimeout: () => void): void {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(onTimeout, limit);
  }

  private watchPage(): () => void {
    const onOnline = () => this.retryNow();
    // An offline event may be wrong, at least for a gateway on the same machine, but a socket may not notice a lost network for
    // long.
    const onOffline = () => this.connected && this.probe();
    const onVisible = () => document.visibilityState === "visible" && this.retryNow();
    const page = typeof document === "undefined" ? undefined : document;
    globalThis.addEventListener?.("online", onOnline);
    globalThis.addEventListener?.("offline", onOffline);
    page?.addEventListener("visibilitychange", onVisible);
    return () => {
      globalThis.removeEventListener?.("online", onOnline);
      globalThis.removeEventListener?.("offline", onOffline);
      page?.removeEventListener("visibilitychange", onVisible);
    };
  }
}
