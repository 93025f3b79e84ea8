// A page to render into. It must be imported before react-dom, which looks for a page when it is loaded. The network stays Node's, because
// the page's own network is an imitation with different rules.

import { Window } from "happy-dom";

const window = new Window({ url: "http://localhost/" });
const page = globalThis as Record<string, unknown>;
for (const name of ["window", "document", "navigator", "location", "HTMLElement", "Element", "Node", "MutationObserver", "ResizeObserver", "getComputedStyle", "requestAnimationFrame", "cancelAnimationFrame", "localStorage", "HTMLIFrameElement", "CSS"]) {
  if (page[name] === undefined) page[name] = (window as unknown as Record<string, unknown>)[name];
}

/** An element of the page. */
export function place(): HTMLElement {
  const e = document.createElement("div");
  document.body.append(e);
  return e;
}

/** Lets the page go, so that the process can end. */
export const leavePage = (): Promise<void> => window.happyDOM.close();
