import { Connection, type ConnectionState, refusedStates, tokenOf, type TokenSource } from "./connection.js";
import { Conversation, type Host } from "./conversation.js";
import { Delivery, type SendOptions } from "./delivery.js";
import { LeatError } from "./errors.js";
import { ConversationCache } from "./cache.js";
import { type Call, conversationPath, type Endpoint, json, request } from "./http.js";
import { httpDial } from "./httplink.js";
import { type OutboxStorage, pageStorage } from "./outbox.js";
import { patiently } from "./patience.js";
import { Requests } from "./requests.js";
import { toConsole, type Warn } from "./warn.js";
import { webSocketDial } from "./websocket.js";
import type { Agent, CreateOptions, Mismatch, NewMessage, Page, ServerFrame, Summary } from "./wire.js";

export interface ClientOptions {
  /** The gateway's address, such as http://127.0.0.1:31337; in a page the default is where the page comes from. */
  url?: string;
  /** The token, or a function that makes one. Without it, the page's cookie counts, or nothing is needed. */
  token?: TokenSource;
  /** For whom the holder of an admin token acts. Only over HTTP, so in Node. */
  subject?: string;
  tenant?: string;
  /** What carries the frames; the default is a WebSocket where there is one. */
  transport?: "websocket" | "http";
  /** Where messages are kept that are on their way; the default is localStorage, where there is one. null keeps them in memory. */
  storage?: OutboxStorage | null;
  /** Who is logged in. Where people share a browser, it keeps their messages apart. */
  account?: string;
  /** What the gateway's metrics call this client. The default is ts; Leat's own page is page. */
  name?: "ts" | "page";
  /** Takes warnings: of what went wrong without a call of yours that fails for it. The default is console.warn. */
  warn?: Warn;
}

/**
 * A client of one gateway. It connects when it is first needed, and then stays connected across cuts, restarts and sleep, until
 * close is called.
 */
export class Client {
  /** Where warnings go. */
  readonly warn: Warn;
  private readonly at: Endpoint;
  private readonly token: TokenSource | undefined;
  private readonly connection: Connection;
  private readonly requests: Requests;
  private readonly delivery: Delivery;
  private readonly conversations = new ConversationCache();
  private readonly listeners = new Set<(state: ConnectionState, error: LeatError | undefined) => void>();
  private readonly waitingListeners = new Set<(waiting: number) => void>();
  private readonly host: Host;

  constructor(options: ClientOptions = {}) {
    const url = options.url ?? globalThis.location?.origin;
    if (!url) throw new TypeError("the option url is needed where there is no page");
    this.at = { url: url.replace(/\/+$/, ""), subject: options.subject, tenant: options.tenant };
    this.token = options.token;
    this.warn = options.warn ?? toConsole;
    const acting = options.subject !== undefined || options.tenant !== undefined;
    const transport = options.transport ?? (acting || typeof WebSocket === "undefined" ? "http" : "websocket");
    if (acting && transport === "websocket") throw new TypeError("subject and tenant can't be told over a WebSocket: use transport http");
    this.connection = new Connection(transport === "http" ? httpDial(this.at) : webSocketDial(this.at), this.token, {
      state: (state, error) => this.stateChanged(state, error),
      ready: () => this.ready(),
      frame: (f) => this.take(f),
    }, this.warn);
    this.requests = new Requests((f) => this.connection.send(f));
    const name = `${this.at.url}:${options.account ?? ""}:${options.tenant ?? ""}:${options.subject ?? ""}`;
    this.delivery = new Delivery(options.storage === undefined ? pageStorage() : (options.storage ?? undefined), name,
      (f) => this.connection.send(f), (id) => this.waitingChanged(id), (id) => this.conversations.get(id)?.follow(), this.warn);
    this.host = {
      send: (f) => (this.wake(), this.connection.send(f)),
      command: async (conversation, command) => {
        const { type: _, id: __, conversation: ___, ...ack } = await this.request({ type: "command", conversation, command: { key: crypto.randomUUID(), ...command } });
        return { seq: 0, ...ack };
      },
      page: (id, before, limit) => this.get<Page>(conversationPath(id, `/transcript?${new URLSearchParams({ before, ...(limit && { limit: String(limit) }) })}`)),
      pending: (id) => this.delivery.of(id),
      deliver: (id, message, options, key) => {
        this.open();
        const done = this.delivery.add(id, message, options, key);
        this.wake();
        return done;
      },
      refusal: () => this.refusal(),
      retry: (key) => (this.wake(), this.delivery.retry(key)),
      seen: (id, seq) => this.delivery.seen(id, seq),
      hold: (key) => this.delivery.hold(key),
      release: (key, message) => this.delivery.release(key, message),
      discard: (key) => this.delivery.discard(key),
      unmade: (id) => this.delivery.unmade(id),
      use: (c) => this.conversations.use(c),
      mismatch: (id, { kind: _, ...mismatch }) => this.report(id, { client: options.name ?? "ts", ...mismatch }),
    };
    if (this.delivery.waiting > 0) this.wake(); // left over from before a reload
  }

  /** Whether it is connected; error says why not. */
  get state(): ConnectionState {
    return this.connection.state;
  }

  get error(): LeatError | undefined {
    return this.connection.error;
  }

  /** When it tries to connect again, epoch milliseconds; 0 where it tries now, or has no need to. */
  get retryAt(): number {
    return this.connection.retryAt;
  }

