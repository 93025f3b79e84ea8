// Converts Markdown into sentences to read aloud: without markup, and with code and tables described in words.

import { lexer, type Token, type Tokens } from "marked";

import { unescape } from "../markdown/lex";

/** Sentences are joined until an announcement has at least minLength characters, and at most maxLength. */
const minLength = 80;
const maxLength = 400;

/**
 * Returns the sentences of a text. Of an incomplete text it returns only the sentences that can't change any more, because other
 * text follows them: a longer text with the same beginning has the same sentences, and more.
 */
export function sentences(text: string, isComplete: boolean, language?: string): string[] {
  const result: string[] = [];
  const tokens = lexer(text).filter((t) => t.type !== "space");
  tokens.forEach((t, i) => block(t, isComplete || i < tokens.length - 1, result, language));
  return result;
}

function block(t: Token, closed: boolean, result: string[], language: string | undefined): void {
  switch (t.type) {
    case "code": {
      if (!closed) return;
      const lines = (t as Tokens.Code).text.split("\n").length;
      const lang = /^[\w+#.-]{1,20}/.exec((t as Tokens.Code).lang ?? "")?.[0];
      result.push(`Code block, ${count(lines, "line")}${lang ? `, ${lang}` : ""}.`);
      return;
    }
    case "table": {
      if (!closed) return;
      const table = t as Tokens.Table;
      result.push(`Table, ${count(table.header.length, "column")}, ${count(table.rows.length, "row")}.`);
      return;
    }
    case "list":
      (t as Tokens.List).items.forEach((item, i, items) => {
        const blocks = item.tokens.filter((b) => b.type !== "space" && b.type !== "checkbox");
        blocks.forEach((b, j) => block(b, closed || i < items.length - 1 || j < blocks.length - 1, result, language));
      });
      return;
    case "blockquote": {
      const blocks = ((t as Tokens.Blockquote).tokens ?? []).filter((b) => b.type !== "space");
      blocks.forEach((b, j) => block(b, closed || j < blocks.length - 1, result, language));
      return;
    }
    case "heading":
      if (closed) result.push(words(t));
      return;
    case "hr":
    case "def":
      return;
    default: {
      const segments = segment(words(t), language);
      // The last sentence may continue, and may end inside a word.
      result.push(...(closed ? segments : segments.slice(0, -1)));
    }
  }
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** words returns the text of a token without its formatting. */
function words(t: Token): string {
  const inner = "tokens" in t && t.tokens ? t.tokens.map(words).join("") : "";
  switch (t.type) {
    case "br":
      return " ";
    case "image":
      return `Picture: ${t.text as string}`;
    case "html":
      return (t.raw).replace(/<[^>]*>/g, " ");
    default:
      return (inner || unescape(("text" in t ? (t.text as string) : t.raw) ?? "")).replace(/\s+/g, " ");
  }
}

const segmenters = new Map<string, Intl.Segmenter>();

function segment(text: string, language = "en"): string[] {
  let s = segmenters.get(language);
  if (!s) segmenters.set(language, (s = new Intl.Segmenter(language, { granularity: "sentence" })));
  return [...s.segment(text)].map((g) => g.segment.trim()).filter(Boolean);
}

/** Joins sentences into announcements, and splits a sentence that is too long between words. */
export function joinSentences(texts: readonly string[]): string[] {
  const pieces: string[] = [];
  let current = "";
  for (const sentence of texts) {
    for (const piece of splitLong(sentence)) {
      if (current && (current.length >= minLength || !room(current, piece))) {
        pieces.push(current);
        current = "";
      }
      current = current ? `${current} ${piece}` : piece;
    }
  }
  if (current) pieces.push(current);
  return pieces;
}

/** Reports whether a text is long enough to announce without waiting for more. */
export const isLongEnough = (text: string): boolean => text.length >= minLength;

/** Reports whether a text and another sentence fit into one announcement. */
export const room = (text: string, sentence: string): boolean => text.length + 1 + sentence.length <= maxLength;

function splitLong(sentence: string): string[] {
  const pieces: string[] = [];
  let tail = sentence;
  while (tail.length > maxLength) {
    const space = tail.lastIndexOf(" ", maxLength);
    // A word longer than the limit is split, but never between surrogates.
    let to = space > 0 ? space : maxLength;
    if (space <= 0 && /[\ud800-\udbff]/.test(tail[to - 1]!)) to--;
    pieces.push(tail.slice(0, to));
    tail = tail.slice(to).trimStart();
  }
  return tail ? [...pieces, tail] : pieces;
}
