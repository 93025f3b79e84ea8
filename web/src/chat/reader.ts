// Divides a growing answer into announcements for screen readers, as configured: whole sentences, with pauses, and nothing left
// out.

import { isLongEnough, joinSentences, room } from "./sentences";

/** The minimum time between two announcements of an answer, in milliseconds. */
export const seldom = 3000;

/** The sentences of an answer so far, and whether the answer is complete. */
export interface Source { sentences: string[]; whole: boolean }

/** Reads one answer. The caller requests the next announcement whenever the pause is over. */
export class Reader {
  private sentCount = 0; // the number of sentences that were announced
  private lane: string[] = []; // the remaining pieces of a sentence that is too long for one announcement

  /** closing returns the announcement after the last sentence. */
  constructor(private readonly source: () => Source, private readonly closing: () => string | undefined) {}

  /** Everything was announced, including closing. */
  isDone = false;

  /** Returns the next announcement; undefined if there is none yet. */
  next(): { text: string; closing: boolean } | undefined {
    const piece = this.lane.shift();
    if (piece !== undefined) return { text: piece, closing: false };
    const { sentences, whole } = this.source();
    let text = "";
    let to = this.sentCount;
    for (; to < sentences.length && (!text || !isLongEnough(text) && room(text, sentences[to]!)); to++) text = text ? `${text} ${sentences[to]}` : sentences[to]!;
    // A short piece waits for more text, unless the text is complete or the next sentence doesn't fit.
    if (text && (isLongEnough(text) || whole || to < sentences.length)) {
      this.sentCount = to;
      [text = "", ...this.lane] = joinSentences([text]);
      return { text, closing: false };
    }
    const last = whole ? this.closing() : undefined;
    if (last === undefined) return undefined;
    this.isDone = true;
    return { text: last, closing: true };
  }
}
