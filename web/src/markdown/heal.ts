// The end of a growing text: open syntax is closed, and characters that may still become syntax are hidden for a moment, so that
// little is shown that disappears again.

/** The maximum number of hidden characters, and for how many milliseconds. */
export const heldLength = 40;
export const heldTime = 150;

/** The target of a link whose address is incomplete. */
export const onItsWay = "leat:on-its-way";

// The beginning of a line that may become a list marker, a heading, a fence, an underline, a table or a definition.
const lineStart = /^(?:[ \t]*>)*[ \t]*(?:\d{1,9}[.)]?|[-*+](?:[ \t]+\[[ xX]?\]?)?|#{1,6}|>|`{1,2}|~{1,2}|[-=]+|[-*_][-*_ \t]*|\$\$?|\\\[?|\[\^?[^\]\n]*\]?:?|\|[^\n]*)[ \t]*$/;

/** Returns how many characters at the end of a text are hidden as the possible beginning of a block. */
export function holdBlock(text: string): number {
  const at = text.lastIndexOf("\n") + 1;
  const line = text.slice(at);
  if (line.length > heldLength || !lineStart.test(line) || /^(?:`{3}|~{3})[^\n]*\n(?![^]*\n(?:`{3}|~{3}))/.test(text.slice(lastBlock(text)))) return 0;
  // A line after a table row is the next row.
  return /^[ |:-]*$|^ *\|/.test(line) && text.slice(text.lastIndexOf("\n", at - 2) + 1, at).includes("|") ? 0 : line.length;
}

