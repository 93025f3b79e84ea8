import { Backoff } from "./backoff.js";
import type { Pending, SendOptions } from "./delivery.js";
import { asError, LeatError } from "./errors.js";
import { type Fault, type MessageRecord, type TurnRecord, messageDocument, Transcript, turnDocument } from "./transcript.js";
import type { Access, Ack, BatchFrame, ClientFrame, Command, Event, Message, Metadata, NewMessage, NewPart, Page, Part, Refusal, SnapshotFrame, Turn } from "./wire.js";

/**
 * loading: nothing has arrived yet. live: the state is up to date. stale: the connection is lost, and the state may be out of date.
 * gone: the conversation doesn't exist or isn't shared with the user; `error` explains which.
 */
export type Phase = "loading" | "live" | "stale" | "gone";

/** An immutable state of a conversation. Unchanged parts of the next state are the same objects. */
export interface ConversationState {
  readonly id: string;
  readonly phase: Phase;
  readonly title: string;
  readonly metadata: Metadata;
  readonly messages: readonly Message[];
  readonly turns: readonly Turn[];
  /** There are older messages; loadEarlier loads them. */
  readonly earlier: boolean;
  /** The number of events that are still missing after a gap; 0 if the state is up to date. */
  readonly behind: number;
  /** Messages that were sent and aren't among `messages` yet, and refused ones. */
  readonly pending: readonly Pending[];
  readonly error?: LeatError;
}

/** The part of Client that a conversation uses. */
export interface Host {
  /** Sends a frame, or returns false without a connection; follow is called when there is one. */
  send(frame: ClientFrame): boolean;
  command(conversation: string, command: Command): Promise<Ack>;
  page(conversation: string, before: string, limit?: number): Promise<Page>;
  pending(conversation: string): Pending[];
  /** key is the message's idempotency key; the default is the message's id. */
  deliver(conversation: string, message: NewMessage, options?: SendOptions, key?: string): Promise<Ack>;
  retry(key: string): Promise<Ack>;
  hold(key: string): boolean;
  release(key: string, message?: NewMessage): void;
  discard(key: string): boolean;
  /** Its first message will create the conversation, and hasn't been sent yet. */
  isUncreated(conversation: string): boolean;
  /** The reason why the client has stopped reconnecting; undefined if it hasn't. */
  refusal(): LeatError | undefined;
  /** The conversation has applied its log up to seq. */
  advance(conversation: string, seq: number): void;
  /** Called when the conversation gains its first subscriber or loses its last. */
  use(conversation: Conversation): void;
  /** Called when the text of a finished part differs from the gateway's. */
  mismatch(conversation: string, fault: Fault & { kind: "mismatch" }): void;
}

// How often loadEarlier requests a page again because the conversation changed meanwhile.
const pageTries = 4;

/**
 * One conversation: its state, which is kept up to date while there are subscribers, and its commands. Each command is carried out
 * once, even if its answer is lost. Messages are stored until the gateway acknowledges them.
 */
export class Conversation {
  private readonly transcript = new Transcript();
  private cursor = "";
  private epoch = "";
  private seq = 0; // at the cursor
  private head = 0; // seq of the newest event that the gateway has reported
  private phase: Phase = "loading";
  private error: LeatError | undefined;
  private readonly listeners = new Set<() => void>();
  private readonly eventListeners = new Set<(events: readonly Event[]) => void>();
  private current: ConversationState | undefined;
  private readonly messageCache = new WeakMap<MessageRecord, { version: number; document: Message }>();
  private readonly turnCache = new WeakMap<TurnRecord, { version: number; document: Turn }>();
  private subscription = "";
  private subscriptions = 0;
  private isSubscribed = false; // the latest subscription is confirmed, so frames belong to it
  private isRefused = false; // error is the client's refusal, not the conversation's own
  private readonly backoff = new Backoff();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Created by Client.conversation. */
  constructor(readonly id: string, private readonly host: Host) {}

  /** The current state: the same object until something changes. */
  get state(): ConversationState {
    return (this.current ??= this.buildState());
  }

