// The spans of a turn, computed from the events of its log: the turn, its steps, and their reasoning, tools, texts, statuses,
// questions and inner turns. The same events give the same spans, whether they arrived live or were loaded later.

import type { Failure, Outcome, Usage } from "@leat/client";

import { argument } from "../chat/parts/argument";
import { line } from "../chat/parts/marks";
import type { Question, EventFold, FoldedPart, FoldedTurn, Moment } from "./fold";

export type SpanKind = "turn" | "step" | "reasoning" | "text" | "tool" | "status" | "question" | "media" | "data";
export type SpanState = "running" | "waiting" | "done" | "failed" | "denied" | "cancelled" | "interrupted" | "retracted" | "incomplete";

export interface Span {
  /** Unique within the trace, and the same after a reload. */
  id: string;
  kind: SpanKind;
  name: string;
  /** The beginning of the text or the main argument, on one line. */
  preview: string;
  state: SpanState;
  /** Epoch milliseconds by the gateway's clock. A span without an end is running. */
  start: number; end?: number;
  /** When the first output arrived. Of a tool, when its arguments were complete. */
  first?: number;
  error?: Failure; usage?: Usage; model?: string;
  input?: string; output?: string; stderr?: string;
  moments: readonly Moment[];
  /** The ids of the turn, message, part and request, and the other facts of the span's event. */
  facts: Facts;
  children: Span[];
}

export interface Facts {
  turn: string; message?: string; part?: string; call?: string; request?: string; agent?: string; step?: number;
  outcome?: Outcome; reason?: string; by?: string; title?: string; decision?: string; data?: unknown; mime?: string;
}

/** The maximum length of a preview. */
const maxPreview = 120;

const short = (text: string | undefined): string => line((text ?? "").slice(0, 4 * maxPreview).trim().replace(/\s+/g, " "), maxPreview);

/** Returns the root span of a turn, or undefined if the turn hasn't started. question is the text that the turn answers. */
export function spansOf(fold: EventFold, question?: string): Span | undefined {
  const turn = fold.turns.get(fold.root);
  if (!turn) return undefined;
  const root = turnSpan(fold, turn);
  if (question) root.input = question;
  if (root.end !== undefined) close(root, root.end);
  return root;
}

/** Ends what a turn has left open, such as an inner turn without an end. */
function close(span: Span, end: number): void {
  for (const child of span.children) close(child, end);
  if (span.end !== undefined) return;
  span.end = Math.max(span.start, end);
  span.state = "incomplete";
}

/** An entry of a turn in the order of the log: a part, an inner turn or a question. */
interface Entry { seq: number; span: Span; opens: boolean; work?: { endSeq: number; endAt: number } }

function turnSpan(fold: EventFold, t: FoldedTurn): Span {
  const isEnded = t.outcome !== undefined;
  const state: SpanState = t.outcome === undefined ? (fold.questions(t.id).some((q) => q.answeredAt === undefined) ? "waiting" : "running") : t.outcome === "completed" ? "done" : t.outcome;
  const children = steps(t, entriesOf(fold, t), state);
  const text = children.flatMap((s) => s.children).filter((s) => s.kind === "text" && s.output).map((s) => s.output).join("\n\n");
  const firstOutput = children.flatMap((s) => (s.first === undefined ? [] : [s.first]))[0];
  return {
    id: `turn ${t.id}`, kind: "turn", name: line(t.agent ?? "agent", 80), preview: "", state, start: t.startAt, moments: [], children,
    ...(isEnded && { end: Math.max(t.startAt, t.endAt) }), ...(firstOutput !== undefined && { first: firstOutput }),
    ...(t.error && { error: t.error }), ...(t.usage && { usage: t.usage }), ...((t.usage?.model ?? t.model) && { model: t.usage?.model ?? t.model }), ...(text && { output: text }),
    facts: { turn: t.id, ...(t.agent && { agent: t.agent }), ...(t.outcome && { outcome: t.outcome }), ...(t.reason && { reason: t.reason }), ...(t.by && { by: t.by }) },
  };
}

function entriesOf(fold: EventFold, t: FoldedTurn): Entry[] {
  const questions = fold.questions(t.id);
  const byPart = new Map<string, Span>();
  const entries = fold.parts(t.id).map((p): Entry => {
    const isAsking = questions.some((q) => q.request.part === p.id && q.answeredAt === undefined);
    const span = partSpan(p, t, isAsking);
    byPart.set(p.id, span);
    const isTool = p.kind === "tool";
    return { seq: p.startSeq, span, opens: isTool || p.kind === "text" || p.kind === "reasoning", ...(isTool && { work: { endSeq: p.endSeq, endAt: p.endAt } }) };
  });
  for (const q of questions) {
    const span = questionSpan(q, t);
    const tool = q.request.part === undefined ? undefined : byPart.get(q.request.part);
    if (tool) tool.children.push(span);
    else entries.push({ seq: q.seq, span, opens: false });
  }
  for (const inner of fold.inner(t.id)) {
    entries.push({ seq: inner.startSeq, span: turnSpan(fold, inner), opens: false, work: { endSeq: inner.outcome === undefined ? Infinity : inner.endSeq, endAt: inner.endAt } });
  }
  return entries.toSorted((a, b) => a.seq - b.seq);
}

/**
 * Divides a turn into steps, which are calls of the model. Logs don't name them reliably, so they follow from the order of events: a
 * step ends when its tools and inner turns have ended and the model writes again. The next one begins when the last of them ended.
 */
