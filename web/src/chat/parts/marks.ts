// Names, arguments and URLs come from agents, tools and strangers. Invisible characters, and characters that change the direction
// of text, are replaced by visible marks, so that a name can't look like another.

/**
 * Control characters, invisible characters, and characters that change the direction of text. Joiners are allowed, because emoji
 * and some scripts need them.
 */
const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

const mark = (c: string): string => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

// Many combining marks on one letter would cover the text around it. No script needs more than a few.
const piled = /(\p{M}{4})\p{M}+/gu;

/** The maximum length of a name. */
const longest = 400;

/** Cleans a single-line text: a name, an argument, a URL. */
export function line(text: string, maxLength = longest): string {
  const short = text.length > maxLength ? `${text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "")}…` : text; // without half a surrogate pair at the end
  return short.replace(/\s*[\r\n\u2028\u2029]+\s*|\t/g, " ").replace(invisible, mark).replace(piled, "$1");
}

/** Cleans a text of several lines: an output, a prompt, a value. */
export function lines(text: string): string {
  return text.replace(invisible, (c) => (c === "\n" || c === "\t" ? c : mark(c))).replace(piled, "$1");
}

// Terminal escape sequences: colors, cursor movement, titles, links.
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[@-Z\\^_])/g;

/**
 * Converts terminal output to plain text: without colors, and with only the final state of a line that was overwritten by carriage
 * returns.
 */
export function terminal(text: string): string {
  const plain = text.includes("\u001b") ? text.replace(escapes, "") : text;
  const overwritten = plain.includes("\r") ? plain.replace(/\r+\n/g, "\n").replace(/[^\n]*\r(?=[^\n\r])/g, "").replace(/\r/g, "") : plain;
  return lines(overwritten);
}
