import { Connection, type ConnectionState, refusedStates, tokenOf, type TokenSource } from "./connection.js";
import { Conversation, type Host } from "./conversation.js";
import { Delivery, type SendOptions } from "./delivery.js";
import { LeatError } from "./errors.js";
import { ConversationCache } from "./cache.js";
import { type Call, conversationPath, type Endpoint, json, request } from "./http.js";
import { httpDial } from "./httplink.js";
import { Openings } from "./openings.js";
import { type OutboxStorage, pageStorage } from "./outbox.js";
import { withIdleTimeout } from "./patience.js";
import { Requests } from "./requests.js";
import { toConsole, type Warn } from "./warn.js";
import { webSocketDial } from "./websocket.js";
import type { Agent, CreateOptions, Mismatch, NewMessage, Page, ServerFrame, Summary } from "./wire.js";

export interface ClientOptions {
  /** The gateway's address, such as http://127.0.0.1:31337. In a page the default is the page's origin. */
  url?: string;
  /** The token, or a function that returns one. Without it the page's cookie is used, if the gateway requires authentication at all. */
  token?: TokenSource;
  /** The user for whom the holder of an admin token acts. It is sent as an HTTP header, so it works only in Node. */
  subject?: string;
  tenant?: string;
  /** The transport for frames. The default is a WebSocket if the runtime has one. */
  transport?: "websocket" | "http";
  /** The storage for unacknowledged messages. The default is localStorage if it exists; null keeps them in memory. */
  storage?: OutboxStorage | null;
  /** The signed-in user. It separates the messages of users who share a browser. */
  account?: string;
  /** The client's label in the gateway's metrics. The default is ts; Leat's own page uses page. */
  name?: "ts" | "page";
  /** Receives warnings about failures that no call of yours reports. The default is console.warn. */
  warn?: Warn;
}

/** A client of one gateway. It connects on first use, and reconnects after disconnects, restarts and sleep until close is called. */
export class Client {
  /** Receives warnings. */
  readonly warn: Warn;
  private readonly at: Endpoint;
  private readonly token: TokenSource | undefined;
  private readonly connection: Connection;
  private readonly requests: Requests;
  private readonly delivery: Delivery;
  private readonly openings: Openings;
  private readonly conversations = new ConversationCache();
  private readonly listeners = new Set<(state: ConnectionState, error: LeatError | undefined) => void>();
  private readonly unacknowledgedListeners = new Set<(count: number) => void>();
  private readonly host: Host;

