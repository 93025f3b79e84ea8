import { Backoff } from "./backoff.js";
import { LeatError } from "./errors.js";
import { Outbox, type Outgoing, type OutboxStorage } from "./outbox.js";
import { toConsole, type Warn } from "./warn.js";
import type { Ack, AckFrame, ClientFrame, ClientTool, CreateOptions, NewMessage, Refusal } from "./wire.js";

export interface SendOptions {
  /** The agent that answers; the default is the conversation's. */
  agent?: string;
  /** Queue the message until the running turn ends, even if that turn accepts messages. */
  queue?: boolean;
  /** Tools that the agent may call during the turn. A message with tools waits for the running turn. Answer a call with its result as text. */
  tools?: ClientTool[];
  /** The id of a turn that is stopped before the message is sent. Both wait for a connection, also across a page reload. */
  stop?: string;
}

/** A message without an acknowledgement, or one that the gateway has refused. */
export interface Pending {
  readonly key: string;
  readonly message: NewMessage;
  readonly at: number;
  /** It hasn't been sent yet: it can still be edited and deleted. */
  readonly unsent?: true;
  /** Why it was refused; absent while it is pending. */
  readonly error?: LeatError;
}

// Errors after which a conversation can't be opened again.
const finalReasons = new Set(["not_found", "deleted"]);

interface Waiter { resolve(ack: Ack): void; reject(err: LeatError): void }

/**
 * Delivers the messages of the outbox to the gateway: one at a time in each conversation, repeated with the same key until it is
 * acknowledged or refused.
 */
export class Delivery {
  private readonly outbox: Outbox;
  private readonly inFlight = new Map<string, Outgoing>(); // by frame id
  private readonly pendingCreates = new Map<string, Outgoing>(); // by frame id: messages whose conversation is being created
  private readonly pendingStops = new Map<string, Outgoing>(); // by frame id: messages whose turn is being stopped
  private readonly editedKeys = new Set<string>(); // of messages that the user is editing
  private readonly pendingCache = new WeakMap<Outgoing, Pending>();
  private readonly lanes = new Map<string, { backoff: Backoff; timer?: ReturnType<typeof setTimeout> }>();
  private readonly waiters = new Map<string, Waiter>(); // by key
  private readonly refusals = new Map<string, { item: Outgoing; error: LeatError }>();
  private readonly landed = new Map<string, { item: Outgoing; seq: number }>(); // acknowledged, but not in the log as far as it was read
  private ids = 0;
  private lastTime = 0;

  /**
   * send returns false without a connection. onChange is called with the conversation whose messages have changed, onCreated with
   * one that the gateway has created. The messages of a conversation wait while isWaiting returns true, until resume is called.
   */
  constructor(storage: OutboxStorage | undefined, name: string, private readonly send: (f: ClientFrame) => boolean,
    private readonly onChange: (conversation: string) => void, private readonly onCreated: (conversation: string) => void = () => {}, private readonly warn: Warn = toConsole,
    private readonly isWaiting: (conversation: string) => boolean = () => false) {
    this.outbox = new Outbox(storage, name, warn);
    for (const item of this.outbox.refusedItems) this.refusals.set(item.key, { item, error: LeatError.of(item.refusal!) });
  }

  /** The number of unacknowledged messages. */
  get unacknowledged(): number {
    return this.outbox.size;
  }

  /** Returns the pending and refused messages of a conversation, oldest first. */
  of(conversation: string): Pending[] {
    const failed = [...this.refusals.values()].filter((r) => r.item.conversation === conversation);
    const landed = [...this.landed.values()].filter((l) => l.item.conversation === conversation).map((l) => l.item);
    return [...[...landed, ...this.outbox.of(conversation)].map((i) => this.toPending(i)), ...failed.map(({ item, error }) => ({ key: item.key, message: item.message, at: item.at, error }))]
      .sort((a, b) => a.at - b.at);
  }

  // toPending returns the same object until the message changes, so that a view can compare by identity.
  private toPending(i: Outgoing): Pending {
    let p = this.pendingCache.get(i);
    if (!p) this.pendingCache.set(i, (p = { key: i.key, message: i.message, at: i.at, ...(!i.tried && { unsent: true as const }) }));
    return p;
  }

  /** The conversation hasn't been created yet; its first message will do it. */
  isUncreated(conversation: string): boolean {
    return this.outbox.of(conversation).some((i) => i.create) || [...this.refusals.values()].some((r) => r.item.conversation === conversation && r.item.create);
  }

