// Search in messages. Pure functions from messages and words to hits.

import { type Message, visibleText } from "@leat/client";

import { unescape } from "../markdown/lex";

/** A place where the words stand: in the text that is seen, as its nth there; or in something folded of a message. */
export interface Hit { message: string; nth: number; folded?: string }

/** Text as it is compared: without case, and each stretch of white space as one blank. */
export const even = (text: string): string => text.toLowerCase().replace(/\s+/g, " ");

// Marks of Markdown that stand in or around words and are not seen.
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

/** The hits of one message, from its beginning on. */
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
