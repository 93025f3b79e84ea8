import { Backoff } from "./backoff.js";
import { LeatError } from "./errors.js";
import { Outbox, type Outgoing, type OutboxStorage } from "./outbox.js";
import { toConsole, type Warn } from "./warn.js";
import type { Ack, AckFrame, ClientFrame, CreateOptions, NewMessage, Refusal } from "./wire.js";

export interface SendOptions {
  /** The agent that answers, if not the conversation's. */
  agent?: string;
  /** Queue the message until the running turn ends, even if the turn could take it. */
  queue?: boolean;
  /** The id of a turn that is stopped before the message is sent. Both wait for a connection, also across a page reload. */
  stop?: string;
}

/** A message on its way, or one that the gateway has refused. */
export interface Pending {
  readonly key: string;
  readonly message: NewMessage;
  readonly at: number;
  /** No connection has taken it yet: it can be changed, and taken back. */
  readonly unsent?: true;
  /** Why it was refused; absent while it is on its way. */
  readonly error?: LeatError;
}

// Reasons for which nobody comes back to a conversation.
const finalReasons = new Set(["not_found", "deleted"]);

interface Waiter { resolve(ack: Ack): void; reject(err: LeatError): void }

/**
 * Brings the messages of the outbox to the gateway: those of one conversation one after the other, each again and again with
 * its key until it is acknowledged or refused.
 */
export class Delivery {
  private readonly outbox: Outbox;
  private readonly flying = new Map<string, Outgoing>(); // by frame id
  private readonly making = new Map<string, Outgoing>(); // by frame id: messages whose conversation is being made
  private readonly stopping = new Map<string, Outgoing>(); // by frame id: messages whose turn is being stopped
  private readonly held = new Set<string>(); // keys of those that a person changes
  private readonly drawn = new WeakMap<Outgoing, Pending>();
  private readonly lanes = new Map<string, { backoff: Backoff; timer?: ReturnType<typeof setTimeout> }>();
  private readonly waiters = new Map<string, Waiter>(); // by key
  private readonly refused = new Map<string, { item: Outgoing; error: LeatError }>();
  private readonly landed = new Map<string, { item: Outgoing; seq: number }>(); // acknowledged, and not seen in the log yet
  private ids = 0;
  private last = 0;

  /**
   * send reports false where there is no connection; changed is told whose messages have changed, made which conversation is
   * there now.
   */
  constructor(storage: OutboxStorage | undefined, name: string, private readonly send: (f: ClientFrame) => boolean,
    private readonly changed: (conversation: string) => void, private readonly made: (conversation: string) => void = () => {}, private readonly warn: Warn = toConsole) {
    this.outbox = new Outbox(storage, name, warn);
    for (const item of this.outbox.refused) this.refused.set(item.key, { item, error: LeatError.of(item.refusal!) });
  }

  /** How many messages there are to bring. */
  get waiting(): number {
    return this.outbox.size;
  }

  /** The messages of a conversation that are on their way or refused, oldest first. */
  of(conversation: string): Pending[] {
    const refused = [...this.refused.values()].filter((r) => r.item.conversation === conversation);
    const landed = [...this.landed.values()].filter((l) => l.item.conversation === conversation).map((l) => l.item);
    return [...[...landed, ...this.outbox.of(conversation)].map((i) => this.draw(i)), ...refused.map(({ item, error }) => ({ key: item.key, message: item.message, at: item.at, error }))]
      .sort((a, b) => a.at - b.at);
  }

  // The same object as long as nothing changes, for those who draw it.
  private draw(i: Outgoing): Pending {
    let p = this.drawn.get(i);
    if (!p) this.drawn.set(i, (p = { key: i.key, message: i.message, at: i.at, ...(!i.tried && { unsent: true as const }) }));
    return p;
  }

  /** The conversation is still to be made, with its first message. */
  unmade(conversation: string): boolean {
    return this.outbox.of(conversation).some((i) => i.create) || [...this.refused.values()].some((r) => r.item.conversation === conversation && r.item.create);
  }

