import type { UIMessage, UIMessageChunk } from "ai";

import type { Message, Part } from "./wire.js";

// A turn is one assistant message of the AI SDK. Its blocks are the visible content of that message, in order.
type Block =
  | { type: "text" | "reasoning"; id: string; text: string; ended: boolean }
  | { type: "tool"; id: string; part: Part }
  | { type: "file"; id: string; url: string; mediaType: string }
  | { type: "data"; id: string; data: unknown };

/** Returns the blocks of a turn. Adjacent text parts without a join form one block. */
function blocks(messages: readonly Message[]): Block[] {
  const result: Block[] = [];
  for (const m of messages) {
    for (const [i, p] of m.parts.entries()) {
      const id = `${m.id}/${p.id}`;
      const before = result.at(-1);
      switch (p.kind) {
        case "text":
        case "status":
          if (!p.text) break;
          if (before?.type === "text" && i > 0 && !p.join) {
            before.text += p.text;
            before.ended = !!p.ended;
          } else {
            result.push({ type: "text", id, text: p.text, ended: !!p.ended });
          }
          break;
        case "reasoning":
          if (p.text) result.push({ type: "reasoning", id, text: p.text, ended: !!p.ended });
          break;
        case "tool":
          result.push({ type: "tool", id: p.call ?? id, part: p });
          break;
        case "media":
          if (p.media?.url) result.push({ type: "file", id, url: p.media.url, mediaType: p.media.mime ?? "application/octet-stream" });
          break;
        default:
          result.push({ type: "data", id, data: p.data ?? p.text ?? null });
      }
    }
  }
  return result;
}

/** Parses a tool's input as JSON. If it isn't valid JSON, the text is returned unchanged. */
export function parseInput(text: string | undefined): unknown {
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const isToolFinished = (p: Part): boolean => p.ended === true || p.state === "done" || p.state === "failed" || p.state === "denied";
export const toolOutput = (p: Part): unknown => (p.stderr ? { output: p.output ?? "", stderr: p.stderr } : (p.output ?? ""));

/**
 * Converts a growing turn into chunks of the AI SDK. Chunks can only append. If the agent replaces earlier output, the step is
 * reset and sent again, so that the message always matches the turn.
 */
export class TurnChunks {
  private emitted: Block[] = [];
  private readonly tools = new Map<string, "input" | "called" | "over">();
  private readonly open = new Set<string>();

  /** Returns the first chunks of a turn. */
  start(turn: string): UIMessageChunk[] {
    return [{ type: "start", messageId: turn }, { type: "start-step" }];
  }

  /** Returns the chunks for the changes since the last call. */
  next(messages: readonly Message[]): UIMessageChunk[] {
    const current = blocks(messages);
    const chunks: UIMessageChunk[] = [];
    if (!this.emitted.every((b, i) => isExtension(b, current[i]))) {
      chunks.push({ type: "reset-step" });
      this.emitted = [];
      this.tools.clear();
      this.open.clear();
    }
    for (const [i, b] of current.entries()) {
      const before = this.emitted[i];
      if (b.type === "text" || b.type === "reasoning") this.text(b, before?.type === b.type ? before.text : undefined, chunks);
      else if (b.type === "tool") this.tool(b, before?.type === "tool" ? before.part : undefined, chunks);
      else if (!before && b.type === "file") chunks.push({ type: "file", url: b.url, mediaType: b.mediaType });
      else if (b.type === "data" && (!before || JSON.stringify(before) !== JSON.stringify(b))) chunks.push({ type: "data-leat", id: b.id, data: b.data });
    }
    this.emitted = current;
    return chunks;
  }

  /** Returns the last chunks of an ended turn. */
  end(): UIMessageChunk[] {
    const chunks: UIMessageChunk[] = [];
    for (const b of this.emitted) if ((b.type === "text" || b.type === "reasoning") && this.open.delete(b.id)) chunks.push({ type: `${b.type}-end`, id: b.id });
    return [...chunks, { type: "finish-step" }];
  }

  private text(b: Block & { type: "text" | "reasoning" }, before: string | undefined, chunks: UIMessageChunk[]): void {
    if (before === undefined) {
      chunks.push({ type: `${b.type}-start`, id: b.id });
      this.open.add(b.id);
    }
    const suffix = b.text.slice(before?.length ?? 0);
    if (suffix) chunks.push({ type: `${b.type}-delta`, id: b.id, delta: suffix });
  }

  private tool(b: Block & { type: "tool" }, before: Part | undefined, chunks: UIMessageChunk[]): void {
    const { part: p, id: toolCallId } = b;
    const header = { toolCallId, toolName: p.name || "tool", dynamic: true, providerExecuted: true, ...(p.title && { title: p.title }) };
    if (!before) {
      chunks.push({ type: "tool-input-start", ...header });
      this.tools.set(toolCallId, "input");
    }
    const suffix = (p.input ?? "").slice(before?.input?.length ?? 0);
    if (suffix) chunks.push({ type: "tool-input-delta", toolCallId, inputTextDelta: suffix });
    // The input has no end marker of its own: it is complete when the tool has output or has finished.
    if (this.tools.get(toolCallId) === "input" && (p.output || p.stderr || isToolFinished(p))) {
      chunks.push({ type: "tool-input-available", ...header, input: parseInput(p.input) });
      this.tools.set(toolCallId, "called");
    }
    if (this.tools.get(toolCallId) !== "called") return;
    const fields = { toolCallId, dynamic: true, providerExecuted: true };
    if (!isToolFinished(p)) {
      if (p.output !== before?.output || p.stderr !== before?.stderr) chunks.push({ type: "tool-output-available", ...fields, output: toolOutput(p), preliminary: true });
      return;
    }
    this.tools.set(toolCallId, "over");
    if (p.state === "denied") chunks.push({ type: "tool-output-denied", toolCallId });
    else if (p.state === "failed") chunks.push({ type: "tool-output-error", ...fields, errorText: p.error?.message ?? p.stderr ?? "the tool failed" });
    else chunks.push({ type: "tool-output-available", ...fields, output: toolOutput(p) });
  }
}

// isExtension reports whether appending chunks can turn block b into next.
function isExtension(b: Block, next: Block | undefined): boolean {
  if (next?.type !== b.type || next.id !== b.id) return false;
  if (b.type === "text" || b.type === "reasoning") return (next as typeof b).text.startsWith(b.text);
  if (b.type === "tool") {
    const p = (next as typeof b).part;
    return isToolFinished(b.part) ? !changedAfterEnd(b.part, p) : (p.input ?? "").startsWith(b.part.input ?? "");
  }
  return b.type === "data" || JSON.stringify(next) === JSON.stringify(b);
}

// changedAfterEnd reports whether a finished tool has different content than before.
function changedAfterEnd(a: Part, b: Part): boolean {
  return a.input !== b.input || a.output !== b.output || a.stderr !== b.stderr || a.state !== b.state;
}

/** Returns the parts of a complete turn's message. */
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
  const header = { type: "dynamic-tool" as const, toolCallId, toolName: p.name || "tool", providerExecuted: true, ...(p.title && { title: p.title }) };
  const input = parseInput(p.input);
  if (p.state === "failed") return { ...header, state: "output-error", input, errorText: p.error?.message ?? p.stderr ?? "the tool failed" };
  if (p.state === "denied") return { ...header, state: "output-denied", input, approval: { id: toolCallId, approved: false } };
  if (isToolFinished(p) || p.output || p.stderr) return { ...header, state: "output-available", input, output: toolOutput(p), ...(!isToolFinished(p) && { preliminary: true }) };
  return { ...header, state: "input-streaming", input };
}
