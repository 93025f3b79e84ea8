// Records the log: after every change of the page, the visible content of each message. window.scenes has one scene for each change
// of the messages, of which of them grow, and of their parts.

/**
 * Runs in the page before its own scripts. It records flicker in window.flickers: a visible part that is rendered again or removed,
 * a complete message that grows, a message that loses height.
 */
export function film() {
  const scenes = (window.scenes = []);
  const flickers = (window.flickers = []);
  const parts = new Map(); // the text of each element
  const heights = new Map();
  const complete = new Set();
  const line = 40; // pixels: the height that a line of text and its margin may lose when syntax becomes clear
  let last = "";
  const isPart = (e) => !/^(H2|FOOTER)$/.test(e.tagName) && !e.matches(".note, .who, .turn-end, [aria-busy]") && e.innerText?.trim();
  const inspect = () => {
    const scene = [];
    for (const a of document.querySelectorAll("article[data-message]")) {
      const id = a.dataset.message;
      const growing = a.getAttribute("aria-busy") === "true";
      const children = [...a.children].flatMap((e) => (e.matches(".bubble") ? [...e.children] : [e])).filter(isPart);
      for (const e of children) parts.set(e, e.innerText);
      if (growing && complete.has(id)) flickers.push(`${id} was complete and grows again`);
      if (!growing) complete.add(id);
      const { height, width } = a.getBoundingClientRect();
      const sized = a.querySelectorAll(".media.image[data-sized]").length;
      const before = heights.get(id);
      // A detail that the test itself expands or collapses is not flicker, nor is a picture that turns out to be smaller than its placeholder.
      if (before && width === before.width && sized === before.sized && height < before.height - line && !window.folding) flickers.push(`${id} is ${Math.round(height)} high after ${Math.round(before.height)}`);
      heights.set(id, { height, width, sized });
      scene.push({ id, mine: a.classList.contains("user"), growing, parts: children.map((e) => (e.matches(".text, .said") ? "text" : e.matches(".tool") ? "tool" : e.matches(".reasoning") ? "reasoning" : e.tagName.toLowerCase())), text: children.map((e) => e.innerText).join("\n") });
    }
    for (const [e, text] of parts) {
      if (e.isConnected) continue;
      parts.delete(e);
      flickers.push(`rendered again or removed: ${text.slice(0, 80)}`);
    }
    const state = JSON.stringify(scene.map(({ id, growing, parts: p }) => [id, growing, p]));
    if (state !== last) scenes.push(scene);
    last = state;
  };
  new MutationObserver(inspect).observe(document, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["aria-busy", "data-open"] });
}

/** Runs in a page: window.seen collects the answers in which a pattern was ever visible. */
export function never(source) {
  const pattern = new RegExp(source, "i");
  window.seen = [];
  const inspect = () => {
    for (const a of document.querySelectorAll("article.assistant")) {
      const match = pattern.exec(a.innerText);
      if (match) window.seen.push(a.innerText);
    }
  };
  new MutationObserver(inspect).observe(document, { subtree: true, childList: true, characterData: true });
}
