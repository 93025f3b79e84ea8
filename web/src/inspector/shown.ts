// When this tab displayed the events of a turn: the third time of each event, besides arrival and commit. It survives a reload of
// the page, but not the tab.

import type { Conversation } from "@leat/client";

import { onFrame } from "../frames";

/** The number of remembered turns, and of batches for each turn. */
const turns = 30;
const batches = 20_000;
const name = "leat.shown";

/** Events of a turn that arrived together: their first and last seq, and their number after merging. */
export interface Batch { at: number; from: number; upto: number; events: number }

const batchesByTurn = new Map<string, Batch[]>(readStored());
const undrawn: Batch[] = []; // not rendered yet

/** Records the batches of a conversation until the returned function is called. */
export function note(conversation: Conversation): () => void {
  return conversation.onEvents((events) => {
    const of = new Map<string, Set<number>>();
    const from = new Map<string, number>();
    for (const e of events) {
      if (!e.turn) continue;
      const seqs = of.get(e.turn) ?? new Set<number>(); // a long text arrives as several events with the same seq
      of.set(e.turn, seqs.add(e.seq));
      from.set(e.turn, Math.min(from.get(e.turn) ?? Infinity, e.first ?? e.seq));
    }
    for (const [turn, seqs] of of) {
      let list = batchesByTurn.get(turn);
      if (!list) {
        batchesByTurn.set(turn, (list = []));
        if (batchesByTurn.size > turns) batchesByTurn.delete(batchesByTurn.keys().next().value!);
      }
      if (list.length >= batches) continue;
      const batch = { at: Date.now(), from: from.get(turn)!, upto: Math.max(...seqs), events: seqs.size };
      list.push(batch);
      undrawn.push(batch);
    }
    if (undrawn.length > 0) onFrame(setTimes);
  });
}

function setTimes(): void {
  for (const b of undrawn.splice(0)) b.at = Date.now();
}

/** Returns the batches of a turn that this tab has displayed, in order. */
export function shownOf(turn: string): readonly Batch[] {
  return batchesByTurn.get(turn) ?? [];
}

/** Deletes everything when the user changes. */
export function forgetShown(): void {
  batchesByTurn.clear();
  undrawn.length = 0;
}

function readStored(): [string, Batch[]][] {
  try {
    const entries: unknown = JSON.parse(sessionStorage.getItem(name) ?? "[]");
    sessionStorage.removeItem(name);
    return Array.isArray(entries) ? (entries as [string, Batch[]][]) : [];
  } catch {
    return []; // storage is empty or forbidden
  }
}

addEventListener("pagehide", () => {
  if (batchesByTurn.size === 0) return;
  try {
    sessionStorage.setItem(name, JSON.stringify([...batchesByTurn]));
  } catch {
    // Storage is full or forbidden.
  }
});
