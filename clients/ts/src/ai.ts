// The AI SDK: a transport for useChat and Chat of the npm package "ai", version 7 or newer. Only its types are imported.

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
 * Connects the chats of the AI SDK to a gateway. A chat and its conversation have the same id; the first message creates the
 * conversation. Stopping a chat stops the turn. Leaving the page doesn't, and resumeStream then streams the turn from its
 * beginning. Statuses are sent as text and replaced in place.
 */
export class LeatChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A resumed stream repeats the whole turn. */
  readonly resumeStreamIsReplay = true;
  private readonly conversations = new Map<string, Promise<Conversation>>();

  constructor(private readonly options: LeatChatTransportOptions) {}

  async sendMessages({ trigger, chatId, messageId, messages, abortSignal }: Parameters<ChatTransport<M>["sendMessages"]>[0]): Promise<ReadableStream<UIMessageChunk>> {
    const question = messages.findLast((m) => m.role === "user");
    if (!question) throw new TypeError("the chat has no user message to answer");
    const c = await this.conversation(chatId);
    const options = this.options.agent ? { agent: this.options.agent } : {};
    // A regenerated answer or an edited message replaces the earlier messages from there on.
    const isResend = trigger === "regenerate-message" || messageId !== undefined;
    const ack = isResend ? await c.resend(question.id, newMessage(question), options) : await c.send(newMessage(question), options);
    if (!ack.turn) throw new LeatError("no turn answers the message", "protocol");
    return turnStream(c, ack.turn, abortSignal, this.options.client.warn);
  }

  async reconnectToStream({ chatId, abortSignal }: Parameters<ChatTransport<M>["reconnectToStream"]>[0]): Promise<ReadableStream<UIMessageChunk> | null> {
    const c = this.options.client.conversation(chatId);
    try {
      const state = await c.waitFor((s) => s.phase === "live", abortSignal);
      const turn = state.turns.find((t) => t.state !== "ended" && !t.parent && !t.source); // a turn that the upstream began by itself answers no message of this chat
      return turn ? turnStream(c, turn.id, abortSignal, this.options.client.warn) : null;
    } catch (err) {
      if (err instanceof LeatError && (err.reason === "not_found" || err.reason === "deleted")) return null;
      throw err;
    }
  }

  private conversation(id: string): Promise<Conversation> {
    let c = this.conversations.get(id);
    if (!c) {
      c = this.options.client.create({ id, key: `chat:${id}` }).catch((err: unknown) => {
        if (err instanceof LeatError && err.reason === "conflict") return this.options.client.conversation(id); // the conversation exists already
        this.conversations.delete(id);
        throw err;
      });
      this.conversations.set(id, c);
    }
    return c;
  }
}

function turnStream(c: Conversation, turn: string, abort: AbortSignal | undefined, warn: Warn): ReadableStream<UIMessageChunk> {
  let close = () => {};
  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const chunks = new TurnChunks();
      const emit = (...emitted: UIMessageChunk[]) => emitted.forEach((chunk) => controller.enqueue(chunk));
      const aborted = () => {
        emit({ type: "abort", reason: "stopped" });
        close();
        controller.close();
        c.stop(turn).catch((err: unknown) => warn("could not stop the turn:", err));
      };
      const update = () => {
        const s = c.state;
        const t = s.turns.find((x) => x.id === turn);
        if (t) emit(...chunks.next(s.messages.filter((m) => m.turn === turn && m.role === "assistant")));
        if (s.phase === "gone") emit({ type: "error", errorText: s.error?.message ?? "the conversation is gone" });
        else if (t?.state !== "ended") return;
        else if (t.outcome === "completed") emit(...chunks.end(), { type: "finish", finishReason: "stop" });
        else if (t.outcome === "cancelled") emit(...chunks.end(), { type: "abort", ...(t.reason && { reason: t.reason }) });
        else emit(...chunks.end(), { type: "error", errorText: t.error?.message ?? t.reason ?? `the turn was ${t.outcome}` });
        close();
        controller.close();
      };
      const unsubscribe = c.subscribe(update);
      abort?.addEventListener("abort", aborted);
      close = () => {
        unsubscribe();
        abort?.removeEventListener("abort", aborted);
      };
      emit(...chunks.start(turn));
      if (abort?.aborted) aborted();
      else update();
    },
    cancel: () => close(),
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

/** Converts a conversation into the initial messages of an AI SDK chat. Each turn is one assistant message, with the turn's id. */
export function toUIMessages(state: Pick<ConversationState, "messages">): UIMessage[] {
  const messages: UIMessage[] = [];
  for (const m of state.messages) {
    if (m.role === "assistant" && m.turn) {
      if (messages.some((o) => o.id === m.turn)) continue;
      messages.push({ id: m.turn, role: "assistant", parts: [{ type: "step-start" }, ...turnParts(state.messages.filter((x) => x.turn === m.turn && x.role === "assistant"))] });
    } else {
      messages.push({ id: m.id, role: m.role, parts: m.parts.flatMap(plainPart) });
    }
  }
  return messages;
}

function plainPart(p: Part): UIMessage["parts"] {
  if (p.kind === "media") return p.media?.url ? [{ type: "file", url: p.media.url, mediaType: p.media.mime ?? "application/octet-stream", ...(p.media.name && { filename: p.media.name }) }] : [];
  return p.text ? [{ type: "text", text: p.text }] : [];
}
