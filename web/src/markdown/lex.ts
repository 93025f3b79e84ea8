// Parses Markdown into tokens with marked: GitHub Flavored Markdown with footnotes and formulas, but without syntax that a growing
// text can't decide early (definitions over several lines, strikethrough with one tilde).

import { Lexer, type Links, type Token, Tokenizer, type Tokens } from "marked";

export { leadsAway, placeOf, plain, safeImage, safeLink, unescape } from "./safe";

/** The maximum nesting depth. Deeper content is shown as source. */
export const deepest = 20;

/** Longer blocks are shown as plain text, because rendering them would block the page. Characters. */
export const maxBlock = 100_000;

/** A footnote. label is the text of its references. */
export interface Footnote { type: "footnote"; raw: string; label: string; text: string; tokens: Token[] }

/** Reports whether a heading has no text. Such a heading is not rendered, and is not part of the outline. */
export const isBlank = (heading: Token): boolean => !(heading as Tokens.Heading).text.trim();

/** Definitions of links by label, and of footnotes by ^ and label. */
export type Definitions = Links;

/** Counts parsed characters and rendered blocks, with which tests check that an update repeats little work. */
export const counts = { characters: 0, blocks: 0 };
export const countBlock = (): void => { counts.blocks++; };

class Reader extends Tokenizer {
  depth = 0;

  private deeper<T>(f: () => T): T | undefined {
    if (this.depth >= deepest) return undefined;
    this.depth++;
    try {
      return f();
    } finally {
      this.depth--;
    }
  }

  override blockquote(src: string): Tokens.Blockquote | undefined {
    return this.deeper(() => super.blockquote(src));
  }

  override list(src: string): Tokens.List | undefined {
    return this.deeper(() => super.list(src));
  }

  // A definition is limited to one line, so that later text can't change it.
  override def(src: string): Tokens.Def | undefined {
    const line = /^ {0,3}\[(?!\^)(?:\\.|[^[\]\\\n])+\]:[ \t]*(?:<[^<>\n]*>|[^<\s]\S*)(?:[ \t]+(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\((?:\\.|[^()\\\n])*\)))?[ \t]*(?:\n+|$)/.exec(src);
    return line ? super.def(line[0]) : undefined;
  }

  // The syntax that interrupts a paragraph also interrupts a Setext heading.
  override lheading(src: string): Tokens.Heading | undefined {
    const at = interrupted(src);
    return super.lheading(at < 0 ? src : src.slice(0, at + 1));
  }

  /** Parses a footnote at the beginning of the text. Indented lines after it, also after blank lines, belong to it. */
  footnote(src: string): Footnote | undefined {
    const head = this.depth === 0 && /^ {0,3}\[\^([^\]\s]{1,60})\]:[ \t]*/.exec(src);
    if (!head) return undefined;
    const lines = src.slice(head[0].length).split("\n", 1000);
    let n = 1;
    for (let i = 1; i < lines.length; i++) {
      if (/^(?: {2}|\t)[ \t]*\S/.test(lines[i]!)) n = i + 1;
      else if (lines[i]!.trim()) break;
    }
    const raw = head[0] + lines.slice(0, n).join("\n");
    const text = lines.slice(0, n).map((l, i) => (i ? l.replace(/^(?: {1,4}|\t)/, "") : l)).join("\n");
    const label = head[1]!.toLowerCase();
    this.lexer.tokens.links[`^${label}`] ??= { href: "", title: null };
    return { type: "footnote", raw, label, text, tokens: this.deeper(() => this.lexer.blockTokens(text, [])) ?? [] };
  }
}

class LimitedLexer extends Lexer {
  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (src.length <= maxBlock) return super.inlineTokens(src, tokens);
    tokens.push({ type: "text", raw: src, text: src, escaped: false });
    return tokens;
  }
}

const blank = /\n[ \t]*\n/;
const closers: Record<string, string> = { "$$": "$$", "\\[": "\\]" };