  /** Takes a message; it is kept before this returns. The promise is for the gateway's answer, and may be left alone. */
  add(conversation: string, message: NewMessage, { agent, queue, stop }: SendOptions = {}, key: string = message.id ?? crypto.randomUUID(), create?: CreateOptions): Promise<Ack> {
    // Ascending also where two are sent in one millisecond: after a reload the time is their order.
    const at = (this.last = Math.max(Date.now(), this.last + 0.001));
    const item: Outgoing = { key, conversation, message: { id: key, ...message }, at, ...(agent && { agent }), ...(queue && { queue }), ...(stop && { stop }), ...(create && { create }) };
    return this.take(item);
  }

  /** Keeps a message back while a person changes it. It reports false for one that a connection may have taken. */
  hold(key: string): boolean {
    const item = this.outbox.get(key);
    if (!item || item.tried) return false;
    this.held.add(key);
    return true;
  }

  /** Sends a message after all that was held, changed or as it was. */
  release(key: string, message?: NewMessage): void {
    if (!this.held.delete(key)) return;
    const item = this.outbox.get(key);
    if (!item) return;
    if (message) this.outbox.add({ ...item, message: { ...message, id: item.message.id ?? key } });
    this.changed(item.conversation);
    this.next(item.conversation);
  }

  /** Sends a refused message again, as a new one. */
  retry(key: string): Promise<Ack> {
    const r = this.refused.get(key);
    if (!r) return Promise.reject(new LeatError("there is no such refused message", "unknown"));
    this.refused.delete(key);
    const fresh = crypto.randomUUID(); // the old key may stand for the refusal
    const { tried: _, refusal: __, ...item } = r.item;
    const done = this.take({ ...item, key: fresh, message: { ...item.message, id: fresh } });
    this.outbox.remove(key); // not before the new one is kept
    return done;
  }

  /** Forgets a refused message, or takes one back that waits. It reports false for one that a connection may have taken. */
  discard(key: string): boolean {
    const item = this.refused.get(key)?.item ?? this.outbox.get(key);
    if (!item || (item.tried && !this.refused.has(key))) return false;
    this.held.delete(key);
    this.outbox.remove(key);
    if (!this.refused.delete(key)) {
      this.settle(key)?.reject(new LeatError("the message was taken back", "discarded"));
      const heir = this.outbox.of(item.conversation)[0];
      if (item.create && heir) this.outbox.add({ ...heir, create: item.create });
    }
    this.changed(item.conversation);
    this.next(item.conversation);
    return true;
  }

  private settle(key: string): Waiter | undefined {
    const w = this.waiters.get(key);
    this.waiters.delete(key);
    return w;
  }

  /** The reader of a conversation holds its log up to seq: what landed there is a message now. */
  seen(conversation: string, seq: number): void {
    for (const [key, l] of this.landed) if (l.item.conversation === conversation && l.seq <= seq) this.landed.delete(key);
  }

  private take(item: Outgoing): Promise<Ack> {
    this.outbox.add(item);
    const done = new Promise<Ack>((resolve, reject) => this.waiters.set(item.key, { resolve, reject }));
    done.catch(() => {}); // whoever does not look at it sees the refusal among the pending messages
    this.changed(item.conversation);
    this.next(item.conversation);
    return done;
  }

  /** Sends what waits; there is a new connection. */
  flush(): void {
    this.flying.clear();
    this.making.clear();
    this.stopping.clear();
    for (const c of this.outbox.conversations()) this.next(c);
  }

  // next sends the first message of a conversation, if none of it is on its way or waits for its repeat.
  private next(conversation: string): void {
    if (this.lanes.get(conversation)?.timer) return;
    this.stopTurns(conversation);
    for (const f of [...this.flying.values(), ...this.making.values()]) if (f.conversation === conversation) return;
    const first = this.nextItem(conversation);
    if (!first || first.stop || this.held.has(first.key)) return;
    const id = `m${++this.ids}`;
    const { key, message, agent, queue, create } = first;
    if (create) {
      if (this.send({ type: "create", id, create })) this.making.set(id, first);
      return;
    }
    if (!this.send({ type: "command", id, conversation, command: { type: "send", key, message, ...(agent && { agent }), ...(queue && { queue }) } })) return;
    const tried = { ...first, tried: true };
    this.flying.set(id, tried);
    if (first.tried) return;
    this.outbox.add(tried);
    this.changed(conversation);
  }

