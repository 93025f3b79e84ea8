// Draws formulas with KaTeX, loaded when the first one is shown. The result is MathML: it needs no fonts and no styles, which the
// page's policy would forbid, and screen readers read it.

import katex from "katex";

/** The result for longer formulas is their source, because drawing them would block the page. Characters. */
const longest = 10_000;

/**
 * Draws a formula into an element. It returns false, and leaves the element as it is, if the text is not a formula. KaTeX creates
 * elements and no markup; commands that set links, classes or pictures are refused.
 */
export function draw(into: HTMLElement, text: string, isBlock: boolean): boolean {
  if (text.length > longest) return false;
  const drawing = document.createElement("span");
  try {
    katex.render(text, drawing, { displayMode: isBlock, output: "mathml", throwOnError: true, trust: false, errorColor: "currentColor", strict: "ignore", maxSize: 20, maxExpand: 500 });
  } catch {
    return false; // it isn't complete yet, or never will be
  }
  into.replaceChildren(...drawing.childNodes);
  return true;
}
