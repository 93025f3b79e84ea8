// The answers to agents' requests that were given while this page was open, and who gave them. Events report answers; a snapshot
// contains only open requests.

import type { Conversation, Request } from "@leat/client";

import { Store } from "../store";

export interface GivenAnswer { request: Request; decision: string; text: string; by: string; here: boolean }

/** The answers by turn id. */
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

/** Stores a request, so that its answer can be described later. */
export function noteAsked(turn: string, r: Request): void {
  requests.set(`${turn} ${r.id}`, r);
  evict(requests);
}

/** Records whether the answer to a request was given on this page. */
export function noteMine(turn: string, request: string, isGiven: boolean): void {
  if (isGiven) answeredHere.add(`${turn} ${request}`);
  else answeredHere.delete(`${turn} ${request}`);
  evict(answeredHere);
}

/** Records the answers in a conversation until the returned function is called. */
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
