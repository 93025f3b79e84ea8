// Names, arguments and addresses come from agents, tools and strangers. What can't be seen in them, or turns the order in which they
// are read, is shown as a mark, so that a name is what it looks like.

/** Controls, invisible characters, and those that turn the order of text. Joiners of emoji and of scripts stay: they are letters there. */
const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

const mark = (c: string): string => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

// Many combining marks on one letter would cover the text around it; no script uses more than a few.
const piled = /(\p{M}{4})\p{M}+/gu;

/** How long a name may be; what is longer is none. */
const longest = 400;

/** A text for one line: a name, an argument, an address. */
export function line(text: string, maxLength = longest): string {
  const short = text.length > maxLength ? `${text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "")}…` : text; // no half of a character
  return short.replace(/\s*[\r\n\u2028\u2029]+\s*|\t/g, " ").replace(invisible, mark).replace(piled, "$1");
}

/** A text of several lines: an output, a prompt, a value. */
export function lines(text: string): string {
  return text.replace(invisible, (c) => (c === "\n" || c === "\t" ? c : mark(c))).replace(piled, "$1");
}

// Colours and movements of the cursor; titles and links of a terminal.
const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[@-Z\\^_])/g;

/** What a program wrote for a terminal, as text: without colours, and of a line that was written over the last writing. */
export function terminal(text: string): string {
  const plain = text.includes("\u001b") ? text.replace(escapes, "") : text;
  const overwritten = plain.includes("\r") ? plain.replace(/\r+\n/g, "\n").replace(/[^\n]*\r(?=[^\n\r])/g, "").replace(/\r/g, "") : plain;
  return lines(overwritten);
}
