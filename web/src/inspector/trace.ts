// Evaluates a turn's trace: its figures, and the answer at any moment.

import type { Message, Part } from "@leat/client";

import type { Batch } from "./shown";

export interface Commit { arrival: number; commit: number; seq: number; type: string; message?: string; part?: string; field?: string; end?: number }
export interface Replacement { seq: number; message: string; part: string; field?: string; text: string }
export interface Trace { turn: string; commits: readonly Commit[]; replaced?: readonly Replacement[] }

/** Returns the time of the turn's beginning, by the log's clock. */
export const beginOf = (t: Trace): number => (t.commits.find((c) => c.type === "turn.start") ?? t.commits[0])?.arrival ?? 0;

export const isText = (c: Commit): boolean => c.type === "part.append" || c.type === "part.replace";

/** Pauses longer than this are shown. Milliseconds. */
export const longGap = 2000;

export interface Figures {
  /** Durations in milliseconds. */
  total: number; largestGap: number; commitP50: number; commitP99: number; lagP50?: number; lagP99?: number;
  /** The number of events in the log, of those that this tab received live, of the frames that carried them, and of batches. */
  events: number; seen: number; pieces: number; batches: number;
  bytes: number;
}

/** Computes the figures. offset is the difference between the log's clock and the tab's, in milliseconds. */
export function figures(t: Trace, displayed: readonly Batch[], offset: number): Figures {
  const { commits } = t;
  const begin = beginOf(t);
  let largestGap = 0;
  let bytes = 0;
  const ends = new Map<string, number>();
  commits.forEach((c, i) => {
    if (i > 0) largestGap = Math.max(largestGap, c.arrival - commits[i - 1]!.arrival);
    if (!isText(c)) return;
    const key = textKey(c);
    bytes += Math.max(0, (c.end ?? 0) - (c.type === "part.replace" ? 0 : ends.get(key) ?? 0));
    ends.set(key, c.end ?? 0);
  });
  const delays = commits.map((c) => c.commit - c.arrival);
  const times = shownTimes(t, displayed, offset);
  const lags = commits.flatMap((c, i) => (times[i] === undefined ? [] : [Math.max(0, times[i] - c.commit)]));
  let next = 0;
  const batches = displayed.filter((b) => {
    while (next < commits.length && commits[next]!.seq < b.from) next++;
    return next < commits.length && commits[next]!.seq <= b.upto; // events that are newer than the trace are omitted
  });
  return {
    total: Math.max(0, (commits.at(-1)?.arrival ?? begin) - begin), largestGap, commitP50: quantile(delays, 0.5), commitP99: quantile(delays, 0.99),
    ...(lags.length > 0 && { lagP50: quantile(lags, 0.5), lagP99: quantile(lags, 0.99) }),
    events: commits.length, seen: lags.length, pieces: batches.reduce((n, b) => n + b.events, 0), batches: batches.length, bytes,
  };
}

/** Returns the time at which this tab displayed each commit, by the log's clock; undefined for commits that didn't arrive live. */
export function shownTimes(t: Trace, displayed: readonly Batch[], offset: number): (number | undefined)[] {
  let i = 0;
  return t.commits.map((c) => {
    while (i < displayed.length && displayed[i]!.upto < c.seq) i++;
    const b = displayed[i];
    return b && b.from <= c.seq ? b.at + offset : undefined;
  });
}

export function quantile(values: readonly number[], q: number): number {
  const ascending = values.toSorted((a, b) => a - b);
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * q))] ?? 0;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const fields = ["text", "input", "output", "stderr"] as const;
const textKey = (c: { message?: string; part?: string; field?: string }) => `${c.message} ${c.part} ${c.field || "text"}`;

/** The bytes of a text between two replacements; undefined if they are not stored. */
interface Stretch { until: number; bytes: Uint8Array | undefined }

/** Reconstructs the texts of a turn at any moment. */
export class Replay {
  private readonly stretches = new Map<string, Stretch[]>();
  private readonly kinds = new Map<string, string>();
  private readonly keys: string[] = []; // the key of each commit's text
  private readonly froms: number[] = []; // the byte offset of each commit within its text