  /** Stores a message before it returns, and sends it. The promise has the gateway's answer, and may be ignored. */
  add(conversation: string, message: NewMessage, { agent, queue, tools, stop }: SendOptions = {}, key: string = message.id ?? crypto.randomUUID(), create?: CreateOptions): Promise<Ack> {
    // Strictly increasing, even within one millisecond: after a reload messages are sorted by time.
    const at = (this.lastTime = Math.max(Date.now(), this.lastTime + 0.001));
    const item: Outgoing = { key, conversation, message: { id: key, ...message }, at, ...(agent && { agent }), ...(queue && { queue }), ...(tools && { tools }), ...(stop && { stop }), ...(create && { create }) };
    return this.take(item);
  }

  /** Holds a message back while the user edits it. It returns false if the message may have been sent. */
  hold(key: string): boolean {
    const item = this.outbox.get(key);
    if (!item || item.tried) return false;
    this.editedKeys.add(key);
    return true;
  }

  /** Sends a held message, edited or unchanged. */
  release(key: string, message?: NewMessage): void {
    if (!this.editedKeys.delete(key)) return;
    const item = this.outbox.get(key);
    if (!item) return;
    if (message) this.outbox.add({ ...item, message: { ...message, id: item.message.id ?? key } });
    this.onChange(item.conversation);
    this.next(item.conversation);
  }

  /** Sends a refused message again, as a new one. */
  retry(key: string): Promise<Ack> {
    const r = this.refusals.get(key);
    if (!r) return Promise.reject(new LeatError("no refused message has this key", "unknown"));
    this.refusals.delete(key);
    const newKey = crypto.randomUUID(); // the gateway may remember the refusal under the old key
    const { tried: _, refusal: __, ...item } = r.item;
    const delivery = this.take({ ...item, key: newKey, message: { ...item.message, id: newKey } });
    this.outbox.remove(key); // only after the new one is stored
    return delivery;
  }

  /** Removes a refused or waiting message. It returns false if the message may have been sent. */
  discard(key: string): boolean {
    const item = this.refusals.get(key)?.item ?? this.outbox.get(key);
    if (!item || (item.tried && !this.refusals.has(key))) return false;
    this.editedKeys.delete(key);
    this.outbox.remove(key);
    if (!this.refusals.delete(key)) {
      this.removeWaiter(key)?.reject(new LeatError("the message was discarded", "discarded"));
      const successor = this.outbox.of(item.conversation)[0];
      if (item.create && successor) this.outbox.add({ ...successor, create: item.create });
    }
    this.onChange(item.conversation);
    this.next(item.conversation);
    return true;
  }

  private removeWaiter(key: string): Waiter | undefined {
    const w = this.waiters.get(key);
    this.waiters.delete(key);
    return w;
  }

  /** The conversation has applied its log up to seq. Messages up to there are in its state, so they are no longer pending. */
  advance(conversation: string, seq: number): void {
    for (const [key, l] of this.landed) if (l.item.conversation === conversation && l.seq <= seq) this.landed.delete(key);
  }

  private take(item: Outgoing): Promise<Ack> {
    this.outbox.add(item);
    const delivery = new Promise<Ack>((resolve, reject) => this.waiters.set(item.key, { resolve, reject }));
    delivery.catch(() => {}); // if the caller ignores it, the refusal is among the pending messages
    this.onChange(item.conversation);
    this.next(item.conversation);
    return delivery;
  }

  /** Sends the waiting messages over a new connection. */
  flush(): void {
    this.inFlight.clear();
    this.pendingCreates.clear();
    this.pendingStops.clear();
    for (const c of this.outbox.conversations()) this.next(c);
  }

  /** Sends the messages of a conversation that were waiting. */
  resume(conversation: string): void {
    this.next(conversation);
  }

  // next sends the first message of a conversation, unless one of its messages is in flight or waits for a retry.
  private next(conversation: string): void {
    if (this.lanes.get(conversation)?.timer || this.isWaiting(conversation)) return;
    this.stopTurns(conversation);
    for (const f of [...this.inFlight.values(), ...this.pendingCreates.values()]) if (f.conversation === conversation) return;
    const item = this.nextItem(conversation);
    if (!item || item.stop || this.editedKeys.has(item.key)) return;
    const id = `m${++this.ids}`;
    const { key, message, agent, queue, tools, create } = item;
    if (create) {
      if (this.send({ type: "create", id, create })) this.pendingCreates.set(id, item);
      return;
    }
    if (!this.send({ type: "command", id, conversation, command: { type: "send", key, message, ...(agent && { agent }), ...(queue && { queue }), ...(tools && { tools }) } })) return;
    const sentItem = { ...item, tried: true };
    this.inFlight.set(id, sentItem);
    if (item.tried) return;
    this.outbox.add(sentItem);
    this.onChange(conversation);
  }

