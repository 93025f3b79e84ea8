import { asLeatError, LeatError } from "./errors.js";
import { conversationPath, type Endpoint, explained, json, request } from "./http.js";
import type { Dial, Link, LinkEvents } from "./link.js";
import { EventReader } from "./sse.js";
import type { Ack, ClientFrame, Command, CreateOptions, ServerFrame, Turn } from "./wire.js";

// How long one command may take, in milliseconds: longer than a gateway tries to commit.
const commandLimit = 40_000;
// How often it asks whether the gateway is there while no stream would tell; a stream that is silent for longer than silence,
// in which the gateway beats twice, is dead.
const beatEvery = 15_000;
const silence = 40_000;

/** Links over plain HTTP, for where there is no WebSocket: a stream of server-sent events a conversation, a POST a command. */
export function httpDial(at: Endpoint): Dial {
  return (token, events) => new HttpLink(at, token, events);
}

class HttpLink implements Link {
  private ended = false;
  private readonly all = new AbortController();
  private readonly streams = new Map<string, AbortController>();
  // The last command of each conversation, which the next one waits for.
  private readonly lanes = new Map<string, Promise<void>>();
  private readonly heart: ReturnType<typeof setInterval>;

  constructor(private readonly at: Endpoint, private readonly token: string, private readonly events: LinkEvents) {
    this.heart = setInterval(() => void (this.streams.size === 0 && this.greet("pong")), beatEvery);
    void this.greet("hello");
  }

  close(): void {
    this.ended = true;
    clearInterval(this.heart);
    this.all.abort();
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
      case "auth": // every request carries the token
        break;
    }
  }

  private emit(f: ServerFrame): void {
    if (!this.ended) this.events.frame(f);
  }

  private end(why: LeatError): void {
    if (this.ended) return;
    this.close();
    this.events.closed(why);
  }

  // greet finds out whether the gateway is there and takes the token.
  private async greet(as: "hello" | "pong"): Promise<void> {
    try {
      await json(this.at, this.token, "/api/agents", { signal: this.all.signal });
      this.emit(as === "hello" ? { type: "hello", protocol: "leat/1" } : { type: "pong" });
    } catch (err) {
      this.end(await explained(this.at, err));
    }
  }

  private async follow(conversation: string, id: string, after?: string): Promise<void> {
    this.streams.get(conversation)?.abort();
    const own = new AbortController();
    this.streams.set(conversation, own);
    const signal = AbortSignal.any([own.signal, this.all.signal]);
    let last: ServerFrame | undefined;
    let late: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      clearTimeout(late);
      late = setTimeout(() => this.end(new LeatError("a stream has fallen silent", "network")), silence);
    };
    const alive = () => {
      wait();
      this.events.alive();
    };
    const take = (data: string) => {
      if (own.signal.aborted || this.ended) return;
      const f = JSON.parse(data) as ServerFrame & { conversation?: string; turns?: Turn[]; head?: number };
      if (f.type === "error" && (f.reason === "expired" || f.reason === "unauthorized")) this.end(LeatError.of(f));
      else if (f.type === "hello") this.emit({ type: "subscribed", id, conversation, turns: f.turns ?? [], ...(f.head && { head: f.head }) });
      else this.emit((last = { ...f, conversation } as ServerFrame));
    };
    wait(); // also for its beginning
    try {
      const res = await request(this.at, this.token, conversationPath(conversation, "/events"), {
        accept: "text/event-stream", signal, ...(after && { headers: { "Last-Event-ID": after } }),
      });
      if (!res.headers.get("Content-Type")?.startsWith("text/event-stream") || !res.body) {
        throw new LeatError("the gateway does not answer with a stream of events", "protocol");
      }
      const events = new EventReader();
      const text = new TextDecoder();
      const body = res.body.getReader();
      for (;;) {
        const { done, value } = await body.read();
        if (done) break;
        alive();
        events.feed(text.decode(value, { stream: true }), take);
      }
      if (last?.type !== "error") throw new LeatError("the stream was cut", "network");
    } catch (err) {
      if (signal.aborted) return;
      this.fail(asLeatError(err), { type: "error", id, conversation });
    } finally {
      clearTimeout(late);
      if (this.streams.get(conversation) === own) this.streams.delete(conversation);
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
    return AbortSignal.any([this.all.signal, AbortSignal.timeout(commandLimit)]);
  }

  // fail tells of a request that failed: of the connection, where that is gone, not allowed or not to the gateway, else of the
  // request alone.
  private fail(err: LeatError, frame: { type: "error" | "rejected"; id: string; conversation?: string }): void {
    if (err.reason === "network" || err.reason === "protocol" || err.status === 401) this.end(err);
    else this.emit({ ...frame, error: err.message, reason: err.reason, ...(err.retryAfter && { retryAfter: err.retryAfter }) });
  }

  // inLane keeps commands of one conversation in their order; a stop and an answer overtake.
  private async inLane(conversation: string, command: Command, run: () => Promise<void>): Promise<void> {
    if (command.type === "stop" || command.type === "answer") return run();
    const before = this.lanes.get(conversation);
    const mine = (async () => {
      await before;
      await run();
    })();
    this.lanes.set(conversation, mine);
    await mine;
    if (this.lanes.get(conversation) === mine) this.lanes.delete(conversation);
  }
}