  constructor(private readonly trace: Trace, private readonly messages: readonly Message[]) {
    const replacedTexts = new Map((trace.replaced ?? []).map((r) => [r.seq, encoder.encode(r.text)]));
    const ends = new Map<string, number>();
    for (const c of trace.commits) {
      const key = textKey(c);
      const end = ends.get(key) ?? 0;
      this.keys.push(key);
      this.froms.push(c.type === "part.replace" ? 0 : end);
      if (!isText(c)) continue;
      if (c.type === "part.replace") {
        const bytes = replacedTexts.get(c.seq);
        // A replacement by the same text retracts nothing. A missing one retracted more than traces store.
        if (bytes || (end > 0 && end !== c.end)) this.add(key, { until: c.seq, bytes });
      }
      ends.set(key, c.end ?? 0);
    }
    for (const m of messages) for (const p of m.parts) {
      this.kinds.set(`${m.id} ${p.id}`, p.kind);
      for (const f of fields) if (p[f] !== undefined) this.add(`${m.id} ${p.id} ${f}`, { until: Infinity, bytes: encoder.encode(p[f]) });
    }
  }

  private add(key: string, s: Stretch): void {
    const list = this.stretches.get(key) ?? [];
    list.push(s);
    this.stretches.set(key, list);
  }

  private bytes(key: string, seq: number): Uint8Array | undefined {
    return this.stretches.get(key)?.find((s) => s.until > seq)?.bytes;
  }

  kind(c: Commit): string | undefined {
    return this.kinds.get(`${c.message} ${c.part}`);
  }

  /** Returns the number of bytes of the i-th commit. */
  size(i: number): number {
    const c = this.trace.commits[i]!;
    return isText(c) ? Math.max(0, (c.end ?? 0) - this.froms[i]!) : 0;
  }

  /** Returns the number of those bytes that a model produced: text, reasoning and tool arguments. */
  producedBytes(i: number): number {
    const c = this.trace.commits[i]!;
    const kind = this.kind(c);
    return (kind === "text" || kind === "reasoning") && !c.field || kind === "tool" && c.field === "input" ? this.size(i) : 0;
  }

  /** Returns the beginning of the i-th commit's text. */
  textOf(i: number, maxLength: number): string {
    const c = this.trace.commits[i]!;
    if (!isText(c)) return "";
    const from = this.froms[i]!;
    const bytes = this.bytes(this.keys[i]!, c.seq);
    if (!bytes) return c.end ? "(not stored)" : "";
    return [...decoder.decode(bytes.subarray(from, Math.min(c.end ?? 0, from + 4 * maxLength)))].slice(0, maxLength).join("");
  }

  /** Returns the turn's messages after the first `count` commits. */
  at(count: number): Message[] {
    const ends = new Map<string, { seq: number; end: number }>();
    const startedParts = new Set<string>();
    const endedParts = new Set<string>();
    const { commits } = this.trace;
    for (let i = 0; i < count && i < commits.length; i++) {
      const c = commits[i]!;
      if (!c.message) continue;
      if (isText(c)) ends.set(this.keys[i]!, { seq: c.seq, end: c.end ?? 0 });
      else if (c.type === "part.start") startedParts.add(`${c.message} ${c.part}`);
      else if (c.type === "part.end") endedParts.add(`${c.message} ${c.part}`);
      else startedParts.add(c.message);
    }
    return this.messages.filter((m) => startedParts.has(m.id)).map((m) => ({
      ...m, ended: false, parts: m.parts.filter((p) => startedParts.has(`${m.id} ${p.id}`)).map((p) => this.part(m, p, ends, endedParts)),
    }));
  }

  private part(m: Message, p: Part, ends: Map<string, { seq: number; end: number }>, endedParts: Set<string>): Part {
    const isEnded = endedParts.has(`${m.id} ${p.id}`);
    const copy: Part = { ...p, ended: isEnded };
    if (!isEnded && p.kind === "tool") copy.state = "running";
    for (const f of fields) {
      const key = `${m.id} ${p.id} ${f}`;
      const at = ends.get(key);
      const bytes = at && this.bytes(key, at.seq);
      if (bytes) copy[f] = decoder.decode(bytes.subarray(0, at.end));
      else delete copy[f];
    }
    return copy;
  }
}
