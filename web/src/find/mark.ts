// Marks what was found in the page, without touching its elements.

import { even } from "./search";

interface Registry { set: (name: string, highlight: unknown) => void; delete: (name: string) => void }
const registry = (CSS as unknown as { highlights?: Registry }).highlights;
const make = (globalThis as { Highlight?: new (...ranges: Range[]) => unknown }).Highlight;

/** The ranges of the words in the text of a message, in their order. */
export function ranges(message: Element, words: string): Range[] {
  const query = even(words).trim();
  if (!query) return [];
  // All its text, with where each character comes from.
  let text = "";
  const from: [Node, number][] = [];
  const blocks = message.querySelectorAll(":scope > .text, :scope > .said, :scope > .status");
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

/** Marks ranges, one of them as the one that is looked at. */
export function mark(highlights: readonly Range[], current: Range | undefined): void {
  if (!registry || !make) return; // what is found is outlined as a whole message, too
  registry.set("found", new make(...highlights));
  if (current) registry.set("found-now", new make(current));
  else registry.delete("found-now");
}

export function unmark(): void {
  registry?.delete("found");
  registry?.delete("found-now");
}
