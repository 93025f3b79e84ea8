// assistant-ui: a runtime over its external store. It needs react and @assistant-ui/react 0.15 or newer.

import { type AppendMessage, type AssistantRuntime, type ThreadMessageLike, useExternalStoreRuntime } from "@assistant-ui/react";
import { useMemo } from "react";

import { parseInput, toolOutput, isToolFinished } from "./aistream.js";
import type { Client } from "./client.js";
import type { Conversation, ConversationState } from "./conversation.js";
import { useConversation } from "./react.js";
import type { Message, NewMessage, NewPart, Part, Request, Turn } from "./wire.js";

/**
 * Returns a runtime for AssistantRuntimeProvider that shows a conversation and supports new messages, edits, new answers, stop, and
 * tool approvals. A sent message is shown at once, also after a reload, until the gateway has stored it.
 */
export function useLeatRuntime(client: Client, id: string, options: { agent?: string } = {}): AssistantRuntime {
  const { conversation: c, busy, phase, messages, turns, pending } = useConversation(client, id);
  const thread = useMemo(() => toThreadMessages({ messages, turns, pending }), [messages, turns, pending]);
  return useExternalStoreRuntime<ThreadMessageLike>({
    messages: thread,
    isRunning: busy,
    isLoading: phase === "loading",
    isDisabled: phase === "gone",
    convertMessage: (m) => m,
    onNew: async (m) => void (await c.send(newMessage(m), options)),
    onEdit: async (m) => {
      if (m.sourceId) await c.resend(m.sourceId, newMessage(m), options);
    },
    onReload: async (parent) => {
      if (parent) await c.resend(parent, undefined, options);
    },
    onCancel: () => c.stop(),
    onRespondToToolApproval: async ({ approvalId, approved, optionId, text }) => {
      const turn = c.state.turns.find((t) => t.requests?.some((r) => r.id === approvalId));
      if (turn) await answer(c, turn.id, approvalId, optionId ?? (approved ? "approve" : "deny"), text);
    },
  });
}

async function answer(c: Conversation, turn: string, request: string, decision: string, text: string | undefined): Promise<void> {
  await c.answer(turn, request, { decision, ...(text && { text }) });
}

/** Converts a conversation into messages of assistant-ui: first the stored messages, then the pending ones. */
export function toThreadMessages({ messages, turns, pending }: Pick<ConversationState, "messages" | "turns" | "pending">): ThreadMessageLike[] {
  const byId = new Map(turns.map((t) => [t.id, t]));
  const thread = messages.map((m) => threadMessage(m, m.turn ? byId.get(m.turn) : undefined));
  for (const p of pending) {
    thread.push({
      id: p.message.id ?? p.key, role: "user", createdAt: new Date(p.at), content: outgoing(p.message),
      metadata: { isOptimistic: true, custom: { pending: !p.error, ...(p.error && { error: p.error.message, key: p.key }) } },
    });
  }
  return thread;
}

function outgoing(m: NewMessage): Content[] {
  const parts: NewPart[] = [...(m.text ? [{ kind: "text" as const, text: m.text }] : []), ...(m.parts ?? [])];
  return parts.flatMap((p) => content({ id: "", ...p }));
}

type Content = Exclude<ThreadMessageLike["content"], string>[number];

function threadMessage(m: Message, turn: Turn | undefined): ThreadMessageLike {
  const requests = turn?.requests ?? [];
  const like: ThreadMessageLike = {
    id: m.id, role: m.role, ...(m.at && { createdAt: new Date(m.at) }),
    content: m.role === "system" ? m.parts.flatMap((p) => (p.text ? [{ type: "text" as const, text: p.text }] : [])).slice(0, 1) : m.parts.flatMap((p) => content(p, requests)),
    metadata: { custom: { turn: m.turn, ...(m.state && { state: m.state }), ...(requests.length && { requests }) } },
  };
  return m.role === "assistant" ? { ...like, status: status(m, turn) } : like;
}

function status(m: Message, turn: Turn | undefined): NonNullable<ThreadMessageLike["status"]> {
  if (!m.ended) return turn?.state === "waiting" ? { type: "requires-action", reason: "interrupt" } : { type: "running" };
  if (!turn || turn.state !== "ended" || turn.outcome === "completed") return { type: "complete", reason: "stop" };
  if (turn.outcome === "cancelled") return { type: "incomplete", reason: "cancelled" };
  return { type: "incomplete", reason: "error", error: turn.error?.message ?? turn.reason ?? `the turn was ${turn.outcome}` };
}

function content(p: Part, requests: readonly Request[] = []): Content[] {
  switch (p.kind) {
    case "text":
    case "status":
      return p.text ? [{ type: "text", text: p.text }] : [];
    case "reasoning":
      return p.text ? [{ type: "reasoning", text: p.text }] : [];
    case "media":
      if (!p.media?.url) return [];
      return p.media.mime?.startsWith("image/")
        ? [{ type: "image", image: p.media.url, ...(p.media.name && { filename: p.media.name }) }]
        : [{ type: "file", data: p.media.url, sourceType: "url", mimeType: p.media.mime ?? "application/octet-stream", ...(p.media.name && { filename: p.media.name }) }];
    case "data":
      return [{ type: "data", name: p.name ?? "leat", data: p.data ?? p.text }];
    case "tool":
      return [toolCall(p, requests.find((r) => r.part === p.id))];
  }
}

function toolCall(p: Part, request: Request | undefined): Content {
  const args = parseInput(p.input);
  return {
    type: "tool-call", toolCallId: p.call ?? p.id, toolName: p.name || "tool", argsText: p.input ?? "",
    ...(typeof args === "object" && args !== null && !Array.isArray(args) && { args: args as Record<string, never> }),
    ...((isToolFinished(p) || p.output || p.stderr) && { result: p.error && !p.output ? p.error.message : toolOutput(p), isError: p.state === "failed" || p.state === "denied" }),
    ...(request?.kind === "approval" && { approval: { id: request.id, ...(request.prompt && { prompt: request.prompt }) } }),
  };
}

function newMessage(m: AppendMessage): NewMessage {
  const parts: NewPart[] = [];
  for (const p of [...m.content, ...(m.attachments ?? []).flatMap((a) => a.content)]) {
    if (p.type === "text") parts.push({ kind: "text", text: p.text });
    else if (p.type === "image") parts.push({ kind: "media", media: { url: p.image, mime: "image/*", ...(p.filename && { name: p.filename }) } });
    else if (p.type === "file") parts.push({ kind: "media", media: { url: p.data, mime: p.mimeType, ...(p.filename && { name: p.filename }) } });
  }
  return { parts };
}