  /** There are subscribers. */
  get isWatched(): boolean {
    return this.listeners.size > 0;
  }

  /** Calls the listener after each change of the state, until the function that it returns is called. */
  subscribe(listener: () => void): () => void {
    // Wrapping the listener allows one function to subscribe twice.
    const wrapper = () => listener();
    this.listeners.add(wrapper);
    if (this.listeners.size === 1) {
      this.host.use(this);
      if (this.phase === "gone") [this.phase, this.error, this.current] = ["loading", undefined, undefined]; // it may exist by now
      const cause = this.host.refusal();
      if (cause) this.refuse(cause);
      this.follow();
    }
    return () => {
      if (this.listeners.delete(wrapper) && this.listeners.size === 0) this.unfollow();
    };
  }

  /** Calls the listener with the events of each batch, after they were applied. A snapshot has none. */
  onEvents(listener: (events: readonly Event[]) => void): () => void {
    const wrapper = (events: readonly Event[]) => listener(events);
    this.eventListeners.add(wrapper);
    const unsubscribe = this.subscribe(() => {});
    return () => {
      this.eventListeners.delete(wrapper);
      unsubscribe();
    };
  }

  /**
   * Follows the conversation until a state matches, and returns that state. It rejects if the conversation is gone, if the token or
   * the page's origin is or was refused, or if the signal aborts.
   */
  waitFor(matches: (state: ConversationState) => boolean, signal?: AbortSignal): Promise<ConversationState> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const s = this.state;
        if (signal?.aborted) reject(asError(signal.reason));
        else if (s.error && !s.error.temporary) reject(s.error);
        else if (s.phase !== "loading" && matches(s)) resolve(s);
        else return;
        unsubscribe();
        signal?.removeEventListener("abort", check);
      };
      const unsubscribe = this.subscribe(check);
      signal?.addEventListener("abort", check);
      check();
    });
  }

  /**
   * Sends a message, which a turn answers. The message is stored, also across a reload of the page, until the gateway accepts or
   * refuses it. The promise reports which; it may be ignored.
   */
  send(message: string | NewMessage, options: SendOptions = {}): Promise<Ack> {
    return this.host.deliver(this.id, typeof message === "string" ? { text: message } : message, options);
  }

  /**
   * Removes the message with that id and all later ones, and sends it again, or another message instead. It is refused while a turn
   * is unfinished. onRemoval is called with the seq of the removal, for restore.
   */
  async resend(id: string, message?: NewMessage, options: { agent?: string; onRemoval?: (seq: number) => void } = {}): Promise<Ack> {
    const find = (s: ConversationState) => s.messages.findIndex((m) => m.id === id);
    await this.waitFor((s) => find(s) >= 0 || !s.earlier);
    while (find(this.state) <= 0 && this.state.earlier) await this.loadEarlier();
    const at = find(this.state);
    const old = this.state.messages[at];
    if (!old) throw new LeatError("the conversation has no such message", "unknown");
    const { onRemoval, ...sendOptions } = options;
    const { seq } = await this.truncate(this.state.messages[at - 1]?.id, true);
    onRemoval?.(seq);
    return this.host.deliver(this.id, { ...(message ?? { parts: old.parts.map(newPartOf) }), id }, sendOptions, crypto.randomUUID());
  }

  /**
   * Undoes a removal of messages, within 20 seconds. What was sent since is removed, and its turn is stopped. It is refused if it is too
   * late, or if more than a question and its answer were added since.
   */
  restore(seq: number): Promise<Ack> {
    return this.host.command(this.id, { type: "restore", seq });
  }

  /** Sends a refused message again. */
  retry(key: string): Promise<Ack> {
    return this.host.retry(key);
  }

  /**
   * Holds a waiting message back while the user edits it; release sends it. It returns false if it is too late, because the message
   * was already sent. A reload ends it.
   */
  hold(key: string): boolean {
    return this.host.hold(key);
  }

  /** Sends a held message, edited or unchanged. */
  release(key: string, message?: NewMessage): void {
    this.host.release(key, message);
  }

  /** Removes a refused or waiting message. It returns false if the message was already sent. */
  discard(key: string): boolean {
    return this.host.discard(key);
  }

  /** Stops a turn, or without an id every unfinished turn. The output so far is kept. */
  async stop(turn?: string): Promise<void> {
    const turns = turn ? [turn] : this.state.turns.filter((t) => t.state !== "ended" && independent(t)).map((t) => t.id);
    await Promise.all(turns.map((t) => this.host.command(this.id, { type: "stop", turn: t })));
  }

  /** Answers a question of a turn. The first answer wins. */
  answer(turn: string, request: string, answer: { decision?: string; text?: string }): Promise<Ack> {
    return this.host.command(this.id, { type: "answer", turn, request, ...answer });
  }

  /** Adds a message that no turn answers. */
  inject(message: NewMessage): Promise<Ack> {
    return this.host.command(this.id, { type: "inject", message });
  }

  update(change: { title?: string; metadata?: Metadata }): Promise<Ack> {
    return this.host.command(this.id, { type: "update", ...change });
  }

  /**
   * Removes the messages after the one with that id, or all messages without an id. The files that only these messages show are deleted, or
   * with keepFiles after a day, so that one of the messages can be sent again.
   */
  truncate(after?: string, keepFiles = false): Promise<Ack> {
    return this.host.command(this.id, { type: "truncate", ...(after && { after }), ...(keepFiles && { keepFiles }) });
  }

  /** Shares the conversation with another subject of the owner's tenant, or changes its access; "*" is everyone in the tenant. */
  share(subject: string, access: Access): Promise<Ack> {
    return this.host.command(this.id, { type: "share", subject, access });
  }

  /** Ends sharing with a subject. Its readers are disconnected at once. */
  unshare(subject: string): Promise<Ack> {
    return this.host.command(this.id, { type: "unshare", subject });
  }

  delete(): Promise<Ack> {
    return this.host.command(this.id, { type: "delete" });
  }

  /** Loads up to limit older messages; the gateway limits their number too. It returns whether there are still older ones. */
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
    throw new LeatError("the conversation changes too quickly to load older messages", "busy");
  }

  /** For the client: there is a connection, or a retry is due. Subscribes again. */
  follow(): void {
    clearTimeout(this.timer);
    this.isSubscribed = false;
    this.clearRefusal();
    if (this.listeners.size === 0 || this.phase === "gone" || this.host.isUncreated(this.id)) return;
    this.subscription = `s${++this.subscriptions}`;
    this.host.send({ type: "subscribe", id: this.subscription, conversation: this.id, ...(this.cursor && { after: this.cursor }) });
  }

  private unfollow(): void {
    this.host.use(this);
    clearTimeout(this.timer);
    this.isSubscribed = false;
    this.subscription = "";
    this.host.send({ type: "unsubscribe", conversation: this.id });
    if (this.phase === "live") this.setPhase("stale");
  }

  /** For the client: the connection is lost. cause is set if the client doesn't reconnect by itself. */
  handleDisconnect(cause?: LeatError): void {
    this.isSubscribed = false;
    if (cause) this.refuse(cause);
    else this.clearRefusal();
    if (this.phase === "live" || cause) this.setPhase(this.phase === "live" ? "stale" : this.phase);
  }

  // clearRefusal forgets a refusal once the client retries.
  private clearRefusal(): void {
    if (this.isRefused && !this.host.refusal()) [this.isRefused, this.error, this.current] = [false, undefined, undefined];
  }

  private refuse(cause: LeatError): void {
    if (this.phase !== "gone") [this.error, this.isRefused, this.current] = [cause, true, undefined];
  }

  /** For the client: pending messages have changed. */
  pendingChanged(): void {
    if (this.listeners.size > 0 && !this.subscription) this.follow(); // the message that would have created the conversation was deleted
    this.changed();
  }

  /** For the client: a frame for this conversation has arrived. */
  take(f: SnapshotFrame | BatchFrame | { type: "subscribed"; id?: string; head?: number } | ({ type: "error" } & Refusal)): void {
    switch (f.type) {
      case "subscribed":
        if (f.id !== this.subscription) return; // of an earlier subscription
        this.isSubscribed = true;
        this.head = f.head ?? 0;
        if (this.cursor) this.setPhase("live"); // no further event may follow
        return;
      case "snapshot":
        if (!this.isSubscribed) return;
        this.transcript.reset(f.transcript, !!f.earlier);
        [this.cursor, this.epoch, this.seq] = [f.cursor, f.epoch, f.transcript.seq ?? 0];
        this.setPhase("live");
        return;
      case "batch":
        if (this.isSubscribed) this.batch(f);
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
    this.setPhase("live");
    for (const l of this.eventListeners) l(f.events);
  }

  // requestSnapshot subscribes again without a cursor, because events are missing or the text is wrong. Repeated requests wait
  // longer and longer, so that frames that never fit don't cause a loop.
  private requestSnapshot(): void {
    this.cursor = "";
    this.isSubscribed = false;
    if (this.backoff.failures === 0) {
      this.backoff.failures = 1;
      this.follow();
    } else {
      this.timer = setTimeout(() => this.follow(), this.backoff.next());
    }
  }

  /** For the client: the conversation can't be opened. */
  fail(err: LeatError): void {
    this.error = err;
    this.setPhase("gone");
  }

  private handleError(err: LeatError): void {
    this.isSubscribed = false;
    if (err.temporary) {
      this.error = err;
      this.setPhase("stale");
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.follow(), this.backoff.next(err.retryAfter));
      return;
    }
    this.fail(err);
  }

  private setPhase(phase: Phase): void {
    if (phase === "stale" && this.phase === "loading") phase = "loading";
    this.phase = phase;
    if (phase === "live") {
      this.error = undefined;
      this.isRefused = false;
      this.host.advance(this.id, this.seq);
    }
    this.changed();
  }

  private changed(): void {
    this.current = undefined;
    for (const l of [...this.listeners]) l();
  }

  private buildState(): ConversationState {
    const t = this.transcript;
    const documentOf = (m: MessageRecord): Message => {
      let d = this.messageCache.get(m);
      if (d?.version !== m.version) this.messageCache.set(m, (d = { version: m.version, document: messageDocument(m) }));
      return d.document;
    };
    const turnDocumentOf = (turn: TurnRecord): Turn => {
      let d = this.turnCache.get(turn);
      if (d?.version !== turn.version) this.turnCache.set(turn, (d = { version: turn.version, document: turnDocument(turn) }));
      return d.document;
    };
    return {
      id: this.id, phase: this.phase, title: t.title, metadata: { ...t.metadata }, messages: t.order.map(documentOf), turns: [...t.turns.values()].map(turnDocumentOf),
      earlier: t.earlier, behind: this.cursor && this.isSubscribed ? Math.max(0, this.head - this.seq) : 0, pending: this.host.pending(this.id).filter((p) => p.error || !t.messages.has(p.message.id ?? p.key)), ...(this.error && { error: this.error }),
    };
  }
}

const newPartOf = ({ kind, text, media, data, history }: Part): NewPart => ({
  kind, ...(text && { text }), ...(media && { media }), ...(data !== undefined && { data }), ...(history && { history }),
});

/** Returns the visible text of a message: its non-empty text and status parts, each after its join. */
export function visibleText(m: Message): string {
  let text = "";
  for (const p of m.parts) {
    if ((p.kind !== "text" && p.kind !== "status") || !p.text) continue;
    if (text) text += p.join ?? "";
    text += p.text;
  }
  return text;
}

/** Reports whether a turn ends by itself: it is not inside another turn, or may outlive that turn. */
export const independent = (t: Turn): boolean => !t.parent || !!t.source;

/** Returns the visible text of a turn's assistant messages, joined by blank lines. */
export function turnText(state: Pick<ConversationState, "messages">, turn: string): string {
  return state.messages.filter((m) => m.turn === turn && m.role === "assistant").map(visibleText).filter((t) => t !== "").join("\n\n");
}
