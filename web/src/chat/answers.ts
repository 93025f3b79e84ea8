// What was answered to the agents' questions while this page looked on, and by whom. The log tells it as it happens; a snapshot
// holds open questions only.

import type { Conversation, Request } from "@leat/client";

import { Store } from "../store";

export interface Answered { request: Request; decision: string; text: string; by: string; here: boolean }

/** By turn. */
export const answers = new Store<ReadonlyMap<string, readonly Answered[]>>(new Map());

const most = 100;
const asked = new Map<string, Request>();
const mine = new Set<string>();

function bound(all: { size: number; keys(): IterableIterator<string>; delete(key: string): boolean }): void {
  for (const key of all.keys()) {
    if (all.size <= most) return;
    all.delete(key);
  }
}

/** Remembers what a question was, for when it is answered. */
export function noteAsked(turn: string, r: Request): void {
  asked.set(`${turn} ${r.id}`, r);
  bound(asked);
}

/** Says that the answer to a question was given here, or was not after all. */
export function noteMine(turn: string, request: string, given: boolean): void {
  if (given) mine.add(`${turn} ${request}`);
  else mine.delete(`${turn} ${request}`);
  bound(mine);
}

/** Notes what is answered while the conversation is followed, until the function that it returns is called. */
export function followAnswers(conversation: Conversation): () => void {
  return conversation.onEvents((events) => {
    for (const e of events) {
      if (e.type !== "turn.resume" || !e.answer) continue;
      const { id, decision = "", text = "", by = "" } = e.answer;
      const key = `${e.turn} ${id}`;
      const answered = { request: asked.get(key) ?? { id, kind: "approval" as const }, decision, text, by, here: mine.has(key) };
      answers.change((all) => {
        const of = all.get(e.turn) ?? [];
        if (of.some((a) => a.request.id === id)) return all;
        const next = new Map(all).set(e.turn, [...of, answered]);
        bound(next);
        return next;
      });
    }
  });
}
