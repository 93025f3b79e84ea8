import { asLeatError, LeatError } from "./errors.js";
import { conversationPath, type Endpoint, explainFailure, json, request } from "./http.js";
import type { Dial, Link, LinkEvents } from "./link.js";
import { EventReader } from "./sse.js";
import type { Ack, ClientFrame, Command, CreateOptions, ServerFrame, Turn } from "./wire.js";

// The time limit for one command, in milliseconds. It is longer than the gateway's own limit for a commit.
const commandLimit = 40_000;
// Without a stream, the link checks the gateway every heartbeatInterval. A stream that is silent for silenceLimit, in which the
// gateway would send two heartbeats, is dead.
const heartbeatInterval = 15_000;
const silenceLimit = 40_000;

/**
 * Links over plain HTTP, for runtimes without a WebSocket: a stream of server-sent events for each conversation, a POST for each
 * command.
 */
export function httpDial(at: Endpoint): Dial {
  return (token, events) => new HttpLink(at, token, events);
}

class HttpLink implements Link {
  private isClosed = false;
  private readonly abortAll = new AbortController();
  private readonly streams = new Map<string, AbortController>();
  // The latest command of each conversation; the next one waits for it.
  private readonly lanes = new Map<string, Promise<void>>();
  private readonly heartbeat: ReturnType<typeof setInterval>;

  constructor(private readonly at: Endpoint, private readonly token: string, private readonly events: LinkEvents) {
    this.heartbeat = setInterval(() => void (this.streams.size === 0 && this.greet("pong")), heartbeatInterval);
    void this.greet("hello");
  }

  close(): void {
    this.isClosed = true;
    clearInterval(this.heartbeat);
    this.abortAll.abort();
  }

  send(f: ClientFrame): void {
    switch (f.type) {
      case "subscribe":
        void this.follow(f.conversation, f.id, f.after);
        break;
      case "unsubscribe":
        this.streams.get(f.conversation)?.abort();
        this.streams.delete(f.conversation);
        break;
      case "command":
        void this.inLane(f.conversation, f.command, () => this.command(f.id, f.conversation, f.command));
        break;
      case "create":
        void this.create(f.id, f.create);
        break;
      case "ping":
        void this.greet("pong");
        break;
      case "pong":
      case "auth": // every request has the token
        break;
    }
  }

  private emit(f: ServerFrame): void {
    if (!this.isClosed) this.events.frame(f);
  }

  private end(cause: LeatError): void {
    if (this.isClosed) return;
    this.close();
    this.events.closed(cause);
  }

  // greet checks whether the gateway answers and accepts the token.
  private async greet(as: "hello" | "pong"): Promise<void> {
    try {
      await json(this.at, this.token, "/api/agents", { signal: this.abortAll.signal });
      this.emit(as === "hello" ? { type: "hello", protocol: "leat/1" } : { type: "pong" });
    } catch (err) {
      this.end(await explainFailure(this.at, err));
    }
  }

  private async follow(conversation: string, id: string, after?: string): Promise<void> {
    this.streams.get(conversation)?.abort();
    const controller = new AbortController();
    this.streams.set(conversation, controller);
    const signal = AbortSignal.any([controller.signal, this.abortAll.signal]);
    let last: ServerFrame | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.end(new LeatError("no data on a stream", "network")), silenceLimit);
    };
    const recordActivity = () => {
      wait();
      this.events.alive();
    };
    const take = (data: string) => {
      if (controller.signal.aborted || this.isClosed) return;
      const f = JSON.parse(data) as ServerFrame & { conversation?: string; turns?: Turn[]; head?: number };
      if (f.type === "error" && (f.reason === "expired" || f.reason === "unauthorized")) this.end(LeatError.of(f));
      else if (f.type === "hello") this.emit({ type: "subscribed", id, conversation, turns: f.turns ?? [], ...(f.head && { head: f.head }) });
      else this.emit((last = { ...f, conversation } as ServerFrame));
    };
    wait(); // the limit applies before the first byte too
    try {
      const res = await request(this.at, this.token, conversationPath(conversation, "/events"), {
        accept: "text/event-stream", signal, ...(after && { headers: { "Last-Event-ID": after } }),
      });
      if (!res.headers.get("Content-Type")?.startsWith("text/event-stream") || !res.body) {
        throw new LeatError("invalid response: not an event stream", "protocol");
      }
      const events = new EventReader();
      const text = new TextDecoder();
      const body = res.body.getReader();
      for (;;) {
        const { done, value } = await body.read();
        if (done) break;
        recordActivity();
        events.feed(text.decode(value, { stream: true }), take);
      }
      if (last?.type !== "error") throw new LeatError("the stream was interrupted", "network");
    } catch (err) {
      if (signal.aborted) return;
      this.fail(asLeatError(err), { type: "error", id, conversation });
    } finally {
      clearTimeout(timer);
      if (this.streams.get(conversation) === controller) this.streams.delete(conversation);
    }
  }

  private async command(id: string, conversation: string, command: Command): Promise<void> {
    try {
      const ack = await json<Ack>(this.at, this.token, conversationPath(conversation, "/commands"), { method: "POST", body: command, signal: this.limit() });
      this.emit({ ...ack, type: "ack", id, conversation });
    } catch (err) {
      this.fail(asLeatError(err), { type: "rejected", id, conversation });
    }
  }

  private async create(id: string, { key, ...options }: CreateOptions): Promise<void> {
    try {
      const body = await json<{ conversation: { id: string } }>(this.at, this.token, "/api/conversations", {
        method: "POST", body: options, signal: this.limit(), ...(key && { headers: { "Idempotency-Key": key } }),
      });
      this.emit({ type: "ack", id, conversation: body.conversation.id });
    } catch (err) {
      this.fail(asLeatError(err), { type: "rejected", id });
    }
  }

  private limit(): AbortSignal {
    return AbortSignal.any([this.abortAll.signal, AbortSignal.timeout(commandLimit)]);
  }

  // fail reports a failed request. It ends the link if the gateway can't be reached, refuses the token, or isn't a gateway;
  // otherwise only the request has failed.
  private fail(err: LeatError, frame: { type: "error" | "rejected"; id: string; conversation?: string }): void {
    if (err.reason === "network" || err.reason === "protocol" || err.status === 401) this.end(err);
    else this.emit({ ...frame, error: err.message, reason: err.reason, ...(err.retryAfter && { retryAfter: err.retryAfter }) });
  }

  // inLane runs the commands of one conversation in order; stop and answer overtake others.
  private async inLane(conversation: string, command: Command, run: () => Promise<void>): Promise<void> {
    if (command.type === "stop" || command.type === "answer") return run();
    const before = this.lanes.get(conversation);
    const promise = (async () => {
      await before;
      await run();
    })();
    this.lanes.set(conversation, promise);
    await promise;
    if (this.lanes.get(conversation) === promise) this.lanes.delete(conversation);
  }
}
