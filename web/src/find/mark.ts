// Highlights hits in the page without changing its elements.

import { even } from "./search";

interface Registry { set: (name: string, highlight: unknown) => void; delete: (name: string) => void }
const registry = (CSS as unknown as { highlights?: Registry }).highlights;
const make = (globalThis as { Highlight?: new (...ranges: Range[]) => unknown }).Highlight;

/** Returns the ranges of the words in a message's text, in order. */
export function ranges(message: Element, words: string): Range[] {
  const query = even(words).trim();
  if (!query) return [];
  // Collect the text, and the node and offset of each character.
  let text = "";
  const from: [Node, number][] = [];
  const blocks = message.querySelectorAll(":scope > .text, :scope > .bubble > .said, :scope > .status");
  for (const block of blocks) {
    const walk = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    let parent: Element | null = null;
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
      const parentBlock = n.parentElement?.closest("p, li, td, th, pre, h1, h2, h3, h4, h5, h6, blockquote") ?? null;
      if (parentBlock !== parent && text && !text.endsWith(" ")) { text += " "; from.push([n, 0]); }
      parent = parentBlock;
      const data = (n as Text).data;
      for (let i = 0; i < data.length; i++) {
        const c = even(data[i]!);
        if (c === " " && text.endsWith(" ")) continue;
        for (const character of c) { text += character; from.push([n, i]); }
      }
    }
  }
  const result: Range[] = [];
  for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
    const [start, last] = [from[at], from[at + query.length - 1]];
    if (!start || !last) break;
    const r = document.createRange();
    r.setStart(...start);
    r.setEnd(last[0], last[1] + 1);
    result.push(r);
  }
  return result;
}

/** Highlights ranges; current is the selected one. */
export function mark(highlights: readonly Range[], current: Range | undefined): void {
  if (!registry || !make) return; // without this API, the outline of the message marks the hit
  registry.set("found", new make(...highlights));
  if (current) registry.set("found-now", new make(current));
  else registry.delete("found-now");
}

export function unmark(): void {
  registry?.delete("found");
  registry?.delete("found-now");
}
