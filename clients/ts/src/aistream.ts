import type { UIMessage, UIMessageChunk } from "ai";

import type { Message, Part } from "./wire.js";

// A turn is an assistant message of the AI SDK. Its blocks are what that message shows, in order.
type Block =
  | { type: "text" | "reasoning"; id: string; text: string; ended: boolean }
  | { type: "tool"; id: string; part: Part }
  | { type: "file"; id: string; url: string; mediaType: string }
  | { type: "data"; id: string; data: unknown };

/** What a turn shows. A text that goes on where another ended, without a join, is one text with it. */
function blocks(messages: readonly Message[]): Block[] {
  const out: Block[] = [];
  for (const m of messages) {
    for (const [i, p] of m.parts.entries()) {
      const id = `${m.id}/${p.id}`;
      const before = out.at(-1);
      switch (p.kind) {
        case "text":
        case "status":
          if (!p.text) break;
          if (before?.type === "text" && i > 0 && !p.join) {
            before.text += p.text;
            before.ended = !!p.ended;
          } else {
            out.push({ type: "text", id, text: p.text, ended: !!p.ended });
          }
          break;
        case "reasoning":
          if (p.text) out.push({ type: "reasoning", id, text: p.text, ended: !!p.ended });
          break;
        case "tool":
          out.push({ type: "tool", id: p.call ?? id, part: p });
          break;
        case "media":
          if (p.media?.url) out.push({ type: "file", id, url: p.media.url, mediaType: p.media.mime ?? "application/octet-stream" });
          break;
        default:
          out.push({ type: "data", id, data: p.data ?? p.text ?? null });
      }
    }
  }
  return out;
}

