// Folds the events of a turn, and of the turns inside it, and remembers what the transcript forgets: when things happened, answered
// questions, and texts that were removed.

import { type Answer, type Event, type Failure, type Json, type Media, type Outcome, type PartState, type Request, Transcript, type Usage } from "@leat/client";

/** A moment of a part: the text that a replacement removed, or a line of a status. */
export interface Moment { kind: "removed" | "status"; at: number; text: string }

/** The maximum number of moments of a part, and of characters of each. */
const maxMoments = 100;
const maxText = 20_000;

export interface FoldedTurn {
  id: string; parent?: string; agent?: string; model?: string; startAt: number; startSeq: number; endAt: number; endSeq: number;
  outcome?: Outcome; reason?: string; by?: string; error?: Failure; usage?: Usage;
}

export interface FoldedPart {
  id: string; message: string; kind: string; startAt: number; startSeq: number;
  /** The end of the part, or of a tool's work if that is earlier. Of a part that hasn't ended, the seq is Infinity. */
  endAt: number; endSeq: number; isEnded: boolean;
  /** The end of the turn ended it. */
  isCut: boolean;
  /** When the first and last piece of its text arrived, and the last piece of its input. */
  firstAt?: number; lastAt?: number; inputAt?: number;
  text: string; input: string; output: string; stderr: string;
  name?: string | undefined; call?: string | undefined; title?: string | undefined; state?: PartState | undefined; media?: Media | undefined; data?: Json | undefined; error?: Failure | undefined;
  moments: Moment[];
}

/** A question with its answer. */
export interface Question { request: Request; seq: number; askedAt: number; answer?: Answer; answeredAt?: number }

/** What the events say about the times of a part. */
interface Times { startAt: number; startSeq: number; doneAt?: number; doneSeq?: number; firstAt?: number; lastAt?: number; inputAt?: number; isClosed: boolean; moments: Moment[] }

export class EventFold {
  /** The root turn and the turns inside it, in the order of their starts. */
  readonly turns = new Map<string, FoldedTurn>();
  /** The seq and time of the newest event. */
  seq = 0;
  at = 0;
  /** Events are missing: the log has to be read again. */
  hasGap = false;
  private readonly transcript = new Transcript();
  private readonly times = new Map<string, Times>();
  private readonly questionsOf = new Map<string, Question[]>();

  constructor(readonly root: string, events: readonly Event[] = []) {
    this.add(events);
  }

  /** Folds the events of a delivery, and reports whether any of them belongs to the turn. Events from before the newest one are ignored. */
  add(events: readonly Event[]): boolean {
    const knownSeq = this.seq;
    let isNew = false;
    for (const e of events) if (e.seq > knownSeq && this.belongs(e)) isNew = this.apply(e) || isNew;
    return isNew;
  }

  questions(turn: string): readonly Question[] {
    return this.questionsOf.get(turn) ?? [];
  }

  inner(turn: string): FoldedTurn[] {
    return [...this.turns.values()].filter((t) => t.parent === turn && t.id !== this.root);
  }

  /** The parts of a turn's messages. */
  parts(turn: string): FoldedPart[] {
    return this.transcript.order.filter((m) => m.turn === turn).flatMap((m) => m.parts.map((p): FoldedPart => {
      const t = this.times.get(`${m.id} ${p.id}`) ?? { startAt: p.at ?? 0, startSeq: 0, isClosed: p.ended, moments: [] };
      const isEnded = p.ended || t.doneAt !== undefined;
      return {
        id: p.id, message: m.id, kind: p.kind, startAt: t.startAt, startSeq: t.startSeq, isEnded, isCut: p.ended && !t.isClosed && t.doneAt === undefined,
        endAt: t.doneAt ?? p.endAt ?? this.at, endSeq: isEnded ? t.doneSeq ?? p.closed : Infinity,
        ...(t.firstAt !== undefined && { firstAt: t.firstAt }), ...(t.lastAt !== undefined && { lastAt: t.lastAt }), ...(t.inputAt !== undefined && { inputAt: t.inputAt }),
        text: p.text.text, input: p.input.text, output: p.output.text, stderr: p.stderr.text,
        name: p.name, call: p.call, title: p.title, state: p.state, media: p.media, data: p.data, error: p.error, moments: t.moments,
      };
    }));
  }

  private belongs(e: Event): boolean {
    return e.turn !== undefined && (e.turn === this.root || this.turns.has(e.turn) || (e.type === "turn.start" && e.parent !== undefined && this.turns.has(e.parent)));
  }

