// Search in messages. Pure functions from messages and words to hits.

import { type Message, visibleText } from "@leat/client";

import { unescape } from "../markdown/lex";

/**
 * One hit: its message, and its number among the hits in the message's visible text, or the name of the collapsed part that
 * contains it.
 */
export interface Hit { message: string; nth: number; folded?: string }

/** Normalizes text for comparison: lower case, with each run of white space as one space. */
export const even = (text: string): string => text.toLowerCase().replace(/\s+/g, " ");

// Markdown syntax that isn't visible in rendered text.
const marks = /(?:\*\*|__|~~|[*`]|^#{1,6} +|^> ?|!?\[(?=[^\]\n]*\]\()|\]\([^)\s]*\))/gm;

const cache = new WeakMap<Message, string>();

function visible(m: Message): string {
  let text = cache.get(m);
  if (text === undefined) {
    const source = visibleText(m);
    cache.set(m, (text = even(m.role === "user" ? source : unescape(source.replace(marks, "")))));
  }
  return text;
}

/** Returns the hits in a message, in order. */
export function hits(m: Message, words: string): Hit[] {
  const query = even(words).trim();
  if (!query) return [];
  const result: Hit[] = [];
  const text = visible(m);
  for (let at = text.indexOf(query), nth = 0; at >= 0; at = text.indexOf(query, at + query.length), nth++) result.push({ message: m.id, nth });
  for (const p of m.parts) {
    if (p.kind === "reasoning" && even(p.text ?? "").includes(query)) result.push({ message: m.id, nth: -1, folded: "the reasoning" });
    if (p.kind === "tool" && [p.name, p.title, p.input, p.output, p.stderr].some((t) => t && even(t).includes(query))) result.push({ message: m.id, nth: -1, folded: `the tool ${p.name ?? ""}`.trim() });
    if (p.kind === "media" && even(p.media?.name ?? "").includes(query)) result.push({ message: m.id, nth: -1, folded: "a file" });
  }
  return result;
}