/** A tool's input: JSON where it is, else the text as it stands. */
export function parsed(text: string | undefined): unknown {
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const toolOver = (p: Part): boolean => p.ended === true || p.state === "done" || p.state === "failed" || p.state === "denied";
export const toolOutput = (p: Part): unknown => (p.stderr ? { output: p.output ?? "", stderr: p.stderr } : (p.output ?? ""));

/**
 * Says a growing turn in the chunks of the AI SDK. They can only append: where the agent takes back what it has said, the
 * step is reset and said again, so that the message is always what the turn shows.
 */
export class TurnChunks {
  private said: Block[] = [];
  private readonly tools = new Map<string, "input" | "called" | "over">();
  private readonly open = new Set<string>();

  /** The first chunks of a turn. */
  start(turn: string): UIMessageChunk[] {
    return [{ type: "start", messageId: turn }, { type: "start-step" }];
  }

  /** What is new since the last call. */
  next(messages: readonly Message[]): UIMessageChunk[] {
    const now = blocks(messages);
    const out: UIMessageChunk[] = [];
    if (!this.said.every((b, i) => goesOn(b, now[i]))) {
      out.push({ type: "reset-step" });
      this.said = [];
      this.tools.clear();
      this.open.clear();
    }
    for (const [i, b] of now.entries()) {
      const before = this.said[i];
      if (b.type === "text" || b.type === "reasoning") this.text(b, before?.type === b.type ? before.text : undefined, out);
      else if (b.type === "tool") this.tool(b, before?.type === "tool" ? before.part : undefined, out);
      else if (!before && b.type === "file") out.push({ type: "file", url: b.url, mediaType: b.mediaType });
      else if (b.type === "data" && (!before || JSON.stringify(before) !== JSON.stringify(b))) out.push({ type: "data-leat", id: b.id, data: b.data });
    }
    this.said = now;
    return out;
  }

  /** The last chunks of a turn that is over. */
  end(): UIMessageChunk[] {
    const out: UIMessageChunk[] = [];
    for (const b of this.said) if ((b.type === "text" || b.type === "reasoning") && this.open.delete(b.id)) out.push({ type: `${b.type}-end`, id: b.id });
    return [...out, { type: "finish-step" }];
  }

  private text(b: Block & { type: "text" | "reasoning" }, before: string | undefined, out: UIMessageChunk[]): void {
    if (before === undefined) {
      out.push({ type: `${b.type}-start`, id: b.id });
      this.open.add(b.id);
    }
    const more = b.text.slice(before?.length ?? 0);
    if (more) out.push({ type: `${b.type}-delta`, id: b.id, delta: more });
  }

  private tool(b: Block & { type: "tool" }, before: Part | undefined, out: UIMessageChunk[]): void {
    const { part: p, id: toolCallId } = b;
    const named = { toolCallId, toolName: p.name || "tool", dynamic: true, providerExecuted: true, ...(p.title && { title: p.title }) };
    if (!before) {
      out.push({ type: "tool-input-start", ...named });
      this.tools.set(toolCallId, "input");
    }
    const more = (p.input ?? "").slice(before?.input?.length ?? 0);
    if (more) out.push({ type: "tool-input-delta", toolCallId, inputTextDelta: more });
    // That the input is whole is known when something came of it.
    if (this.tools.get(toolCallId) === "input" && (p.output || p.stderr || toolOver(p))) {
      out.push({ type: "tool-input-available", ...named, input: parsed(p.input) });
      this.tools.set(toolCallId, "called");
    }
    if (this.tools.get(toolCallId) !== "called") return;
    const done = { toolCallId, dynamic: true, providerExecuted: true };
    if (!toolOver(p)) {
      if (p.output !== before?.output || p.stderr !== before?.stderr) out.push({ type: "tool-output-available", ...done, output: toolOutput(p), preliminary: true });
      return;
    }
    this.tools.set(toolCallId, "over");
    if (p.state === "denied") out.push({ type: "tool-output-denied", toolCallId });
    else if (p.state === "failed") out.push({ type: "tool-output-error", ...done, errorText: p.error?.message ?? p.stderr ?? "the tool failed" });
    else out.push({ type: "tool-output-available", ...done, output: toolOutput(p) });
  }
}

// goesOn reports whether a block can still become the other by chunks that append.
function goesOn(b: Block, now: Block | undefined): boolean {
  if (now?.type !== b.type || now.id !== b.id) return false;
  if (b.type === "text" || b.type === "reasoning") return (now as typeof b).text.startsWith(b.text);
  if (b.type === "tool") {
    const p = (now as typeof b).part;
    return toolOver(b.part) ? !changedAfterEnd(b.part, p) : (p.input ?? "").startsWith(b.part.input ?? "");
  }
  return b.type === "data" || JSON.stringify(now) === JSON.stringify(b);
}

// changedAfterEnd reports whether a finished tool shows something else than it did.
function changedAfterEnd(a: Part, b: Part): boolean {
  return a.input !== b.input || a.output !== b.output || a.stderr !== b.stderr || a.state !== b.state;
}

/** The parts of a whole turn's message. */
export function turnParts(messages: readonly Message[]): UIMessage["parts"] {
  return blocks(messages).map((b): UIMessage["parts"][number] => {
    switch (b.type) {
      case "text":
      case "reasoning":
        return { type: b.type, text: b.text, state: "done" };
      case "file":
        return { type: "file", url: b.url, mediaType: b.mediaType };
      case "data":
        return { type: "data-leat", id: b.id, data: b.data };
      case "tool":
        return toolPart(b.id, b.part);
    }
  });
}

function toolPart(toolCallId: string, p: Part): UIMessage["parts"][number] {
  const named = { type: "dynamic-tool" as const, toolCallId, toolName: p.name || "tool", providerExecuted: true, ...(p.title && { title: p.title }) };
  const input = parsed(p.input);
  if (p.state === "failed") return { ...named, state: "output-error", input, errorText: p.error?.message ?? p.stderr ?? "the tool failed" };
  if (p.state === "denied") return { ...named, state: "output-denied", input, approval: { id: toolCallId, approved: false } };
  if (toolOver(p) || p.output || p.stderr) return { ...named, state: "output-available", input, output: toolOutput(p), ...(!toolOver(p) && { preliminary: true }) };
  return { ...named, state: "input-streaming", input };
}