function steps(t: FoldedTurn, entries: readonly Entry[], state: SpanState): Span[] {
  const list: Span[] = [];
  let work: { endSeq: number; endAt: number }[] = [];
  const begin = (start: number) => {
    const n = list.length + 1;
    list.push({ id: `step ${t.id} ${n}`, kind: "step", name: `Step ${n}`, preview: "", state: "done", start, moments: [], children: [], facts: { turn: t.id, step: n } });
    work = [];
  };
  for (const e of entries) {
    if (list.length === 0) begin(t.startAt);
    else if (e.opens && work.length > 0 && work.every((w) => w.endSeq < e.seq)) {
      const next = Math.max(...work.map((w) => w.endAt));
      list.at(-1)!.end = next;
      begin(next);
    }
    const step = list.at(-1)!;
    step.children.push(e.span);
    if (e.work) work.push(e.work);
    if (e.opens) step.first ??= e.span.kind === "tool" ? e.span.start : e.span.first ?? e.span.start;
  }
  const last = list.at(-1);
  if (last) {
    last.state = state;
    if (t.outcome !== undefined) last.end = Math.max(last.start, t.endAt);
  }
  for (const s of list) {
    const text = s.children.filter((c) => c.kind === "text" && c.output).map((c) => c.output).join("\n\n");
    if (text) s.output = text;
    const tools = s.children.filter((c) => c.kind === "tool").map((c) => c.name);
    s.preview = short(tools.length > 0 ? tools.join(", ") : text);
    if (s.first !== undefined) s.first = Math.max(s.start, s.first);
  }
  return list;
}

const names = { reasoning: "Reasoning", text: "Text", status: "Status", media: "File", data: "Data" } as const;

function partSpan(p: FoldedPart, t: FoldedTurn, isAsking: boolean): Span {
  const state = stateOf(p, t, isAsking);
  const isTool = p.kind === "tool";
  const firstOutput = isTool ? p.inputAt : p.firstAt;
  // The part of a text may end long after its last character, so its span ends with that.
  const end = state === "running" || state === "waiting" ? undefined : p.kind === "text" ? p.lastAt ?? p.startAt : p.endAt;
  const kind: SpanKind = isTool ? "tool" : p.kind in names ? p.kind as keyof typeof names : "data";
  const name = isTool ? line(p.name || "tool", 80) : kind === "media" || kind === "data" ? line(p.media?.name || p.name || names[kind], 80) : names[kind as keyof typeof names];
  const data = p.data ?? (kind !== p.kind ? { kind: p.kind } : undefined);
  return {
    id: `part ${p.message} ${p.id}`, kind, name, state, start: p.startAt, moments: p.moments, children: [],
    preview: short(isTool ? p.title ?? argument(p.input) : state === "retracted" ? p.moments.at(-1)?.text : p.text || p.media?.mime),
    ...(end !== undefined && { end: Math.max(p.startAt, end) }), ...(firstOutput !== undefined && { first: Math.max(p.startAt, firstOutput) }),
    ...(p.error && state !== "cancelled" && state !== "interrupted" && state !== "incomplete" && { error: p.error }),
    ...(p.input && { input: p.input }), ...((isTool ? p.output : p.text) && { output: isTool ? p.output : p.text }), ...(p.stderr && { stderr: p.stderr }),
    facts: { turn: t.id, message: p.message, part: p.id, ...(p.call && { call: p.call }), ...(p.title && { title: p.title }), ...(data !== undefined && { data }), ...(p.media?.mime && { mime: p.media.mime }) },
  };
}

function stateOf(p: FoldedPart, t: FoldedTurn, isAsking: boolean): SpanState {
  const { outcome } = t;
  if (isAsking && outcome === undefined) return "waiting";
  if (p.state === "denied") return "denied";
  if (p.state === "failed" && !p.isCut) return "failed";
  if (p.kind !== "tool" && p.text === "" && p.moments.some((m) => m.kind === "removed")) return "retracted";
  if (outcome === undefined) return p.isEnded || p.state === "done" ? "done" : "running";
  return !p.isCut || outcome === "completed" ? "done" : cutState(outcome);
}

/** Returns the state of a span that the end of its turn ended. */
const cutState = (outcome: Outcome): SpanState => (outcome === "cancelled" || outcome === "interrupted" ? outcome : "incomplete");

function questionSpan(q: Question, t: FoldedTurn): Span {
  const { request: r } = q;
  const unanswered = t.outcome === undefined ? "waiting" : cutState(t.outcome);
  const state = q.answeredAt === undefined ? unanswered : /^(deny|reject)/.test(q.answer?.decision ?? "") ? "denied" : "done";
  const end = q.answeredAt ?? (t.outcome === undefined ? undefined : t.endAt);
  const input = [r.prompt, r.data === undefined ? "" : JSON.stringify(r.data, null, 2)].filter(Boolean).join("\n\n");
  const output = [q.answer?.decision, q.answer?.text].filter(Boolean).join(": ");
  return {
    id: `question ${t.id} ${r.id}`, kind: "question", name: r.kind === "approval" ? "Approval" : "Question", preview: short(r.prompt ?? r.tool), state, start: q.askedAt, moments: [], children: [],
    ...(end !== undefined && { end: Math.max(q.askedAt, end) }), ...(input && { input }), ...(output && { output }),
    facts: { turn: t.id, request: r.id, ...(q.answer?.by && { by: q.answer.by }), ...(q.answer?.decision && { decision: q.answer.decision }), ...(r.tool && { title: r.tool }) },
  };
}
