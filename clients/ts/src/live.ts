import { Connection, type ConnectionState, type TokenSource } from "./connection.js";
import type { LeatError } from "./errors.js";
import { queueLimit } from "./requests.js";
import { liveDial } from "./websocket.js";
import { toConsole, type Warn } from "./warn.js";
import type { ClientFrame, Json } from "./wire.js";

// The events of the Eliza protocol; docs/eliza.md describes each of them.

export type AgentState = "not_started" | "starting" | "running" | "paused" | "stopped" | "restarting" | "error";

export interface StatusEvent {
  type: "status"; state: AgentState; agentName: string; model?: string; startedAt?: number;
  /** Only in the first status of a connection. */
  uptime?: number;
  /** In all others. */
  pendingRestart?: boolean; pendingRestartReasons?: string[];
}

/** An event that the gateway stores and replays to later sockets. */
export interface SignalEvent<T extends string = "agent_event" | "heartbeat_event" | "training_event"> {
  type: T; version: 1; eventId: string; ts: number; runId?: string; seq?: number; stream?: string; sessionKey?: string; agentId?: string;
  /** The conversation. */
  roomId?: string;
  payload: { [key: string]: Json };
}

export type LiveEvent =
  | StatusEvent | SignalEvent<"agent_event"> | SignalEvent<"heartbeat_event"> | SignalEvent<"training_event">
  | { type: "proactive-message"; conversationId: string; message: { id: string; role: "assistant"; text: string; timestamp: number; source: string } }
  | { type: "conversation-updated"; conversation: { id: string; title: string; roomId: string; createdAt: string; updatedAt: string; waiting?: boolean; pinned?: boolean; archived?: boolean } }
  | { type: "conversation-deleted"; conversationId: string }
  /** The user has read up to a seq on any device, or something has become unread. */
  | { type: "conversation-read"; conversationId: string; unread: boolean; read: number }
  | { type: "restart-required"; reasons: string[] }
  | { type: "install-progress"; pluginName?: string; phase: string; message: string }
  | { type: "terminal-output"; runId: string; event: "start" | "stdout" | "stderr" | "exit" | "timeout" | "error"; command?: string; maxDurationMs?: number; data?: string; code?: number }
  | { type: "emote"; emoteId: string; glbPath: string; duration: number; loop: boolean }
  /** A turn of the user's own conversation has ended or waits for an answer. */
  | { type: "notice"; kind: "ended" | "asked"; conversation: string; title?: string; turn: string; request?: string; outcome?: "completed" | "failed" | "interrupted" }
  /** Signals after `after` are no longer stored; `first` is the first one that is. */
  | { type: "replay-gap"; after: string; first?: string }
  /** The answer to a ping, including the pings with which the client probes its connection. */
  | { type: "pong" }
  /** The client was too slow and has missed events: load the shown data again. */
  | { type: "resync"; missed: number };

type EventOf<T> = Extract<LiveEvent, { type: T }>;

export interface LiveOptions {
  /** As in ClientOptions. */
  url?: string;
  token?: TokenSource;
  /** Identifies the program to the gateway, for events for one program only, such as a terminal's output. */
  clientId?: string;
  /** The id of the last received signal, such as evt-42: later ones are sent first. Without it, the last 120 are. */
  after?: string;
  /** As in ClientOptions. */
  warn?: Warn;
}

interface Control { type: string; [key: string]: Json }

/**
 * Follows events outside of conversations: the default agent's state, signals of turns and of other programs, unasked messages of
 * agents. It needs a WebSocket. It reconnects like a Client, and resumes after the last signal.
 */
export class LiveEvents {
  private readonly connection: Connection;
  private readonly warn: Warn;
  private readonly listeners = new Map<string, Set<(e: LiveEvent) => void>>();
  private readonly stateListeners = new Set<(state: ConnectionState, error: LeatError | undefined) => void>();
  private queue: Control[] = [];
  private activeFrame: Control | undefined;
  private after: string;

  constructor(options: LiveOptions = {}) {
    const url = options.url ?? globalThis.location?.origin;
    if (!url) throw new TypeError("the option url is required outside of a page");
    if (typeof WebSocket === "undefined") throw new TypeError("live events require a WebSocket; start Node 20 and 21 with --experimental-websocket");
    this.after = options.after ?? "";
    this.warn = options.warn ?? toConsole;
    const query = () => {
      const q = new URLSearchParams({ ...(options.clientId && { clientId: options.clientId }), ...(this.after && { lastEventId: this.after }) }).toString();
      return q && `?${q}`;
    };
    this.connection = new Connection(liveDial({ url: url.replace(/\/+$/, "") }, query), options.token, {
      state: (state, error) => [...this.stateListeners].forEach((l) => l(state, error)),
      ready: () => this.flush(),
      frame: (f) => this.take(f as unknown as LiveEvent),
    }, this.warn);
  }

  get state(): ConnectionState {
    return this.connection.state;
  }

  get error(): LeatError | undefined {
    return this.connection.error;
  }

  /** Connects, or retries at once. */
  connect(): void {
    this.connection.connect();
  }

  close(): void {
    this.connection.close();
  }

  onState(listener: (state: ConnectionState, error: LeatError | undefined) => void): () => void {
    const wrapper: typeof listener = (s, e) => listener(s, e);
    this.stateListeners.add(wrapper);
    return () => this.stateListeners.delete(wrapper);
  }

  /** Calls the listener for each event of a type, and connects on the first call. */
  on<T extends LiveEvent["type"]>(type: T, listener: (e: EventOf<T>) => void): () => void {
    const wrapper = (e: LiveEvent) => listener(e as EventOf<T>);
    let listeners = this.listeners.get(type);
    if (!listeners) this.listeners.set(type, (listeners = new Set()));
    listeners.add(wrapper);
    if (this.connection.state === "idle") this.connect();
    return () => listeners.delete(wrapper);
  }

  /** Sets the conversation that the user has open, or none. It is sent again on each new connection. */
  setActiveConversation(conversation: string | undefined): void {
    this.activeFrame = { type: "active-conversation", conversationId: conversation ?? null };
    this.queue = this.queue.filter((f) => f.type !== this.activeFrame!.type);
    this.send(this.activeFrame);
  }

  /** Sends a control frame, or queues it until there is a connection. The queue has 32 places; the oldest frame is dropped first. */
  send(frame: Control): void {
    if (this.connection.send(frame as ClientFrame)) return;
    this.queue.push(frame);
    if (this.queue.length > queueLimit) this.warn(`${queueLimit} newer frames wait for a connection; dropped a ${this.queue.shift()!.type} frame`);
  }

  private flush(): void {
    const queued = this.queue.filter((f) => f.type !== this.activeFrame?.type);
    this.queue = [];
    for (const f of this.activeFrame ? [this.activeFrame, ...queued] : queued) this.send(f);
  }

  private take(e: LiveEvent): void {
    if (e.type === "agent_event" || e.type === "heartbeat_event" || e.type === "training_event") this.after = e.eventId;
    for (const l of [...(this.listeners.get(e.type) ?? [])]) l(e);
  }
}