  /** When the gateway was heard last, epoch milliseconds; 0 is never. A connection is made anew when that is longer ago than stallLimit. */
  get heard(): number {
    return this.connection.heard;
  }

  /** How many messages, of all conversations, are not acknowledged yet. */
  get waiting(): number {
    return this.delivery.waiting;
  }

  /** Calls the listener when the number of messages that are not acknowledged may have changed. */
  onWaiting(listener: (waiting: number) => void): () => void {
    const own: typeof listener = (n) => listener(n);
    this.waitingListeners.add(own);
    return () => this.waitingListeners.delete(own);
  }

  /** Calls the listener on each change of the connection's state. */
  onState(listener: (state: ConnectionState, error: LeatError | undefined) => void): () => void {
    const own: typeof listener = (s, e) => listener(s, e);
    this.listeners.add(own);
    return () => this.listeners.delete(own);
  }

  /** Connects now, or tries again at once: after a new login, or when a person asks for it. */
  connect(): void {
    this.connection.connect();
  }

  /** Ends the connection for good. Messages that are on their way stay in the storage, for the next client. */
  close(): void {
    this.connection.close();
    this.requests.fail(new LeatError("the client was closed", "closed"));
    this.delivery.close();
  }

  /**
   * The conversation with that id, the same object for as long as you have it. Nothing is asked of the gateway before it is used. What
   * came of it is kept while anybody watches it, and for the last 16 that were left.
   */
  conversation(id: string): Conversation {
    const c = this.conversations.get(id) ?? new Conversation(id, this.host);
    this.conversations.use(c);
    return c;
  }

  /** Makes a conversation. */
  async create(options: CreateOptions = {}): Promise<Conversation> {
    const ack = await this.request({ type: "create", create: { key: crypto.randomUUID(), ...options } });
    return this.conversation(ack.conversation);
  }

  /**
   * Makes a conversation with its first message. Both are kept until the gateway has them, as messages are: so it needs no
   * connection, and is the conversation at once. send is for the message alone: options.agent answers the whole conversation.
   */
  begin(message: string | NewMessage, options: CreateOptions = {}, send: SendOptions = {}): Conversation {
    this.open();
    const id = options.id ?? crypto.randomUUID();
    const first = typeof message === "string" ? { text: message } : message;
    void this.delivery.add(id, first, send, undefined, { key: id, ...options, id });
    this.wake();
    return this.conversation(id);
  }

  /** Lists the conversations, the last used first; the gateway bounds how many. */
  async list(): Promise<Summary[]> {
    return (await this.get<{ conversations: Summary[] }>("/api/conversations")).conversations;
  }

  /** Says that the user has read a conversation up to a seq; without one, all of it. All of the user's devices are told. */
  async markRead(id: string, seq?: number): Promise<void> {
    await this.fetch(conversationPath(id, "/read"), { method: "POST", body: seq === undefined ? {} : { seq } });
  }

  async agents(): Promise<Agent[]> {
    return (await this.get<{ agents: Agent[] }>("/api/agents")).agents;
  }

  private async fetch(path: string, call?: Call): Promise<Response> {
    const token = await tokenOf(this.token);
    return patiently((signal) => request(this.at, token, path, { ...call, signal }));
  }

  private async get<T>(path: string): Promise<T> {
    const token = await tokenOf(this.token);
    return patiently((signal, heard) => json<T>(this.at, token, path, { signal }, heard));
  }

  // report tells the gateway, which counts it. A snapshot mends the text whether or not the report arrives.
  private report(id: string, mismatch: Mismatch): void {
    this.fetch(conversationPath(id, "/mismatches"), { method: "POST", body: mismatch })
      .catch((err) => this.warn("a mismatch is not reported:", err));
  }

  private async request(...[frame]: Parameters<Requests["add"]>): ReturnType<Requests["add"]> {
    this.open();
    const refused = this.refusal();
    if (refused) throw refused;
    const done = this.requests.add(frame);
    this.wake();
    return done;
  }

  private refusal(): LeatError | undefined {
    return refusedStates.includes(this.connection.state) ? this.error : undefined;
  }

  private open(): void {
    if (this.connection.state === "closed") throw new LeatError("the client is closed", "closed");
  }

  private wake(): void {
    if (this.connection.state === "idle") this.connection.connect();
    else this.connection.need();
  }

  private waitingChanged(conversation: string): void {
    this.conversations.get(conversation)?.pendingChanged();
    for (const l of [...this.waitingListeners]) l(this.waiting);
  }

  private ready(): void {
    for (const c of [...this.conversations]) c.follow();
    this.requests.flush();
    this.delivery.flush();
  }

  private stateChanged(state: ConnectionState, error: LeatError | undefined): void {
    const refused = refusedStates.includes(state) ? error : undefined;
    if (state !== "connected") for (const c of [...this.conversations]) c.lost(refused);
    if (refused) this.requests.fail(refused); // messages stay in the outbox, for the next login
    for (const l of [...this.listeners]) l(state, error);
  }

  private take(f: ServerFrame): void {
    switch (f.type) {
      case "subscribed":
      case "snapshot":
      case "batch":
        this.conversations.get(f.conversation)?.take(f);
        return;
      case "ack":
      case "rejected":
        if (!this.delivery.answer(f)) this.requests.take(f);
        return;
      case "error":
        if (f.conversation) this.conversations.get(f.conversation)?.take(f);
    }
  }
}