  private apply(e: Event): boolean {
    // A message of a person that was added to the turn isn't part of its work, and a queued turn hasn't started.
    if ((e.type === "message.add" || e.type === "message.start") && e.role === "user" || e.type === "turn.queue") return false;
    this.seq = Math.max(this.seq, e.seq);
    const at = e.at ?? this.at;
    this.at = Math.max(this.at, at);
    if (e.type.startsWith("part.")) this.time(e, at);
    // A checksum only shows whether the log is damaged, which the conversation reports.
    if (!this.transcript.apply(e.type === "part.end" ? { ...e, sums: {} } : e)) this.hasGap = true;
    switch (e.type) {
      case "turn.start":
        if (!this.turns.has(e.turn)) this.turns.set(e.turn, { id: e.turn, startAt: at, startSeq: e.seq, endAt: at, endSeq: Infinity });
        break;
      case "turn.wait":
        if (!this.questions(e.turn).some((q) => q.request.id === e.request.id && q.answeredAt === undefined)) this.questionsOf.set(e.turn, [...this.questions(e.turn), { request: e.request, seq: e.seq, askedAt: at }]);
        break;
      case "turn.resume": {
        const q = this.questions(e.turn).find((a) => a.request.id === e.answer.id && a.answeredAt === undefined);
        if (q) Object.assign(q, { answer: e.answer, answeredAt: at });
        break;
      }
    }
    this.copyTurn(e, at);
    return true;
  }

  private copyTurn(e: Event, at: number): void {
    const t = this.turns.get(e.turn!);
    const folded = this.transcript.turns.get(e.turn!);
    if (!t || !folded) return;
    const { parent, agent, model, outcome, reason, by, error, usage } = folded;
    Object.assign(t, { parent, agent, model, outcome, reason, by, error, usage });
    if (outcome === undefined) t.endAt = Math.max(t.endAt, at);
    else if (e.type === "turn.end") Object.assign(t, { endAt: at, endSeq: e.seq });
  }

  // time notes what an event says about a part's times, before the event is folded.
  private time(e: Event, at: number): void {
    if (e.type !== "part.start" && e.type !== "part.append" && e.type !== "part.replace" && e.type !== "part.update" && e.type !== "part.end") return;
    const key = `${e.message} ${e.part}`;
    const t = this.times.get(key);
    if (e.type === "part.start") {
      const isDone = e.state !== undefined && e.state !== "running";
      if (!t) this.times.set(key, { startAt: at, startSeq: e.first ?? e.seq, isClosed: false, moments: [], ...(isDone && { doneAt: at, doneSeq: e.seq }) });
      return;
    }
    if (!t) return;
    const isDone = e.type === "part.end" || (e.type === "part.update" && e.state !== undefined && e.state !== "running");
    if (isDone && t.doneSeq === undefined) [t.doneAt, t.doneSeq] = [at, e.seq];
    if (e.type === "part.end") t.isClosed = true;
    if (e.type !== "part.append" && e.type !== "part.replace") return;
    if (e.type === "part.replace" || e.note !== undefined || e.history !== undefined) this.note(e, t, at);
    if (e.field === "input") t.inputAt = at;
    if (e.field || (e.type === "part.replace" && !e.text)) return;
    // A merged event has the time of its last piece, so the first one must have come when the part began.
    t.firstAt ??= e.first === undefined ? at : t.startAt;
    t.lastAt = at;
  }

  private note(e: Event & { type: "part.append" | "part.replace" }, t: Times, at: number): void {
    const part = this.transcript.messages.get(e.message)?.parts.find((p) => p.id === e.part);
    if (!part || t.moments.length >= maxMoments) return;
    if (part.kind === "status") {
      // A merged event has the whole history. The lines that arrived before it keep their times.
      const text = (e.note ?? e.text).trim();
      if (e.history) t.moments = e.history.slice(-maxMoments).map((l, i) => (t.moments[i]?.text === l ? t.moments[i] : { kind: "status", at, text: l.slice(0, maxText) }));
      else if (text && t.moments.at(-1)?.text !== text) t.moments.push({ kind: "status", at, text: text.slice(0, maxText) });
      return;
    }
    const before = part[e.field ?? "text"].text;
    if (e.type === "part.replace" && before && !e.text.startsWith(before)) t.moments.push({ kind: "removed", at, text: before.slice(0, maxText) });
  }
}