  // stopTurns stops what messages were said in the place of. That waits for no other message, and the message itself for that.
  private stopTurns(conversation: string): void {
    for (const { key, stop } of this.outbox.of(conversation)) {
      if (!stop || this.held.has(key) || [...this.stopping.values()].some((i) => i.key === key)) continue;
      const now = this.asLeft(key); // another page may have seen to it
      if (!now?.stop) continue;
      const id = `m${++this.ids}`;
      if (this.send({ type: "command", id, conversation, command: { type: "stop", key, turn: stop } })) this.stopping.set(id, now);
    }
  }

  // stopped goes on with a message whose turn has ended, or can't be stopped: that is no reason not to say it.
  private continueAfterStop({ key, conversation }: Outgoing, err: LeatError | undefined): void {
    if (err) this.warn("the turn is not stopped:", err);
    const now = this.asLeft(key);
    if (now && !now.refusal) {
      const { stop: _, ...item } = now;
      this.outbox.add(item);
      this.changed(conversation);
    }
    this.next(conversation);
  }

  // asLeft is a message of this page, or one of a page before as that or another page has left it.
  private asLeft(key: string): Outgoing | undefined {
    return this.waiters.has(key) ? this.outbox.get(key) : this.outbox.stored(key);
  }

  // first is the oldest message of a conversation. One of a page before, or of another page, is as that has left it.
  private nextItem(conversation: string): Outgoing | undefined {
    for (const item of this.outbox.of(conversation)) {
      if (this.waiters.has(item.key) || this.held.has(item.key)) return item;
      const now = this.outbox.stored(item.key);
      if (now && !now.refusal) return now;
      if (now) this.refuse(now, LeatError.of(now.refusal!));
      else this.outbox.remove(item.key);
      this.changed(conversation);
    }
    return undefined;
  }

  /** Takes an answer. It reports false for one of something else. */
  answer(f: AckFrame | ({ type: "rejected" } & Refusal)): boolean {
    const making = this.making.get(f.id ?? "");
    const stopping = this.stopping.get(f.id ?? "");
    const item = making ?? stopping ?? this.flying.get(f.id ?? "");
    if (!item || !f.id) return false;
    for (const out of [this.making, this.stopping, this.flying]) out.delete(f.id);
    const { conversation, key } = item;
    const err = f.type === "rejected" ? LeatError.of(f) : undefined;
    if (err?.temporary) {
      this.retryLater(conversation, err);
      return true;
    }
    if (stopping) {
      this.continueAfterStop(item, err);
      return true;
    }
    if (making && !err) {
      for (const { create: _, ...i } of this.outbox.of(conversation)) this.outbox.add(i);
      this.made(conversation);
      this.changed(conversation);
      this.next(conversation);
      return true;
    }
    this.lanes.delete(conversation);
    if (!err) this.outbox.remove(key);
    const w = this.settle(key);
    if (err) {
      this.refuse(item, err);
      w?.reject(err);
    } else {
      const { type: _, id: __, conversation: ___, ...ack } = f as AckFrame;
      // Between the acknowledgement and the log's own word the message stays where it is shown.
      if (ack.seq) this.landed.set(key, { item, seq: ack.seq });
      w?.resolve({ seq: 0, ...ack });
    }
    this.changed(conversation);
    this.next(conversation);
    return true;
  }

  // refuse keeps what was refused, also over a reload: a person wrote it. What was for a conversation that is gone is shown nowhere.
  private refuse(item: Outgoing, error: LeatError): void {
    const kept = { ...item, refusal: { error: error.message, reason: error.reason } };
    this.refused.set(item.key, { item: kept, error });
    if (finalReasons.has(error.reason)) this.outbox.remove(item.key);
    else this.outbox.add(kept);
  }

  private retryLater(conversation: string, why: LeatError): void {
    const lane = this.lanes.get(conversation) ?? { backoff: new Backoff() };
    this.lanes.set(conversation, lane);
    lane.timer = setTimeout(() => {
      delete lane.timer;
      this.next(conversation);
    }, lane.backoff.next(why.retryAfter));
  }

  /** Stops. What is in the storage stays there. */
  close(): void {
    for (const lane of this.lanes.values()) clearTimeout(lane.timer);
    for (const w of this.waiters.values()) w.reject(new LeatError("the client was closed", "closed"));
    this.waiters.clear();
  }
}
