import { Connection, type ConnectionState, type TokenSource } from "./connection.js";
import type { LeatError } from "./errors.js";
import { queueLimit } from "./requests.js";
import { liveDial } from "./websocket.js";
import { toConsole, type Warn } from "./warn.js";
import type { ClientFrame, Json } from "./wire.js";

// LiveEvents events, as Eliza's clients know them: docs/eliza.md has what each of them means.

export type AgentState = "not_started" | "starting" | "running" | "paused" | "stopped" | "restarting" | "error";

export interface StatusEvent {
  type: "status"; state: AgentState; agentName: string; model?: string; startedAt?: number;
  /** Of a connection's first status alone. */
  uptime?: number;
  /** Of all others. */
  pendingRestart?: boolean; pendingRestartReasons?: string[];
}

/** What the gateway keeps, and shows again to those who come later. */
export interface SignalEvent<T extends string = "agent_event" | "heartbeat_event" | "training_event"> {
  type: T; version: 1; eventId: string; ts: number; runId?: string; seq?: number; stream?: string; sessionKey?: string; agentId?: string;
  /** The conversation. */
  roomId?: string;
  payload: { [key: string]: Json };
}

export type LiveEvent =
  | StatusEvent | SignalEvent<"agent_event"> | SignalEvent<"heartbeat_event"> | SignalEvent<"training_event">
  | { type: "proactive-message"; conversationId: string; message: { id: string; role: "assistant"; text: string; timestamp: number; source: string } }
  | { type: "conversation-updated"; conversation: { id: string; title: string; roomId: string; createdAt: string; updatedAt: string } }
  | { type: "conversation-deleted"; conversationId: string }
  /** The user has read up to a seq, on any device; or something is unread now. */
  | { type: "conversation-read"; conversationId: string; unread: boolean; read: number }
  | { type: "restart-required"; reasons: string[] }
  | { type: "install-progress"; pluginName?: string; phase: string; message: string }
  | { type: "terminal-output"; runId: string; event: "start" | "stdout" | "stderr" | "exit" | "timeout" | "error"; command?: string; maxDurationMs?: number; data?: string; code?: number }
  | { type: "emote"; emoteId: string; glbPath: string; duration: number; loop: boolean }
  /** Signals after one are kept no more; first is the next that there is. */
  | { type: "replay-gap"; after: string; first?: string }
  /** The answer to a ping that was sent, and to those by which the client asks whether its connection lives. */
  | { type: "pong" }
  /** So many events are lost to this client, which took too little: read again what is shown. */
  | { type: "resync"; missed: number };

type EventOf<T> = Extract<LiveEvent, { type: T }>;

export interface LiveOptions {
  /** As in ClientOptions. */
  url?: string;
  token?: TokenSource;
  /** Names the program to the gateway, for what is meant for one program alone, such as a terminal's output. */
  clientId?: string;
  /** The id of the last signal that is known, such as evt-42: what came after it is shown first. Without it, the last 120 are. */
  after?: string;
  /** As in ClientOptions. */
  warn?: Warn;
}

interface Control { type: string; [key: string]: Json }

/**
 * Follows what happens beside the conversations: the default agent's state, signals of turns and of other programs, what agents
 * say of their own accord. It needs a WebSocket. It connects again as a Client does, and goes on behind the last signal.
 */
export class LiveEvents {
  private readonly connection: Connection;
  private readonly warn: Warn;
  private readonly listeners = new Map<string, Set<(e: LiveEvent) => void>>();
  private readonly stateListeners = new Set<(state: ConnectionState, error: LeatError | undefined) => void>();
  private waiting: Control[] = [];
  private looks: Control | undefined;
  private after: string;

  constructor(options: LiveOptions = {}) {
    const url = options.url ?? globalThis.location?.origin;
    if (!url) throw new TypeError("the option url is needed where there is no page");
    if (typeof WebSocket === "undefined") throw new TypeError("live events need a WebSocket; Node 20 and 21 have one with --experimental-websocket");
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

  /** Connects now, or tries again at once. */
  connect(): void {
    this.connection.connect();
  }

  close(): void {
    this.connection.close();
  }

  onState(listener: (state: ConnectionState, error: LeatError | undefined) => void): () => void {
    const own: typeof listener = (s, e) => listener(s, e);
    this.stateListeners.add(own);
    return () => this.stateListeners.delete(own);
  }

  /** Calls the listener with each event of a type, and connects if nothing has yet. */
  on<T extends LiveEvent["type"]>(type: T, listener: (e: EventOf<T>) => void): () => void {
    const own = (e: LiveEvent) => listener(e as EventOf<T>);
    let all = this.listeners.get(type);
    if (!all) this.listeners.set(type, (all = new Set()));
    all.add(own);
    if (this.connection.state === "idle") this.connect();
    return () => all.delete(own);
  }

  /** Tells which conversation the person looks at; none where it is undefined. It is told again on each new connection. */
  look(conversation: string | undefined): void {
    this.looks = { type: "active-conversation", conversationId: conversation ?? null };
    this.waiting = this.waiting.filter((f) => f.type !== this.looks!.type);
    this.send(this.looks);
  }

  /** Sends a control frame, now or when there is a connection. 32 wait at most; the oldest make way for newer ones. */
  send(frame: Control): void {
    if (this.connection.send(frame as ClientFrame)) return;
    this.waiting.push(frame);
    if (this.waiting.length > queueLimit) this.warn(`${queueLimit} newer frames wait for a connection; a frame ${this.waiting.shift()!.type} was dropped`);
  }

  private flush(): void {
    const waiting = this.waiting.filter((f) => f.type !== this.looks?.type);
    this.waiting = [];
    for (const f of this.looks ? [this.looks, ...waiting] : waiting) this.send(f);
  }

  private take(e: LiveEvent): void {
    if (e.type === "agent_event" || e.type === "heartbeat_event" || e.type === "training_event") this.after = e.eventId;
    for (const l of [...(this.listeners.get(e.type) ?? [])]) l(e);
  }
}