// The beginning of an entity, a picture, a link, an escape, emphasis, or an address in angle brackets.
const inlineStart = /(?:&#?[A-Za-z0-9]{0,12}|!?\[[^[\]\n]*\]?|!|\\|[*_~`]+|<[A-Za-z/][^<>\n ]*)$/;

/** Returns how many characters at the end of a paragraph are hidden. */
export function holdInline(text: string): number {
  const m = inlineStart.exec(text.slice(-heldLength - 1));
  return m && m[0].length <= heldLength ? m[0].length : 0;
}

const delimiters = /^ {0,3}[|:-][|:\- \t]*$/;

function columns(row: string): number {
  const cells = row.trim().replace(/^\||(?<!\\)\|$/g, "");
  return cells ? cells.split(/(?<!\\)\|/).length : 0;
}

// lastBlock returns the offset of the last block: after the last blank line.
function lastBlock(text: string): number {
  let at = 0;
  for (const m of text.matchAll(/\n[ \t]*(?=\n)/g)) at = m.index + m[0].length + 1;
  return at;
}

/** Returns the unclosed formula at the end of a text: its offset, its closing mark, and its content. */
export function openFormula(text: string): { at: number; close: string; inside: string } | undefined {
  let at = lastBlock(text);
  for (;;) {
    const m = /(?:^|\n) {0,3}(\$\$(?!\$)|\\\[)/.exec(text.slice(at));
    if (!m) return undefined;
    const begin = at + m.index + m[0].length;
    const close = m[1] === "$$" ? "$$" : "\\]";
    const end = text.indexOf(close, begin);
    if (end < 0) return { at: at + m.index, close, inside: text.slice(begin) };
    at = end + close.length;
  }
}

/** Returns the characters that complete the last block of a text: the rest of a table's delimiter row, or the end of a formula. */
export function closeBlock(text: string): string {
  const block = text.slice(lastBlock(text));
  if (/`{3}|~{3}/.test(block)) return "";
  const lines = block.split("\n");
  const [head, last] = lines.slice(-2);
  if (last && head?.includes("|") && delimiters.test(last) && !lines.slice(0, -1).some((l) => delimiters.test(l))) {
    const isColumnOpen = /[|:]\s*$/.test(last) && !/-:\s*$/.test(last); // the delimiter of the last column is incomplete
    const missing = columns(head) - columns(last) - (/\|\s*$/.test(last) ? 1 : 0);
    return missing < 0 ? "" : (isColumnOpen ? "-" : "") + "|-".repeat(missing);
  }
  const { close, inside } = openFormula(text) ?? { close: "", inside: "" };
  return !inside.trim() ? "" : inside.endsWith(close[0]!) ? close[1]! : `\n${close}`;
}

interface Mark { mark: string; left: number; at: number }

const space = (c: string | undefined): boolean => c === undefined || /\s/.test(c);
const sign = (c: string | undefined): boolean => c !== undefined && /[\p{P}\p{S}]/u.test(c);
const letter = (c: string | undefined): boolean => c !== undefined && /[\p{L}\p{N}]/u.test(c);

/** Returns the text of a paragraph with its open syntax closed. */
export function closeInline(text: string): string {
  const open: Mark[] = [];
  for (let i = 0; i < text.length; ) {
    const c = text[i]!;
    if (c === "\\" && text[i + 1] !== "(") {
      i += 2;
    } else if (c === "`" || c === "\\" || (c === "$" && text[i + 1] === "$")) {
      // Code and formulas contain no other syntax.
      const mark = c === "`" ? /^`+/.exec(text.slice(i))![0] : text.slice(i, i + 2);
      const close = c === "\\" ? "\\)" : mark;
      const from = i + mark.length;
      const end = c === "`" ? endOfCode(text, mark, from) : text.indexOf(close, from);
      if (end < 0) return finish(text, i, from, close, open);
      i = end + close.length;
    } else if (c === "<") {
      i += /^<[A-Za-z/!][^<>\n]*>/.exec(text.slice(i, i + 2000))?.[0].length ?? 1;
    } else if (c === "[") {
      open.push({ mark: c, left: 1, at: i++ });
    } else if (c === "]") {
      const at = open.findLastIndex((o) => o.mark === "[");
      i++;
      if (at < 0) continue;
      const start = open[at]!.at;
      open.length = at; // syntax that is open in a link's text ends with it
      if (text[i] !== "(") continue;
      const end = endOfAddress(text, i + 1);
      if (end >= 0) i = end;
      // The link text is shown; its address is still incomplete.
      else if (/^\s*(?:<[^<>\n]*>?|[^\s<]*)(?:\s+(?:["'(][^\n]*)?)?$/.test(text.slice(i + 1))) {
        return withMarks(`${text.slice(0, text[start - 1] === "!" ? start - 1 : start)}${text.slice(start, i)}(${onItsWay})`, open);
      }
    } else if (c === "*" || c === "_" || (c === "~" && text[i + 1] === "~")) {
      const end = i + (c === "*" ? /^\*+/ : c === "_" ? /^_+/ : /^~+/).exec(text.slice(i))![0].length;
      const remaining = emphasis(text, c, i, end, open);
      if (remaining > 0 && end === text.length) return withMarks(text.slice(0, -remaining), open); // the emphasized text hasn't arrived
      i = end;
    } else {
      i++;
    }
  }
  return withMarks(text, open);
}

// emphasis closes and opens marks for a run of emphasis characters. It returns how many characters of the run did neither, or
// opened something.
function emphasis(text: string, c: string, from: number, to: number, open: Mark[]): number {
  const [before, after] = [text[from - 1], text[to]];
  const opens = !space(after) && (!sign(after) || space(before) || sign(before)) && !(c === "_" && letter(before));
  const closes = !space(before) && (!sign(before) || space(after) || sign(after)) && !(c === "_" && letter(after));
  let remaining = to - from;
  while (remaining > 0 && closes) {
    const at = open.findLastIndex((o) => o.mark === c || o.mark === "[");
    const o = open[at];
    if (o?.mark !== c) break;
    const n = Math.min(remaining, o.left);
    remaining -= n;
    o.left -= n;
    open.length = o.left === 0 ? at : at + 1;
  }
  if (remaining > 0 && opens && (c !== "~" || remaining === 2)) open.push({ mark: c, left: remaining, at: to - remaining });
  return remaining;
}

// finish closes code or a formula that began at start; its content begins at from.
function finish(text: string, start: number, from: number, close: string, open: Mark[]): string {
  let startCount = 0;
  while (startCount < close.length && text.length - startCount > from && text.endsWith(close.slice(0, startCount + 1))) startCount++;
  if (!text.slice(from, text.length - startCount).trim()) return withMarks(text.slice(0, start), open); // its content hasn't arrived
  return withMarks(text + close.slice(startCount), open);
}

// endOfCode returns the offset of the run of backticks that closes the code, or -1.
function endOfCode(text: string, run: string, from: number): number {
  const ends = /`+/g;
  ends.lastIndex = from;
  for (let m = ends.exec(text); m; m = ends.exec(text)) if (m[0].length === run.length) return m.index;
  return -1;
}

// Returns the end of the brackets around an address, or -1 while they are open.
function endOfAddress(text: string, from: number): number {
  let level = 1;
  for (let i = from; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "(") level++;
    else if (text[i] === ")" && --level === 0) return i + 1;
  }
  return -1;
}

// Closing marks go before trailing spaces, because after a space they would not close anything.
function withMarks(text: string, open: Mark[]): string {
  const marks = open.filter((o) => o.mark !== "[").reverse().map((o) => o.mark.repeat(o.left)).join("");
  if (!marks) return text;
  const end = text.trimEnd();
  return end + marks + text.slice(end.length);
}
