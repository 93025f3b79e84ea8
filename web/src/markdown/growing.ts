// Incremental parsing of growing Markdown. An answer is never parsed again as a whole for each piece: blocks that can't change any
// more are final, only the last entries of a long list or table are parsed again, and of an open fence only the new text.

import type { Token, Tokens } from "marked";

import { closeBlock, closeInline, heldTime, holdBlock, holdInline, onItsWay, openFormula } from "./heal";
import { counts, type Footnote, type Definitions, lex, lexInline } from "./lex";

/** How many entries of a list or table are parsed again: the last one may still merge with the one before. */
const rereadCount = 2;

/** A token that reaches the end of a growing text. open replaces its text when it is rendered. */
export type Open<T = Token> = T & { open?: string };

// The final entries of the list or table at the beginning of the open part; length is the length of their source.
type Prefix = { list: Tokens.List; length: number } | { table: Tokens.Table; length: number; head: string };

// A code fence that is open at the end of the text. Lines before `looked` were searched and don't close it.
interface Fence { mark: string; lang: string; body: number; looked: number }

/** Parses one growing text. If the text is replaced, parsing starts again. */
export class Growing {
  /** The number of known definitions. When it grows, references to them may render differently. */
  definitions = 0;
  /** The time at which hidden text will be shown, by the clock of parse; 0 if nothing is hidden. */
  shows = 0;
  private source = "";
  private finalTokens: Token[] = [];
  private length = 0; // the length of the final blocks' source
  private knownDefinitions: Definitions = {};
  private openPrefix: Prefix | undefined;
  private fence: Fence | undefined;
  private hold = { start: -1, since: 0 };
  private last: { text: string; live: boolean; tokens: Token[] } | undefined;