  constructor(options: ClientOptions = {}) {
    const url = options.url ?? globalThis.location?.origin;
    if (!url) throw new TypeError("the option url is required outside of a page");
    this.at = { url: url.replace(/\/+$/, ""), subject: options.subject, tenant: options.tenant };
    this.token = options.token;
    this.warn = options.warn ?? toConsole;
    const acting = options.subject !== undefined || options.tenant !== undefined;
    const transport = options.transport ?? (acting || typeof WebSocket === "undefined" ? "http" : "websocket");
    if (acting && transport === "websocket") throw new TypeError("subject and tenant can't be sent over a WebSocket: use transport http");
    this.connection = new Connection(transport === "http" ? httpDial(this.at) : webSocketDial(this.at), this.token, {
      state: (state, error) => this.stateChanged(state, error),
      ready: () => this.ready(),
      frame: (f) => this.take(f),
    }, this.warn);
    this.requests = new Requests((f) => this.connection.send(f));
    this.openings = new Openings((options) => this.create(options), () => this.refusal() !== undefined, (id, err) => this.handleOpened(id, err));
    const name = `${this.at.url}:${options.account ?? ""}:${options.tenant ?? ""}:${options.subject ?? ""}`;
    this.delivery = new Delivery(options.storage === undefined ? pageStorage() : (options.storage ?? undefined), name,
      (f) => this.connection.send(f), (id) => this.pendingChanged(id), (id) => this.conversations.get(id)?.follow(), this.warn,
      (id) => this.openings.has(id));
    this.host = {
      send: (f) => (this.wake(), this.connection.send(f)),
      command: async (conversation, command) => {
        const { type: _, id: __, conversation: ___, ...ack } = await this.request({ type: "command", conversation, command: { key: crypto.randomUUID(), ...command } });
        return { seq: 0, ...ack };
      },
      page: (id, before, limit) => this.get<Page>(conversationPath(id, `/transcript?${new URLSearchParams({ before, ...(limit && { limit: String(limit) }) })}`)),
      pending: (id) => this.delivery.of(id),
      deliver: (id, message, options, key) => {
        this.checkOpen();
        const delivery = this.delivery.add(id, message, options, key);
        this.wake();
        return delivery;
      },
      refusal: () => this.refusal(),
      retry: (key) => (this.wake(), this.delivery.retry(key)),
      advance: (id, seq) => this.delivery.advance(id, seq),
      hold: (key) => this.delivery.hold(key),
      release: (key, message) => this.delivery.release(key, message),
      discard: (key) => this.delivery.discard(key),
      isUncreated: (id) => this.openings.has(id) || this.delivery.isUncreated(id),
      use: (c) => this.conversations.use(c),
      mismatch: (id, { kind: _, ...mismatch }) => this.report(id, { client: options.name ?? "ts", ...mismatch }),
    };
    if (this.delivery.unacknowledged > 0) this.wake(); // messages from before a reload
  }

  /** The state of the connection; error explains why it isn't connected. */
  get state(): ConnectionState {
    return this.connection.state;
  }

  get error(): LeatError | undefined {
    return this.connection.error;
  }

  /** The time of the next connection attempt, in epoch milliseconds; 0 if none is scheduled. */
  get retryAt(): number {
    return this.connection.retryAt;
  }

  /**
   * The time of the last data from the gateway, in epoch milliseconds; 0 if there was none. The client reconnects if it is longer
   * ago than stallLimit.
   */
  get lastHeard(): number {
    return this.connection.lastHeard;
  }

  /** The number of unacknowledged messages in all conversations. */
  get unacknowledged(): number {
    return this.delivery.unacknowledged;
  }

  /** Calls the listener when the number of unacknowledged messages may have changed. */
  onUnacknowledged(listener: (count: number) => void): () => void {
    const wrapper: typeof listener = (n) => listener(n);
    this.unacknowledgedListeners.add(wrapper);
    return () => this.unacknowledgedListeners.delete(wrapper);
  }

  /** Calls the listener on each change of the connection's state. */
  onState(listener: (state: ConnectionState, error: LeatError | undefined) => void): () => void {
    const wrapper: typeof listener = (s, e) => listener(s, e);
    this.listeners.add(wrapper);
    return () => this.listeners.delete(wrapper);
  }

  /** Connects or retries at once: after a new login, or when the user asks for it. */
  connect(): void {
    this.connection.connect();
  }

  /** Closes the connection permanently. Unacknowledged messages stay in the storage for the next client. */
  close(): void {
    this.connection.close();
    this.requests.fail(new LeatError("the client was closed", "closed"));
    this.delivery.close();
  }

  /**
   * Returns the conversation with that id: the same object as long as you reference it. No request is sent before it is used. Its
   * content stays in memory while it has subscribers, and afterwards while it is among the 16 most recently used.
   */
  conversation(id: string): Conversation {
    const c = this.conversations.get(id) ?? new Conversation(id, this.host);
    this.conversations.use(c);
    return c;
  }

  /** Creates a conversation. */
  async create(options: CreateOptions = {}): Promise<Conversation> {
    const ack = await this.request({ type: "create", create: { key: crypto.randomUUID(), ...options } });
    return this.conversation(ack.conversation);
  }

