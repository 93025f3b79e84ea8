import { Backoff } from "./backoff.js";
import type { Pending, SendOptions } from "./delivery.js";
import { asError, LeatError } from "./errors.js";
import { type Fault, type HeldMessage, type HeldTurn, messageDocument, Transcript, turnDocument } from "./transcript.js";
import type { Access, Ack, BatchFrame, ClientFrame, Command, Event, Message, Metadata, NewMessage, NewPart, Page, Part, Refusal, SnapshotFrame, Turn } from "./wire.js";

/**
 * loading: nothing has come yet. live: what is here is what the gateway has. stale: the connection is lost, and what is here
 * may be behind. gone: the conversation does not exist, or not for you; `error` says which.
 */
export type Phase = "loading" | "live" | "stale" | "gone";

/** A conversation at one moment. It never changes; what is the same in the next state is the same object. */
export interface ConversationState {
  readonly id: string;
  readonly phase: Phase;
  readonly title: string;
  readonly metadata: Metadata;
  readonly messages: readonly Message[];
  readonly turns: readonly Turn[];
  /** There are older messages; loadEarlier gets them. */
  readonly earlier: boolean;
  /** How many events of the log are known to be still to come, after a gap; 0 where it is caught up. */
  readonly behind: number;
  /** What was sent and is not among the messages yet, and what was refused. */
  readonly pending: readonly Pending[];
  readonly error?: LeatError;
}

/** What a conversation needs of its client. */
export interface Host {
  /** Sends a frame, or reports false where there is no connection: follow is called when there is one. */
  send(frame: ClientFrame): boolean;
  command(conversation: string, command: Command): Promise<Ack>;
  page(conversation: string, before: string, limit?: number): Promise<Page>;
  pending(conversation: string): Pending[];
  /** key is the message's idempotency key; without one it is its id. */
  deliver(conversation: string, message: NewMessage, options?: SendOptions, key?: string): Promise<Ack>;
  retry(key: string): Promise<Ack>;
  hold(key: string): boolean;
  release(key: string, message?: NewMessage): void;
  discard(key: string): boolean;
  /** It is made with its first message, which has not gone out yet. */
  unmade(conversation: string): boolean;
  /** Why there is no connection and will be none by itself; undefined if there is, or may be one soon. */
  refusal(): LeatError | undefined;
  /** The log is held up to seq. */
  seen(conversation: string, seq: number): void;
  /** It is watched from now on, or not any more. */
  use(conversation: Conversation): void;
  /** Called when the text of a finished part is not the gateway's. */
  mismatch(conversation: string, fault: Fault & { kind: "mismatch" }): void;
}

// How often a page is asked for that does not fit, because the conversation has moved on.
const pageTries = 4;

/**
 * One conversation: its state, kept up to date while anybody subscribes, and what can be done in it. Commands are carried out
 * once, also where their answer is lost; a person's messages are kept until the gateway has them.
 */
export class Conversation {
  private readonly transcript = new Transcript();
  private cursor = "";
  private epoch = "";
  private seq = 0; // of the cursor
  private head = 0; // seq of the newest event that the gateway is known to have
  private phase: Phase = "loading";
  private error: LeatError | undefined;
  private readonly listeners = new Set<() => void>();
  private readonly eventListeners = new Set<(events: readonly Event[]) => void>();
  private current: ConversationState | undefined;
  private readonly drawnMessages = new WeakMap<HeldMessage, { version: number; document: Message }>();
  private readonly drawnTurns = new WeakMap<HeldTurn, { version: number; document: Turn }>();
  private subscription = "";
  private subscriptions = 0;
  private heard = false; // frames belong to the subscription that was asked for last
  private shutOut = false; // error is the client's refusal, not the conversation's own
  private readonly backoff = new Backoff();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Made by Client.conversation. */
  constructor(readonly id: string, private readonly host: Host) {}

  /** How the conversation stands: the same object until something changes. */
  get state(): ConversationState {
    return (this.current ??= this.draw());
  }