  // stopTurns stops the turns that messages replace. The stops don't wait for earlier messages, but each message waits for its own
  // stop.
  private stopTurns(conversation: string): void {
    for (const { key, stop } of this.outbox.of(conversation)) {
      if (!stop || this.editedKeys.has(key) || [...this.pendingStops.values()].some((i) => i.key === key)) continue;
      const current = this.latestVersion(key); // another page may have done it
      if (!current?.stop) continue;
      const id = `m${++this.ids}`;
      if (this.send({ type: "command", id, conversation, command: { type: "stop", key, turn: stop } })) this.pendingStops.set(id, current);
    }
  }

  // continueAfterStop sends a message whose turn has been stopped. If the turn can't be stopped, the message is sent anyway.
  private continueAfterStop({ key, conversation }: Outgoing, err: LeatError | undefined): void {
    if (err) this.warn("could not stop the turn:", err);
    const current = this.latestVersion(key);
    if (current && !current.refusal) {
      const { stop: _, ...item } = current;
      this.outbox.add(item);
      this.onChange(conversation);
    }
    this.next(conversation);
  }

  // latestVersion returns a message as stored now: another page may have changed or sent a message from before a reload.
  private latestVersion(key: string): Outgoing | undefined {
    return this.waiters.has(key) ? this.outbox.get(key) : this.outbox.readStored(key);
  }

  // nextItem returns the oldest message of a conversation. Messages from before a reload are read from the storage again, because
  // another page may have changed or sent them.
  private nextItem(conversation: string): Outgoing | undefined {
    for (const item of this.outbox.of(conversation)) {
      if (this.waiters.has(item.key) || this.editedKeys.has(item.key)) return item;
      const current = this.outbox.readStored(item.key);
      if (current && !current.refusal) return current;
      if (current) this.refuse(current, LeatError.of(current.refusal!));
      else this.outbox.remove(item.key);
      this.onChange(conversation);
    }
    return undefined;
  }

  /** Handles an answer. It returns false if the answer belongs to another request. */
  answer(f: AckFrame | ({ type: "rejected" } & Refusal)): boolean {
    const creation = this.pendingCreates.get(f.id ?? "");
    const stop = this.pendingStops.get(f.id ?? "");
    const item = creation ?? stop ?? this.inFlight.get(f.id ?? "");
    if (!item || !f.id) return false;
    for (const frames of [this.pendingCreates, this.pendingStops, this.inFlight]) frames.delete(f.id);
    const { conversation, key } = item;
    const err = f.type === "rejected" ? LeatError.of(f) : undefined;
    if (err?.temporary) {
      this.retryLater(conversation, err);
      return true;
    }
    if (stop) {
      this.continueAfterStop(item, err);
      return true;
    }
    if (creation && !err) {
      for (const { create: _, ...i } of this.outbox.of(conversation)) this.outbox.add(i);
      this.onCreated(conversation);
      this.onChange(conversation);
      this.next(conversation);
      return true;
    }
    this.lanes.delete(conversation);
    if (!err) this.outbox.remove(key);
    const w = this.removeWaiter(key);
    if (err) {
      this.refuse(item, err);
      w?.reject(err);
    } else {
      const { type: _, id: __, conversation: ___, ...ack } = f as AckFrame;
      // Until the log has the message, it stays where it is shown.
      if (ack.seq) this.landed.set(key, { item, seq: ack.seq });
      w?.resolve({ seq: 0, ...ack });
    }
    this.onChange(conversation);
    this.next(conversation);
    return true;
  }

  // refuse stores a refused message, also across a reload, because the user wrote it. If its conversation is gone, it is dropped,
  // because nothing could show it.
  private refuse(item: Outgoing, error: LeatError): void {
    const refusedItem = { ...item, refusal: { error: error.message, reason: error.reason } };
    this.refusals.set(item.key, { item: refusedItem, error });
    if (finalReasons.has(error.reason)) this.outbox.remove(item.key);
    else this.outbox.add(refusedItem);
  }

  private retryLater(conversation: string, cause: LeatError): void {
    const lane = this.lanes.get(conversation) ?? { backoff: new Backoff() };
    this.lanes.set(conversation, lane);
    lane.timer = setTimeout(() => {
      delete lane.timer;
      this.next(conversation);
    }, lane.backoff.next(cause.retryAfter));
  }

  /** Stops delivery. Messages stay in the storage. */
  close(): void {
    for (const lane of this.lanes.values()) clearTimeout(lane.timer);
    for (const w of this.waiters.values()) w.reject(new LeatError("the client was closed", "closed"));
    this.waiters.clear();
  }
}