  /**
   * Returns the tokens of the text. If isLive is set, more text may follow: open syntax at the end is closed, and characters that
   * may still become syntax are hidden for heldTime after `time` (milliseconds).
   */
  parse(text: string, isLive: boolean, time = 0): Token[] {
    if (this.last?.text === text && this.last.live === isLive && (!this.shows || time < this.shows)) return this.last.tokens;
    const source = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!source.startsWith(this.source)) this.reset();
    this.source = source;
    this.shows = 0;
    const tokens = [...(this.readFence(isLive, time) ?? this.readOpen(isLive, time))];
    this.last = { text, live: isLive, tokens };
    return tokens;
  }

  // holds reports whether the end of the text, from start on, is hidden.
  private holds(start: number, time: number): boolean {
    if (start !== this.hold.start) this.hold = { start, since: time };
    const deadline = this.hold.since + heldTime;
    if (time >= deadline) return false;
    this.shows = deadline;
    return true;
  }

  private readOpen(isLive: boolean, time: number): Token[] {
    let open = this.source.slice(this.length);
    let heldCount = 0;
    if (isLive) {
      heldCount = holdBlock(open);
      if (heldCount > 0 && this.holds(this.source.length - heldCount, time)) open = open.slice(0, -heldCount);
      const close = closeBlock(open);
      if (close) return [...this.finalTokens, ...this.lexOpen(open + close).tokens];
    }
    const { tokens, known } = this.lexOpen(open);
    const finalSource = this.settle(tokens, open);
    const prefixSource = this.begin(tokens, open.slice(finalSource.length));
    const firm = isLive ? defined(known, finalSource + prefixSource, tokens) : Object.keys(known);
    if (this.learn(firm, known)) return this.readOpen(isLive, time);
    if (isLive) this.closeLeaf(tokens, time);
    return [...this.finalTokens, ...tokens];
  }

  // lexOpen parses the open part, and merges it with the final entries of its first block.
  private lexOpen(open: string): { tokens: Token[]; known: Definitions } {
    const b = this.openPrefix;
    if (!b) return lex(open, this.knownDefinitions);
    const tail = open.slice(b.length);
    const lexed = lex("table" in b ? b.head + tail : tail, this.knownDefinitions);
    const firstToken = lexed.tokens[0];
    if ("list" in b && firstToken?.type === "list") {
      const list = firstToken as Tokens.List;
      lexed.tokens[0] = { ...b.list, raw: open.slice(0, b.length + list.raw.length), loose: b.list.loose || list.loose, items: [...b.list.items, ...list.items] };
      return lexed;
    }
    if ("table" in b && firstToken?.type === "table") {
      const table = firstToken as Tokens.Table;
      lexed.tokens[0] = { ...b.table, raw: open.slice(0, b.length + table.raw.length - b.head.length), rows: [...b.table.rows, ...table.rows] };
      return lexed;
    }
    this.openPrefix = undefined;
    return lex(open, this.knownDefinitions);
  }

  // settle moves the leading tokens that can't change any more to the final ones, and returns their source.
  private settle(tokens: Token[], open: string): string {
    let n = decided(tokens, open);
    for (let i = n; i < tokens.length; i++) if (final(tokens[i]!, i < tokens.length - 1)) n = i + 1;
    const boundary = n > 0 ? openFormula(open)?.at ?? open.length : 0; // once an open formula ends, these tokens become part of it
    let length = 0;
    for (let i = 0; i < n; i++) {
      const t = tokens[i]!;
      if (length + t.raw.length > boundary + 1 || !open.startsWith(t.raw, length)) {
        n = i; // or the token's source differs from the text
        break;
      }
      this.finalTokens.push(t);
      length += t.raw.length;
    }
    if (n > 0) this.openPrefix = undefined;
    this.length += length;
    tokens.splice(0, n);
    return open.slice(0, length);
  }

  // begin makes all but the last entries of the first list or table final, and returns their source. It remembers an open fence.
  private begin(tokens: Token[], open: string): string {
    const t = tokens[0];
    const before = this.openPrefix;
    const length = before?.length ?? 0;
    if (t?.type === "list") {
      const list = t as Tokens.List;
      const old = before && "list" in before ? before.list : undefined;
      const newEntries = list.items.slice(old?.items.length ?? 0, -rereadCount);
      if (newEntries.length === 0) return "";
      const loose = !!old?.loose || newEntries.some((i) => /\n[ \t]*\n[ \t]*$/.test(i.raw) || i.tokens.some((s) => s.type === "space" && /\n.*\n/.test(s.raw)));
      this.openPrefix = { list: { ...list, loose, items: list.items.slice(0, -rereadCount) }, length: newEntries.reduce((n, i) => n + i.raw.length, length) };
    } else if (t?.type === "table") {
      const table = t as Tokens.Table;
      const old = before && "table" in before ? before : undefined;
      const head = old?.head ?? open.slice(0, open.indexOf("\n", open.indexOf("\n") + 1) + 1);
      const newEntries = table.rows.length - rereadCount - (old?.table.rows.length ?? 0);
      if (newEntries <= 0 || !head) return "";
      let end = old?.length ?? head.length;
      for (let i = 0; i < newEntries; i++) end = open.indexOf("\n", end) + 1;
      this.openPrefix = { table: { ...table, rows: table.rows.slice(0, -rereadCount) }, length: end, head };
    } else if (t?.type === "code" && tokens.length === 1) {
      const head = /^(`{3,}|~{3,})([^\n]*)\n/.exec(open);
      if (head && !endOfFence(open, head[1]!)) {
        this.fence = { mark: head[1]!, lang: (t as Tokens.Code).lang ?? "", body: this.length + head[0].length, looked: this.length + head[0].length };
      }
    }
    return this.openPrefix ? open.slice(length, this.openPrefix.length) : "";
  }

  // readFence continues an open fence. It returns undefined without one, or if the fence ends.
  private readFence(isLive: boolean, time: number): Token[] | undefined {
    const f = this.fence;
    if (!f) return undefined;
    const source = this.source;
    for (let at = f.looked; ; ) {
      const end = source.indexOf("\n", at);
      const line = end < 0 ? source.slice(at) : source.slice(at, end);
      counts.characters += line.length;
      if (closesFence(line, f.mark)) {
        this.fence = undefined;
        return undefined;
      }
      f.looked = at;
      if (end < 0) break;
      at = end + 1;
    }
    let body = source.slice(f.body);
    // The beginning of the closing line.
    if (isLive && /^ {0,3}(`+|~+)$/.test(source.slice(f.looked)) && source[source.length - 1] === f.mark[0] && this.holds(f.looked, time)) body = source.slice(f.body, Math.max(f.body, f.looked - 1));
    return [...this.finalTokens, { type: "code", raw: source.slice(this.length), lang: f.lang, text: fenceText(body) }];
  }

  // learn stores definitions, and parses the final blocks that refer to new ones again. It returns whether the open part has to be
  // parsed again.
  private learn(labels: string[], definitions: Definitions): boolean {
    const newEntries = labels.filter((label) => !Object.hasOwn(this.knownDefinitions, label));
    if (newEntries.length > 0) {
      this.knownDefinitions = { ...this.knownDefinitions };
      for (const label of newEntries) this.knownDefinitions[label] = definitions[label]!;
      this.definitions += newEntries.length;
    }
    // An incomplete definition applies to the open part, but not to final blocks.
    const unsure = Object.keys(definitions).filter((label) => !Object.hasOwn(this.knownDefinitions, label));
    if (newEntries.length === 0 && unsure.length === 0) return false;
    const changed = [...newEntries, ...unsure];
    const refers = (raw: string): boolean => {
      if (!raw.includes("[")) return false;
      const folded = fold(raw);
      return changed.some((label) => folded.includes(`[${label}]`));
    };
    for (const [i, t] of this.finalTokens.entries()) {
      if (t.type === "def" || !refers(t.raw)) continue;
      const lexed = lex(t.raw, this.knownDefinitions).tokens;
      if (lexed.length === 1) this.finalTokens[i] = lexed[0]!;
    }
    if (!this.openPrefix || !refers(this.source.slice(this.length, this.length + this.openPrefix.length))) return false;
    this.openPrefix = undefined;
    return newEntries.length > 0;
  }

  // closeLeaf closes what is open in the last paragraph.
  private closeLeaf(tokens: Token[], time: number): void {
    const path: Open[] = [];
    const leaf = lastText(tokens, path, this.source);
    if (!leaf) return;
    let text = leaf.text;
    const heldCount = this.shows ? 0 : holdInline(text);
    if (heldCount > 0 && this.holds(this.source.trimEnd().length - heldCount, time)) text = text.slice(0, -heldCount);
    text = closeInline(text);
    const address = /(?:https?:\/\/|www\.)\S*$/.test(text);
    if (text === leaf.text && !address) return;
    const inline = lexInline(text, this.knownDefinitions);
    const end = inline.at(-1);
    if (address && end?.type === "link" && text.endsWith(end.raw) && /^(?:https?:|www\.)/.test(end.raw)) (end as Tokens.Link).href = onItsWay;
    leaf.tokens = inline;
    for (const t of path) t.open = text;
  }

  private reset(): void {
    [this.source, this.finalTokens, this.length, this.knownDefinitions, this.definitions] = ["", [], 0, {}, 0];
    [this.openPrefix, this.fence, this.last] = [undefined, undefined, undefined];
  }
}

