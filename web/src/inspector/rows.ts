// The rows of a trace: the visible part of its tree, the hits of a search, and the ticks of its time axis.

import type { Span, SpanKind } from "./spans";

export interface Row {
  span: Span;
  /** From 1, the root. */
  level: number;
  /** The number of siblings, and the position among them from 1. */
  size: number; position: number;
  /** Undefined if the span has no children. */
  isOpen?: boolean;
}

/** Returns the rows of a tree in order, without those inside folded spans. */
export function rowsOf(root: Span, folded: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const add = (span: Span, level: number, size: number, position: number) => {
    const isOpen = !folded.has(span.id);
    rows.push({ span, level, size, position, ...(span.children.length > 0 && { isOpen }) });
    if (isOpen) span.children.forEach((c, i) => add(c, level + 1, span.children.length, i + 1));
  };
  add(root, 1, 1, 1);
  return rows;
}

/** Returns all spans of a tree, each before its children. */
export function allSpans(root: Span): Span[] {
  const spans: Span[] = [];
  const add = (s: Span) => {
    spans.push(s);
    s.children.forEach(add);
  };
  add(root);
  return spans;
}

/** Returns the ids of the spans around a span, outermost first. */
export function around(root: Span, id: string): string[] {
  const find = (s: Span): string[] | undefined => {
    if (s.id === id) return [];
    for (const c of s.children) {
      const path = find(c);
      if (path) return [s.id, ...path];
    }
    return undefined;
  };
  return find(root) ?? [];
}

/** Where a search found its text in a span. */
export type Place = "name" | "input" | "output";

/** Finds a text in the names, inputs and outputs of spans, in the order of the tree. Case is ignored. */
export function hitsOf(root: Span, text: string): Map<string, Place> {
  const hits = new Map<string, Place>();
  const needle = text.trim().toLowerCase();
  if (!needle) return hits;
  const has = (t: string | undefined) => t !== undefined && t.toLowerCase().includes(needle);
  for (const s of allSpans(root)) {
    // The texts of a turn and a step are those of their children, which are found by themselves.
    const isOwn = s.kind !== "turn" && s.kind !== "step";
    if (has(s.name) || (isOwn && has(s.preview))) hits.set(s.id, "name");
    else if (has(s.input)) hits.set(s.id, "input");
    else if (isOwn && (has(s.output) || has(s.stderr) || has(s.error?.message) || s.moments.some((m) => has(m.text)))) hits.set(s.id, "output");
  }
  return hits;
}

/** Returns the next hit after a span in the order of the tree, or before it with a step of -1. After the last one it starts again. */
export function nextHit(root: Span, hits: ReadonlyMap<string, Place>, id: string, step: 1 | -1): string | undefined {
  const ids = allSpans(root).map((s) => s.id);
  const at = ids.indexOf(id);
  for (let i = 1; i <= ids.length; i++) {
    const candidate = ids[(((at + i * step) % ids.length) + ids.length) % ids.length]!;
    if (hits.has(candidate)) return candidate;
  }
  return undefined;
}

/** Returns round times up to a duration, at most `count` of them besides 0. Milliseconds. */
export function ticksOf(duration: number, count: number): number[] {
  if (duration <= 0) return [0];
  const units = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000];
  let step = units.find((u) => duration / u <= count) ?? 3_600_000;
  while (duration / step > count) step *= 2;
  return Array.from({ length: Math.floor(duration / step) + 1 }, (_, i) => i * step);
}

/** Counts the spans of a kind. */
export const countOf = (root: Span, kind: SpanKind): number => allSpans(root).filter((s) => s.kind === kind).length;

/**
 * Returns the longest time, in milliseconds, without an event of the turn: the agent had ended one thing and not begun the next. time
 * is the end of a turn that runs.
 */
export function longestPause(root: Span, time: number): number {
  let pause = 0;
  let busyUntil = root.start;
  for (const s of allSpans(root).filter((e) => e.kind !== "turn" && e.kind !== "step").sort((a, b) => a.start - b.start)) {
    pause = Math.max(pause, s.start - busyUntil);
    busyUntil = Math.max(busyUntil, s.end ?? time);
  }
  return Math.max(pause, (root.end ?? time) - busyUntil);
}