// A block formula, between lines of $$ or between \[ and \].
function formula(src: string): Tokens.Generic | undefined {
  const open = /^ {0,3}(\$\$(?!\$)|\\\[)/.exec(src);
  if (!open) return undefined;
  const close = closers[open[1]!]!;
  const end = src.indexOf(close, open[0].length);
  if (end < 0 || blank.test(src.slice(0, end))) return undefined;
  const lineEnd = /^[ \t]*(?:\n|$)/.exec(src.slice(end + close.length));
  const text = src.slice(open[0].length, end).trim();
  return lineEnd && text ? { type: "formula", raw: src.slice(0, end + close.length), text } : undefined;
}

// Text between two prices begins with a number, and has a word that no command contains, or ends like "$5/" in "$5/$ 6".
const command = /\\(?:text|math|mbox|operatorname)[a-z]*\s*\{[^{}]*\}|\\[A-Za-z]+/g;
const isPrice = (text: string): boolean => /^\d/.test(text) && /[\s/,;–-]\p{L}{2,}|[/,;:–-]$/u.test(text.replace(command, "\\"));

// An inline formula. A dollar sign next to a space is a currency sign.
function inlineFormula(src: string, before: string): Tokens.Generic | undefined {
  const m = /^\$\$(?!\$)((?:\\[\s\S]|[^$\\]){1,2000}?)\$\$/.exec(src) ?? /^\\\(((?:(?!\\\))[\s\S]){1,2000}?)\\\)/.exec(src)
    ?? (/[\p{L}\p{N}$\\]$/u.test(before) ? null : /^\$((?![\s$])(?:\\.|[^$\\\n]){0,300}?(?<![\s\\]))\$(?![\p{L}\p{N}$])/u.exec(src));
  if (m?.[1] && /^\$(?!\$)/.test(m[0]) && isPrice(m[1])) return undefined;
  return m?.[1]?.trim() ? { type: "math", raw: m[0], text: m[1].trim() } : undefined;
}

// interrupted returns the offset of the line break before syntax that interrupts a paragraph, or -1.
function interrupted(src: string): number {
  const end = src.search(blank);
  return (end < 0 ? src : src.slice(0, end)).search(/\n {0,3}(?:\$\$|\\\[|\[\^[^\]\s]{1,60}\]:)/);
}

function newLexer(definitions: Definitions): { lexer: LimitedLexer; reader: Reader } {
  const reader = new Reader();
  const lexer: LimitedLexer = new LimitedLexer({
    gfm: true, tokenizer: reader,
    extensions: {
      renderers: {}, childTokens: {},
      block: [(src) => (src.startsWith("[^", src.search(/[^ ]/)) ? reader.footnote(src) : formula(src))],
      inline: [(src, tokens) => {
        if (src.startsWith("[^")) {
          const m = /^\[\^([^\]\s]{1,60})\]/.exec(src);
          const label = m?.[1]!.toLowerCase();
          return m && lexer.tokens.links[`^${label}`] ? { type: "noteref", raw: m[0], label } : undefined;
        }
        // One tilde usually means "about", not strikethrough.
        if (/^~(?!~)/.test(src)) return { type: "text", raw: "~", text: "~", escaped: false };
        return src[0] === "$" || src.startsWith("\\(") ? inlineFormula(src, tokens.at(-1)?.raw ?? "") : undefined;
      }],
      startBlock: [(src) => {
        const at = interrupted(src);
        return at < 0 ? undefined : at + 1;
      }],
      startInline: [(src) => {
        const at = src.indexOf("$");
        return at < 0 ? undefined : at;
      }],
    },
  });
  Object.assign(lexer.tokens.links, definitions);
  return { lexer, reader };
}

/** Parses a text. It returns its own definitions together with the given ones. */
export function lex(source: string, definitions: Definitions = {}): { tokens: Token[]; known: Definitions } {
  counts.characters += source.length;
  const { lexer } = newLexer(definitions);
  try {
    const tokens = lexer.lex(source);
    return { tokens: [...tokens], known: tokens.links };
  } catch {
    // If marked fails, the text is shown as source.
    return { tokens: [{ type: "paragraph", raw: source, text: source, tokens: [{ type: "text", raw: source, text: source, escaped: false }] }], known: definitions };
  }
}

/** Parses the text of one paragraph. */
export function lexInline(source: string, definitions: Definitions): Token[] {
  counts.characters += source.length;
  try {
    return newLexer(definitions).lexer.inlineTokens(source);
  } catch {
    return [{ type: "text", raw: source, text: source, escaped: false }];
  }
}