// decided returns the index of the last token before which nothing can change any more. This needs one complete line, or two after
// a paragraph and for a table.
function decided(tokens: Token[], open: string): number {
  let at = tokens.reduce((n, t) => n + t.raw.length, 0);
  for (let i = tokens.length - 1; i > 0; i--) {
    const t = tokens[i]!;
    at -= t.raw.length;
    if (t.type === "space") continue;
    // The original source: marked may add a line break.
    const line = open.indexOf("\n", at);
    if (line >= 0 && ((t.type !== "table" && tokens[i - 1]!.type !== "paragraph") || open.indexOf("\n", line + 1) >= 0)) return i;
  }
  return 0;
}

// final reports whether a block is complete, whatever follows.
function final(t: Token, isFollowed: boolean): boolean {
  if (!isFollowed && !t.raw.endsWith("\n")) return false;
  if (t.type === "code") {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(t.raw);
    return !!fence && (isFollowed || endOfFence(t.raw.slice(0, -1), fence[1]!));
  }
  return t.type === "heading" || t.type === "hr" || t.type === "def" || t.type === "formula";
}

const closesFence = (line: string, mark: string): boolean => {
  const m = /^ {0,3}(`{3,}|~{3,}) *$/.exec(line);
  return !!m && m[1]!.startsWith(mark);
};

/** Reports whether the last line of a fence closes it. */
export const endOfFence = (raw: string, mark: string): boolean => {
  const at = raw.lastIndexOf("\n");
  return at >= 0 && closesFence(raw.slice(at + 1), mark);
};

// fenceText returns the text of an open fence in the form that marked uses.
function fenceText(body: string): string {
  const text = body.endsWith("\n") ? body.slice(0, -1) : body;
  return body && (text === "" || text.endsWith("\n")) ? `${text}\n` : text;
}

// Returns the labels with final definitions: those in final blocks, and those of footnotes that have begun.
function defined(definitions: Definitions, finalSource: string, tokens: Token[]): string[] {
  const folded = finalSource.includes("]:") ? fold(finalSource) : "";
  const notes = tokens.filter((t) => t.type === "footnote").map((t) => `^${(t as unknown as Footnote).label}`);
  return folded || notes.length > 0 ? Object.keys(definitions).filter((label) => notes.includes(label) || folded.includes(`[${label}]:`)) : [];
}

// Labels are compared as in marked.
const fold = (text: string): string => text.replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase().replaceAll("[ ", "[").replaceAll(" ]", "]");

// Returns the last paragraph if the text ends in it; the enclosing tokens are added to path.
function lastText(tokens: Token[], path: Open[], source: string): { text: string; tokens: Token[] } | undefined {
  const t = tokens.at(-1) as Open<Tokens.Generic> | undefined;
  if (!t) return undefined;
  path.push(t);
  switch (t.type) {
    case "paragraph":
    case "text":
    case "heading":
      return t.tokens ? t as Tokens.Paragraph : undefined;
    case "blockquote":
    case "footnote":
      return lastText(t.tokens ?? [], path, source);
    case "list": {
      const item = (t as unknown as Tokens.List).items.at(-1);
      if (!item) return undefined;
      path.push(item);
      return lastText(item.tokens, path, source);
    }
    case "table": {
      if (/\|\s*$/.test(source)) return undefined;
      const cells = (t as unknown as Tokens.Table).rows.at(-1);
      return cells?.findLast((c) => c.text !== "");
    }
  }
  return undefined;
}
