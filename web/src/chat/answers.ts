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

function evict(all: { size: number; keys(): IterableIterator<string>; delete(key: string): boolean }): void {
  for (const key of all.keys()) {
    if (all.size <= maxEntries) return;
    all.delete(key);
  }
}

/** Remembers what a question was, for when it is answered. */
export function noteAsked(turn: string, r: Request): void {
  requests.set(`${turn} ${r.id}`, r);
  evict(requests);
}

/** Says that the answer to a question was given here, or was not after all. */
export function noteMine(turn: string, request: string, given: boolean): void {
  if (given) answeredHere.add(`${turn} ${request}`);
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
      const answered = { request: requests.get(key) ?? { id, kind: "approval" as const }, decision, text, by, here: answeredHere.has(key) };
      answers.change((all) => {
        const of = all.get(e.turn) ?? [];
        if (of.some((a) => a.request.id === id)) return all;
        const next = new Map(all).set(e.turn, [...of, answered]);
        evict(next);
        return next;
      });
    }
  });
}
