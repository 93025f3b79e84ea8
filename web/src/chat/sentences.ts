// A text as it is read out: whole sentences without the marks of Markdown, code and tables in words.

import { lexer, type Token, type Tokens } from "marked";

import { unescape } from "../markdown/lex";

/** What is read out at once is joined to at least least and at most most characters. */
const least = 80;
const most = 400;

/**
 * The sentences of a text, in their order. Of a text that still grows only those that can't change any more: which something follows.
 * What a longer text of the same beginning has is the same, and more.
 */
export function sentences(text: string, whole: boolean, language?: string): string[] {
  const out: string[] = [];
  const tokens = lexer(text).filter((t) => t.type !== "space");
  tokens.forEach((t, i) => block(t, whole || i < tokens.length - 1, out, language));
  return out;
}

function block(t: Token, closed: boolean, out: string[], language: string | undefined): void {
  switch (t.type) {
    case "code": {
      if (!closed) return;
      const lines = (t as Tokens.Code).text.split("\n").length;
      const lang = /^[\w+#.-]{1,20}/.exec((t as Tokens.Code).lang ?? "")?.[0];
      out.push(`Code block, ${count(lines, "line")}${lang ? `, ${lang}` : ""}.`);
      return;
    }
    case "table": {
      if (!closed) return;
      const table = t as Tokens.Table;
      out.push(`Table, ${count(table.header.length, "column")}, ${count(table.rows.length, "row")}.`);
      return;
    }
    case "list":
      (t as Tokens.List).items.forEach((item, i, all) => {
        const blocks = item.tokens.filter((b) => b.type !== "space" && b.type !== "checkbox");
        blocks.forEach((b, j) => block(b, closed || i < all.length - 1 || j < blocks.length - 1, out, language));
      });
      return;
    case "blockquote": {
      const blocks = ((t as Tokens.Blockquote).tokens ?? []).filter((b) => b.type !== "space");
      blocks.forEach((b, j) => block(b, closed || j < blocks.length - 1, out, language));
      return;
    }
    case "heading":
      if (closed) out.push(words(t));
      return;
    case "hr":
    case "def":
      return;
    default: {
      const found = segment(words(t), language);
      // The last sentence may continue, and may end in half a word.
      out.push(...(closed ? found : found.slice(0, -1)));
    }
  }
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;

/** The words of a token, without what only says how they look. */
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

/** Joins sentences to what is read out at once; one that is too long is cut between words. */
export function joinSentences(all: readonly string[]): string[] {
  const out: string[] = [];
  let now = "";
  for (const sentence of all) {
    for (const piece of splitLong(sentence)) {
      if (now && (now.length >= least || !room(now, piece))) {
        out.push(now);
        now = "";
      }
      now = now ? `${now} ${piece}` : piece;
    }
  }
  if (now) out.push(now);
  return out;
}

/** Whether it is enough to be read out although more will come. */
export const isLongEnough = (text: string): boolean => text.length >= least;

/** Whether another sentence can be read out together with it. */
export const room = (text: string, sentence: string): boolean => text.length + 1 + sentence.length <= most;

function splitLong(sentence: string): string[] {
  const out: string[] = [];
  let rest = sentence;
  while (rest.length > most) {
    const space = rest.lastIndexOf(" ", most);
    // A word longer than the limit is split, but never between surrogates.
    let to = space > 0 ? space : most;
    if (space <= 0 && /[\ud800-\udbff]/.test(rest[to - 1]!)) to--;
    out.push(rest.slice(0, to));
    rest = rest.slice(to).trimStart();
  }
  return rest ? [...out, rest] : out;
}