  /**
   * Returns the conversation with that id and creates it if it does not exist; only then do the options apply. It is usable at once, without a
   * connection too: its messages wait until the gateway has answered. If it can't be opened, its phase becomes `gone` with the error.
   * Repeated calls send nothing, so it may be called each time a view renders.
   */
  open(id: string, options: Omit<CreateOptions, "id" | "key"> = {}): Conversation {
    this.checkOpen();
    const c = this.conversation(id);
    this.openings.open(id, options);
    return c;
  }

  /**
   * Creates a conversation with its first message. Both are stored until the gateway acknowledges them, so it works without a
   * connection, and the conversation is usable at once. send applies to the first message only; options.agent is the agent of the
   * whole conversation.
   */
  begin(message: string | NewMessage, options: CreateOptions = {}, send: SendOptions = {}): Conversation {
    this.checkOpen();
    const id = options.id ?? crypto.randomUUID();
    const firstMessage = typeof message === "string" ? { text: message } : message;
    void this.delivery.add(id, firstMessage, send, undefined, { key: id, ...options, id });
    this.wake();
    return this.conversation(id);
  }

  /** Lists the conversations, most recently used first. The gateway limits their number. */
  async list(): Promise<Summary[]> {
    return (await this.get<{ conversations: Summary[] }>("/api/conversations")).conversations;
  }

  /** Marks a conversation as read up to seq, or completely without seq, on all of the user's devices. */
  async markRead(id: string, seq?: number): Promise<void> {
    await this.fetch(conversationPath(id, "/read"), { method: "POST", body: seq === undefined ? {} : { seq } });
  }

  async agents(): Promise<Agent[]> {
    return (await this.get<{ agents: Agent[] }>("/api/agents")).agents;
  }

  private async fetch(path: string, call?: Call): Promise<Response> {
    const token = await tokenOf(this.token);
    return withIdleTimeout((signal) => request(this.at, token, path, { ...call, signal }));
  }

  private async get<T>(path: string): Promise<T> {
    const token = await tokenOf(this.token);
    return withIdleTimeout((signal, onData) => json<T>(this.at, token, path, { signal }, onData));
  }

  // report tells the gateway about a mismatch, for its metrics. A failed report is harmless, because a snapshot corrects the text.
  private report(id: string, mismatch: Mismatch): void {
    this.fetch(conversationPath(id, "/mismatches"), { method: "POST", body: mismatch })
      .catch((err) => this.warn("could not report a mismatch:", err));
  }

  private async request(...[frame]: Parameters<Requests["add"]>): ReturnType<Requests["add"]> {
    this.checkOpen();
    const refusal = this.refusal();
    if (refusal) throw refusal;
    const answer = this.requests.add(frame);
    this.wake();
    return answer;
  }

  private refusal(): LeatError | undefined {
    return refusedStates.includes(this.connection.state) ? this.error : undefined;
  }

  private checkOpen(): void {
    if (this.connection.state === "closed") throw new LeatError("the client is closed", "closed");
  }

  private wake(): void {
    if (this.connection.state === "idle") this.connection.connect();
    else this.connection.ensureAlive();
  }

  private handleOpened(id: string, err: LeatError | undefined): void {
    const c = this.conversations.get(id);
    if (err) c?.fail(err);
    else c?.follow();
    this.delivery.resume(id);
  }

  private pendingChanged(conversation: string): void {
    this.conversations.get(conversation)?.pendingChanged();
    for (const l of [...this.unacknowledgedListeners]) l(this.unacknowledged);
  }

  private ready(): void {
    for (const c of [...this.conversations]) c.follow();
    this.requests.flush();
    this.openings.flush();
    this.delivery.flush();
  }

  private stateChanged(state: ConnectionState, error: LeatError | undefined): void {
    const refusal = refusedStates.includes(state) ? error : undefined;
    if (state !== "connected") for (const c of [...this.conversations]) c.handleDisconnect(refusal);
    if (refusal) {
      this.openings.suspend();
      this.requests.fail(refusal); // messages stay in the outbox for the next login
    }
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
