// The AI SDK: a transport for useChat and Chat of npm "ai", 7 or newer, of which it needs the types alone.

import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";

import { TurnChunks, turnParts } from "./aistream.js";
import type { Client } from "./client.js";
import type { Conversation, ConversationState } from "./conversation.js";
import { LeatError } from "./errors.js";
import type { Warn } from "./warn.js";
import type { NewMessage, NewPart, Part } from "./wire.js";

export interface LeatChatTransportOptions {
  client: Client;
  /** The agent that answers; the default is the conversation's own. */
  agent?: string;
}

/**
 * Brings the chats of the AI SDK to a gateway. A chat's id is that of its conversation, which is made at its first message.
 * Stopping a chat stops the turn; leaving the page does not, and resumeStream shows the turn from its beginning. What a status
 * says is text, and replaced in place.
 */
export class LeatChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A resumed stream tells the whole turn again. */
  readonly resumeStreamIsReplay = true;
  private readonly made = new Map<string, Promise<Conversation>>();

  constructor(private readonly options: LeatChatTransportOptions) {}

  async sendMessages({ trigger, chatId, messageId, messages, abortSignal }: Parameters<ChatTransport<M>["sendMessages"]>[0]): Promise<ReadableStream<UIMessageChunk>> {
    const asked = messages.findLast((m) => m.role === "user");
    if (!asked) throw new TypeError("there is no message of the user to answer");
    const c = await this.conversation(chatId);
    const options = this.options.agent ? { agent: this.options.agent } : {};
    // An answer that is made anew, or a message that was edited, takes the place of what was there.
    const again = trigger === "regenerate-message" || messageId !== undefined;
    const ack = again ? await c.resend(asked.id, newMessage(asked), options) : await c.send(newMessage(asked), options);
    if (!ack.turn) throw new LeatError("no turn answers the message", "protocol");
    return turnStream(c, ack.turn, abortSignal, this.options.client.warn);
  }

  async reconnectToStream({ chatId, abortSignal }: Parameters<ChatTransport<M>["reconnectToStream"]>[0]): Promise<ReadableStream<UIMessageChunk> | null> {
    const c = this.options.client.conversation(chatId);
    try {
      const state = await c.until((s) => s.phase === "live", abortSignal);
      const turn = state.turns.find((t) => t.state !== "ended" && !t.parent && !t.source); // what the upstream began by itself answers nobody here
      return turn ? turnStream(c, turn.id, abortSignal, this.options.client.warn) : null;
    } catch (err) {
      if (err instanceof LeatError && (err.reason === "not_found" || err.reason === "deleted")) return null;
      throw err;
    }
  }

  private conversation(id: string): Promise<Conversation> {
    let c = this.made.get(id);
    if (!c) {
      c = this.options.client.create({ id, key: `chat:${id}` }).catch((err: unknown) => {
        if (err instanceof LeatError && err.reason === "conflict") return this.options.client.conversation(id); // it was there
        this.made.delete(id);
        throw err;
      });
      this.made.set(id, c);
    }
    return c;
  }
}

function turnStream(c: Conversation, turn: string, abort: AbortSignal | undefined, warn: Warn): ReadableStream<UIMessageChunk> {
  let leave = () => {};
  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const chunks = new TurnChunks();
      const say = (...all: UIMessageChunk[]) => all.forEach((chunk) => controller.enqueue(chunk));
      const aborted = () => {
        say({ type: "abort", reason: "stopped" });
        leave();
        controller.close();
        c.stop(turn).catch((err: unknown) => warn("the turn was not stopped:", err));
      };
      const look = () => {
        const s = c.state;
        const t = s.turns.find((x) => x.id === turn);
        if (t) say(...chunks.next(s.messages.filter((m) => m.turn === turn && m.role === "assistant")));
        if (s.phase === "gone") say({ type: "error", errorText: s.error?.message ?? "the conversation is gone" });
        else if (t?.state !== "ended") return;
        else if (t.outcome === "completed") say(...chunks.end(), { type: "finish", finishReason: "stop" });
        else if (t.outcome === "cancelled") say(...chunks.end(), { type: "abort", ...(t.reason && { reason: t.reason }) });
        else say(...chunks.end(), { type: "error", errorText: t.error?.message ?? t.reason ?? `the turn is ${t.outcome}` });
        leave();
        controller.close();
      };
      const unsubscribe = c.subscribe(look);
      abort?.addEventListener("abort", aborted);
      leave = () => {
        unsubscribe();
        abort?.removeEventListener("abort", aborted);
      };
      say(...chunks.start(turn));
      if (abort?.aborted) aborted();
      else look();
    },
    cancel: () => leave(),
  });
}

function newMessage(m: UIMessage): NewMessage {
  const parts: NewPart[] = [];
  for (const p of m.parts) {
    if (p.type === "text") parts.push({ kind: "text", text: p.text });
    else if (p.type === "file") parts.push({ kind: "media", media: { url: p.url, mime: p.mediaType, ...(p.filename && { name: p.filename }) } });
  }
  return { id: m.id, parts };
}

/** A conversation as messages of the AI SDK, for a chat to begin with: each turn is one assistant message, with its id. */
export function toUIMessages(state: Pick<ConversationState, "messages">): UIMessage[] {
  const out: UIMessage[] = [];
  for (const m of state.messages) {
    if (m.role === "assistant" && m.turn) {
      if (out.some((o) => o.id === m.turn)) continue;
      out.push({ id: m.turn, role: "assistant", parts: [{ type: "step-start" }, ...turnParts(state.messages.filter((x) => x.turn === m.turn && x.role === "assistant"))] });
    } else {
      out.push({ id: m.id, role: m.role, parts: m.parts.flatMap(plainPart) });
    }
  }
  return out;
}

function plainPart(p: Part): UIMessage["parts"] {
  if (p.kind === "media") return p.media?.url ? [{ type: "file", url: p.media.url, mediaType: p.media.mime ?? "application/octet-stream", ...(p.media.name && { filename: p.media.name }) }] : [];
  return p.text ? [{ type: "text", text: p.text }] : [];
}
