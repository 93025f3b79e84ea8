// Reads answers out, as it is set: whole sentences, seldom enough to be heard, and all of them.

import { isLongEnough, joinSentences, room } from "./sentences";

/** The least time between two stretches of an answer, in milliseconds. */
export const seldom = 3000;

/** What is read of an answer: its sentences so far, and whether those are all. */
export interface Source { sentences: string[]; whole: boolean }

/** Reads one answer. It is asked for the next stretch whenever there is time for one. */
export class Reader {
  private sentCount = 0; // sentences
  private lane: string[] = []; // pieces of what is too long for one stretch

  /** closing is said when all is read. */
  constructor(private readonly source: () => Source, private readonly closing: () => string | undefined) {}

  /** All is read, and the closing said. */
  isDone = false;

  /** The next stretch; undefined where there is none yet. */
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
