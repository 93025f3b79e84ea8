// What was answered to the agents' questions while this page looked on, and by whom. The log tells it as it happens; a snapshot
// holds open questions only.

import type { Conversation, Request } from "@leat/client";

import { Store } from "../store";

export interface GivenAnswer { request: Request; decision: string; text: string; by: string; here: boolean }

/** By turn. */
export const answers = new Store<ReadonlyMap<string, readonly GivenAnswer[]>>(new Map());

const maxEntries = 100;
const requests = new Map<string, Request>();
const answeredHere = new Set<string>();

function evict(entries: { size: number; keys(): IterableIterator<string>; delete(key: string): boolean }): void {
  for (const key of entries.keys()) {
    if (entries.size <= maxEntries) return;
    entries.delete(key);
  }
}

/** Remembers what a question was, for when it is answered. */
export function noteAsked(turn: string, r: Request): void {
  requests.set(`${turn} ${r.id}`, r);
  evict(requests);
}

/** Says that the answer to a question was given here, or was not after all. */
export function noteMine(turn: string, request: string, isGiven: boolean): void {
  if (isGiven) answeredHere.add(`${turn} ${request}`);
  else answeredHere.delete(`${turn} ${request}`);
  evict(answeredHere);
}

/** Notes what is answered while the conversation is followed, until the function that it returns is called. */
export function followAnswers(conversation: Conversation): () => void {
  return conversation.onEvents((events) => {
    for (const e of events) {
      if (e.type !== "turn.resume" || !e.answer) continue;
      const { id, decision = "", text = "", by = "" } = e.answer;
      const key = `${e.turn} ${id}`;
      const entry = { request: requests.get(key) ?? { id, kind: "approval" as const }, decision, text, by, here: answeredHere.has(key) };
      answers.change((byTurn) => {
        const of = byTurn.get(e.turn) ?? [];
        if (of.some((a) => a.request.id === id)) return byTurn;
        const next = new Map(byTurn).set(e.turn, [...of, entry]);
        evict(next);
        return next;
      });
    }
  });
}
