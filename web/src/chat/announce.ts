// Announcements for screen readers: an answer begins, its text (as configured), it is complete, and it needs the user. Growing text
// is announced by sentences, never word by word.

import { type ConversationState, independent, type Message, type Part, type Turn } from "@leat/client";
import { useEffect, useRef } from "react";

import { readAloud } from "../settings/settings";
import { Reader, seldom } from "./reader";
import { sentences } from "./sentences";
import { alarm, isAnswerSpoken, say } from "./speaker";

/** A tool or status is announced if it lasts longer than this, and at most one in this time. Milliseconds. */
const minDuration = 4000;
const rare = 5000;

/** How often running tools and statuses are checked, in milliseconds. */
const tick = 500;

/** Announces turns that begin, grow, wait and end while the conversation is open. */
export function useAnnouncer(state: ConversationState): void {
  const following = useRef<Following>(undefined);
  useEffect(() => {
    current = following.current ??= new Following();
    current.take(state);
  }, [state]);
  useEffect(() => () => {
    following.current?.end();
    following.current = undefined;
  }, []);
}

let current: Following | undefined;

/** Stops reading the current answer, because the user has sent the next message. */
export const hush = (): void => current?.hush();

class Following {
  private turnStates: Map<string, string> | undefined;
  private state!: ConversationState;
  private readers: { turn: string; reader: Reader }[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;
  private lastRead = -Infinity; // the time of the last announced text
  private lasting = new Map<string, { since: number; told: boolean; name: string }>();
  private toolAt = -Infinity;
  private tool = ""; // the pending announcement about tools

  take(state: ConversationState): void {
    this.state = state;
    if (state.phase === "loading") {
      if (state.pending.length > 0) this.turnStates ??= new Map(); // the next turns answer the message that was just sent
      return;
    }
    const before = this.turnStates;
    const states = new Map(state.turns.map((t) => [t.id, `${t.state} ${(t.requests ?? []).map((r) => r.id).join()}`]));
    this.turnStates = states;
    for (const t of state.turns) {
      if (!independent(t) || before?.get(t.id) === states.get(t.id)) continue;
      // Turns from before the page was opened are not announced, except their open requests.
      if (t.state === "waiting") for (const r of t.requests ?? []) alarm(`${t.id} ${r.id}`, r.prompt ?? (r.tool ? `The agent wants to run ${r.tool}.` : "The agent asks for approval."));
      if (!before) continue;
      const was = before.get(t.id)?.split(" ")[0];
      if (t.state !== "queued" && (was === undefined || was === "queued")) this.begins(t);
      if (t.state === "ended" && was !== "ended" && t.outcome === "failed") alarm(t.id, `The answer failed. ${t.error?.message ?? ""}`);
    }
    this.poll();
    if (this.readers.length === 0 && this.lasting.size === 0) this.stopPolling();
    else this.timer ??= setInterval(() => this.poll(), tick);
  }

  private begins(t: Turn): void {
    if (t.state === "ended" && t.outcome !== "completed") return;
    if (t.state !== "ended") say("The agent is answering.");
    const turn = t.id;
    this.readers.push({ turn, reader: new Reader(() => this.source(turn), () => this.closing(turn)) });
  }

  private messages(turn: string): Message[] {
    return this.state.messages.filter((m) => m.turn === turn && m.role !== "user");
  }

  // source returns the text of a turn to read aloud.
  private source(turn: string): { sentences: string[]; whole: boolean } {
    const isOver = this.hasEnded(turn);
    const mode = isAnswerSpoken.get() ? "off" : readAloud.get();
    if (mode === "off" || mode === "end" && !isOver) return { sentences: [], whole: isOver };
    const parts = this.messages(turn).flatMap((m) => m.parts.filter((p) => p.kind === "text" && p.text).map((p) => ({ p, m })));
    const pieces = parts.flatMap(({ p, m }, i) => sentences(p.text!, isOver || !!p.ended || !!m.ended || i < parts.length - 1, navigator.language));
    return { sentences: pieces, whole: isOver };
  }

  private hasEnded(turn: string): boolean {
    const t = this.state.turns.find((o) => o.id === turn);
    return !t || t.state === "ended";
  }

  private closing(turn: string): string {
    const t = this.state.turns.find((o) => o.id === turn);
    if (!t || t.outcome === "failed") return ""; // the assertive region has announced the failure
    if (t.outcome !== "completed") return `The answer was ${t.outcome === "cancelled" ? "stopped" : "interrupted"}.`;
    const parts = this.messages(turn).flatMap((m) => m.parts);
    const words = parts.filter((p) => p.kind === "text").reduce((n, p) => n + (p.text ?? "").split(/\s+/).filter(Boolean).length, 0);
    const tools = parts.filter((p) => p.kind === "tool").length;
    const took = t.startedAt !== undefined && t.endedAt !== undefined ? [seconds(t.endedAt - t.startedAt)] : [];
    return `Answer complete, ${[count(words, "word"), ...(tools > 0 ? [count(tools, "tool")] : []), ...took].join(", ")}.`;
  }

  private poll(): void {
    const time = performance.now();
    while (this.readers.length > 0 && time - this.lastRead >= seldom) {
      const { reader } = this.readers[0]!;
      const next = reader.next();
      if (!next) break;
      if (reader.isDone) this.readers.shift();
      if (next.closing) {
        say(next.text);
      } else {
        this.lastRead = Infinity; // until the announcement is made
        say(next.text, () => { this.lastRead = performance.now(); });
      }
    }
    this.lasts(time);
    if (this.readers.length === 0 && this.lasting.size === 0 && !this.tool) this.stopPolling();
  }

  // lasts announces tools and statuses that take long.
  private lasts(time: number): void {
    const currentKeys = new Set<string>();
    for (const t of this.state.turns) {
      if (t.state !== "running") continue;
      for (const m of this.messages(t.id)) for (const p of m.parts) {
        const name = p.ended ? undefined : lastingName(p);
        if (!name) continue;
        const key = `${m.id} ${p.id} ${p.kind === "status" ? p.text : ""}`;
        currentKeys.add(key);
        const entry = this.lasting.get(key);
        if (!entry) this.lasting.set(key, { since: time, told: false, name });
        else if (!entry.told && time - entry.since >= minDuration && time - this.toolAt >= rare) {
          entry.told = true;
          this.tool = name;
        }
      }
    }
    for (const [key, l] of this.lasting) {
      if (currentKeys.has(key)) continue;
      this.lasting.delete(key);
      if (l.told && l.name.startsWith("Tool ")) this.tool = l.name.replace(" is running.", ` finished after ${seconds(time - l.since)}.`);
    }
    if (!this.tool || time - this.toolAt < rare) return;
    this.toolAt = time;
    say(this.tool);
    this.tool = "";
  }

  hush(): void {
    this.readers = this.readers.filter((r) => !this.hasEnded(r.turn));
  }

  private stopPolling(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  end(): void {
    this.stopPolling();
    if (current === this) current = undefined;
  }
}

function lastingName(p: Part): string | undefined {
  if (p.kind === "tool" && (p.state ?? "running") === "running") return `Tool ${p.name ?? ""} is running.`.replace("  ", " ");
  return p.kind === "status" ? p.text || undefined : undefined;
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

const seconds = (ms: number): string => count(ms < 9950 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000), "second");