  /** Somebody subscribes. */
  get watched(): boolean {
    return this.listeners.size > 0;
  }

  /** Calls the listener after each change of the state, until the function that it returns is called. */
  subscribe(listener: () => void): () => void {
    // A wrapper of its own, so that one function may subscribe twice.
    const own = () => listener();
    this.listeners.add(own);
    if (this.listeners.size === 1) {
      this.host.use(this);
      if (this.phase === "gone") [this.phase, this.error, this.current] = ["loading", undefined, undefined]; // it may be there by now
      const why = this.host.refusal();
      if (why) this.refuse(why);
      this.follow();
    }
    return () => {
      if (this.listeners.delete(own) && this.listeners.size === 0) this.unfollow();
    };
  }

  /** Calls the listener with the events of each batch, after they were applied. A snapshot has none. */
  onEvents(listener: (events: readonly Event[]) => void): () => void {
    const own = (events: readonly Event[]) => listener(events);
    this.eventListeners.add(own);
    const leave = this.subscribe(() => {});
    return () => {
      this.eventListeners.delete(own);
      leave();
    };
  }

  /**
   * Waits, while it follows the conversation, for a state that holds. It fails when the conversation is gone, when the token or the
   * page's origin is refused or was before, and by the signal.
   */
  until(holds: (state: ConversationState) => boolean, signal?: AbortSignal): Promise<ConversationState> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const s = this.state;
        if (signal?.aborted) reject(asError(signal.reason));
        else if (s.error && !s.error.temporary) reject(s.error);
        else if (s.phase !== "loading" && holds(s)) resolve(s);
        else return;
        leave();
        signal?.removeEventListener("abort", look);
      };
      const leave = this.subscribe(look);
      signal?.addEventListener("abort", look);
      look();
    });
  }

  /**
   * Says something; a turn answers it. The message is kept, also across a reload of the page, until the gateway has taken or
   * refused it. The promise tells which, and may be left alone.
   */
  send(message: string | NewMessage, options: SendOptions = {}): Promise<Ack> {
    return this.host.deliver(this.id, typeof message === "string" ? { text: message } : message, options);
  }

  /**
   * Says something anew: drops the message with that id and all that came after it, and sends it again, or another one in its
   * place. It is refused while a turn is unfinished.
   */
  async resend(id: string, message?: NewMessage, options: { agent?: string } = {}): Promise<Ack> {
    const find = (s: ConversationState) => s.messages.findIndex((m) => m.id === id);
    await this.until((s) => find(s) >= 0 || !s.earlier);
    while (find(this.state) <= 0 && this.state.earlier) await this.loadEarlier();
    const at = find(this.state);
    const old = this.state.messages[at];
    if (!old) throw new LeatError("the conversation has no such message", "unknown");
    await this.truncate(this.state.messages[at - 1]?.id);
    return this.host.deliver(this.id, { ...(message ?? { parts: old.parts.map(newPartOf) }), id }, options, crypto.randomUUID());
  }

  /** Sends a refused message again. */
  retry(key: string): Promise<Ack> {
    return this.host.retry(key);
  }

  /**
   * Keeps a waiting message back while a person changes it; release sends it. It reports false where it is too late: a connection
   * has taken it. After a reload it is not held any more.
   */
  hold(key: string): boolean {
    return this.host.hold(key);
  }

  /** Sends a message that was held, changed or as it was. */
  release(key: string, message?: NewMessage): void {
    this.host.release(key, message);
  }

  /** Forgets a refused message, or takes back one that is waiting. It reports false where it is too late for that. */
  discard(key: string): boolean {
    return this.host.discard(key);
  }

  /** Ends a turn; without one, every turn that is unfinished. What was said stays. */
  async stop(turn?: string): Promise<void> {
    const turns = turn ? [turn] : this.state.turns.filter((t) => t.state !== "ended" && independent(t)).map((t) => t.id);
    await Promise.all(turns.map((t) => this.host.command(this.id, { type: "stop", turn: t })));
  }

  /** Answers a request that a turn waits on. The first answer wins. */
  answer(turn: string, request: string, answer: { decision?: string; text?: string }): Promise<Ack> {
    return this.host.command(this.id, { type: "answer", turn, request, ...answer });
  }

  /** Adds a message that nothing answers. */
  inject(message: NewMessage): Promise<Ack> {
    return this.host.command(this.id, { type: "inject", message });
  }

  update(change: { title?: string; metadata?: Metadata }): Promise<Ack> {
    return this.host.command(this.id, { type: "update", ...change });
  }

  /** Drops the messages after the one with that id; without one, all. */
  truncate(after?: string): Promise<Ack> {
    return this.host.command(this.id, { type: "truncate", ...(after && { after }) });
  }

  /** Lets another subject of the owner's tenant in, or changes what it may do; "*" is everybody of the tenant. */
  share(subject: string, access: Access): Promise<Ack> {
    return this.host.command(this.id, { type: "share", subject, access });
  }

  /** Takes that back. Who reads by it is cut at once. */
  unshare(subject: string): Promise<Ack> {
    return this.host.command(this.id, { type: "unshare", subject });
  }

  delete(): Promise<Ack> {
    return this.host.command(this.id, { type: "delete" });
  }

  /** Gets up to limit messages older than those held; the gateway bounds how many. It reports whether there are still older ones. */
  async loadEarlier(limit?: number): Promise<boolean> {
    for (let i = 0; i < pageTries; i++) {
      const before = this.transcript.order[0]?.id;
      if (!before || !this.transcript.earlier) return false;
      const page = await this.host.page(this.id, before, limit);
      if (page.epoch === this.epoch && this.transcript.addPage(page, before, this.seq)) {
        this.changed();
        return this.transcript.earlier;
      }
    }
    throw new LeatError("the conversation moves on too quickly to get older messages", "busy");
  }

  /** For the client: there is a new connection, or one again after a while. */
  follow(): void {
    clearTimeout(this.timer);
    this.heard = false;
    this.readmit();
    if (this.listeners.size === 0 || this.phase === "gone" || this.host.unmade(this.id)) return;
    this.subscription = `s${++this.subscriptions}`;
    this.host.send({ type: "subscribe", id: this.subscription, conversation: this.id, ...(this.cursor && { after: this.cursor }) });
  }

  private unfollow(): void {
    this.host.use(this);
    clearTimeout(this.timer);
    this.heard = false;
    this.subscription = "";
    this.host.send({ type: "unsubscribe", conversation: this.id });
    if (this.phase === "live") this.become("stale");
  }

  /** For the client: the connection is lost; with why, if there will be no other one by itself. */
  lost(why?: LeatError): void {
    this.heard = false;
    if (why) this.refuse(why);
    else this.readmit();
    if (this.phase === "live" || why) this.become(this.phase === "live" ? "stale" : this.phase);
  }

  // readmit forgets a refusal once the client tries again.
  private readmit(): void {
    if (this.shutOut && !this.host.refusal()) [this.shutOut, this.error, this.current] = [false, undefined, undefined];
  }

  private refuse(why: LeatError): void {
    if (this.phase !== "gone") [this.error, this.shutOut, this.current] = [why, true, undefined];
  }

  /** For the client: messages on their way have changed. */
  pendingChanged(): void {
    if (this.listeners.size > 0 && !this.subscription) this.follow(); // what was to be made with its first message, which was taken back
    this.changed();
  }

  /** For the client: a frame of this conversation. */
  take(f: SnapshotFrame | BatchFrame | { type: "subscribed"; id?: string; head?: number } | ({ type: "error" } & Refusal)): void {
    switch (f.type) {
      case "subscribed":
        if (f.id !== this.subscription) return; // of one that was left
        this.heard = true;
        this.head = f.head ?? 0;
        if (this.cursor) this.become("live"); // there may be nothing new to come
        return;
      case "snapshot":
        if (!this.heard) return;
        this.transcript.reset(f.transcript, !!f.earlier);
        [this.cursor, this.epoch, this.seq] = [f.cursor, f.epoch, f.transcript.seq ?? 0];
        this.become("live");
        return;
      case "batch":
        if (this.heard) this.batch(f);
        return;
      case "error":
        if (this.subscription && (!f.id || f.id === this.subscription)) this.handleError(LeatError.of(f));
    }
  }

  private batch(f: BatchFrame): void {
    if (!this.cursor || !this.transcript.batch(f.events)) {
      const fault = this.transcript.fault;
      if (fault?.kind === "mismatch") this.host.mismatch(this.id, fault);
      this.requestSnapshot();
      return;
    }
    [this.cursor, this.seq] = [f.cursor, f.seq];
    this.backoff.reset();
    this.become("live");
    for (const l of this.eventListeners) l(f.events);
  }

  // again asks for a snapshot: what is held may be wrong, and what comes can't mend it. A gateway whose frames never fit is
  // not asked in a loop.
  private requestSnapshot(): void {
    this.cursor = "";
    this.heard = false;
    if (this.backoff.failures === 0) {
      this.backoff.failures = 1;
      this.follow();
    } else {
      this.timer = setTimeout(() => this.follow(), this.backoff.next());
    }
  }

  private handleError(err: LeatError): void {
    this.heard = false;
    if (err.temporary) {
      this.error = err;
      this.become("stale");
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.follow(), this.backoff.next(err.retryAfter));
      return;
    }
    this.error = err;
    this.become("gone");
  }

  private become(phase: Phase): void {
    if (phase === "stale" && this.phase === "loading") phase = "loading";
    this.phase = phase;
    if (phase === "live") {
      this.error = undefined;
      this.shutOut = false;
      this.host.seen(this.id, this.seq);
    }
    this.changed();
  }

  private changed(): void {
    this.current = undefined;
    for (const l of [...this.listeners]) l();
  }

  private draw(): ConversationState {
    const t = this.transcript;
    const known = (m: HeldMessage): Message => {
      let d = this.drawnMessages.get(m);
      if (d?.version !== m.version) this.drawnMessages.set(m, (d = { version: m.version, document: messageDocument(m) }));
      return d.document;
    };
    const knownTurn = (turn: HeldTurn): Turn => {
      let d = this.drawnTurns.get(turn);
      if (d?.version !== turn.version) this.drawnTurns.set(turn, (d = { version: turn.version, document: turnDocument(turn) }));
      return d.document;
    };
    return {
      id: this.id, phase: this.phase, title: t.title, metadata: { ...t.metadata }, messages: t.order.map(known), turns: [...t.turns.values()].map(knownTurn),
      earlier: t.earlier, behind: this.cursor && this.heard ? Math.max(0, this.head - this.seq) : 0, pending: this.host.pending(this.id).filter((p) => p.error || !t.messages.has(p.message.id ?? p.key)), ...(this.error && { error: this.error }),
    };
  }
}

const newPartOf = ({ kind, text, media, data, history }: Part): NewPart => ({
  kind, ...(text && { text }), ...(media && { media }), ...(data !== undefined && { data }), ...(history && { history }),
});

/** What a message shows as its text: its text and status parts that are not empty, each after its join. */
export function visibleText(m: Message): string {
  let out = "";
  for (const p of m.parts) {
    if ((p.kind !== "text" && p.kind !== "status") || !p.text) continue;
    if (out) out += p.join ?? "";
    out += p.text;
  }
  return out;
}

/** Whether a turn ends by itself: it lies inside no other turn, or may outlive the one around it. */
export const independent = (t: Turn): boolean => !t.parent || !!t.source;

/** What a turn's assistant messages show, joined by a blank line. */
export function turnText(state: Pick<ConversationState, "messages">, turn: string): string {
  return state.messages.filter((m) => m.turn === turn && m.role === "assistant").map(visibleText).filter((t) => t !== "").join("\n\n");
}
