// The checks that run at every change of a page, for all tests in a browser.

/**
 * Runs in the page, before anything else. A message's text must never get shorter, its letters and digits by no more than what
 * becomes syntax, its element must stay the same, and no message is shown twice or goes while it is seen. Only what the page hears
 * of the log (a text that is replaced, messages that are dropped) frees from that, and only the message that it is about; such falls
 * are kept in window.takenBack. What breaks a rule is added to window.faults, and told to the test at once.
 */
export function watch() {
  const faults = (window.faults = []);
  window.takenBack = [];
  window.allowed ??= new Set(); // "shrink" and "go", by the harness's allowed
  window.longTasks = [];
  new PerformanceObserver((l) => {
    for (const e of l.getEntries()) window.longTasks.push(Math.round(e.duration));
  }).observe({ type: "longtask", buffered: true });
  const records = new Map(); // id: { node, length, letters, high, below, box, hash, gone }
  const freed = new Map(); // the change that the log allows for a message id: "shrink" or "go"
  const syntax = 24;
  const settles = 100;
  const fault = (description) => {
    faults.push(description);
    window.tellFault?.(description);
  };
  const count = (text) => text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  // A formula counts with its source, which the drawing contains. The source of a diagram is replaced by a frame, so it doesn't count.
  const source = (formula) => [...formula.querySelectorAll(".drawn:not([hidden]) annotation, code.math")].reduce((n, e) => n + count(e.textContent), 0);
  const letters = (node) => {
    let n = count(node.innerText ?? "");
    for (const e of node.querySelectorAll(".formula, .formula-block")) n += source(e) - count(e.innerText);
    for (const e of node.querySelectorAll("figure.code")) if (e.querySelector("figcaption").textContent.startsWith("diagram")) n -= count(e.innerText);
    return n;
  };
  const frames = (n, callback) => requestAnimationFrame(n > 1 ? () => frames(n - 1, callback) : callback);

  // A change in the log is rendered in one of the next frames. Afterwards all rules hold again.
  const free = (id, change) => {
    const permit = { what: change };
    freed.set(id, permit);
    frames(10, () => { if (freed.get(id) === permit) freed.delete(id); });
  };
  const may = (id, change) => window.allowed.has(change) || freed.get(id)?.what === change;
  const hear = (f) => {
    for (const e of f.events ?? []) {
      if (e.type === "part.replace" && !e.field && e.note === undefined) free(e.message, "shrink");
      if (e.type === "conversation.delete") for (const id of records.keys()) free(id, "go");
    }
    if (f.type !== "snapshot") return;
    const lengths = new Map(f.transcript.messages.map((m) => [m.id, m.parts.reduce((n, p) => n + (p.kind === "text" ? (p.text ?? "").length : 0), 0)]));
    const firstArticle = f.earlier && document.querySelector(`article[data-message="${CSS.escape(f.transcript.messages[0]?.id ?? "")}"]`);
    for (const [id, k] of records) {
      if (k.gone) continue;
      if (lengths.has(id)) {
        if (lengths.get(id) < k.length) free(id, "shrink");
      } else if (!f.earlier || (firstArticle && firstArticle.compareDocumentPosition(k.node) & Node.DOCUMENT_POSITION_FOLLOWING)) free(id, "go");
    }
  };
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => { if (typeof data === "string") hear(JSON.parse(data)); });
    }
  };

  // A text may lose characters while syntax becomes clear, but soon has them again.
  const dip = (id, k) => {
    const below = (k.below = {});
    setTimeout(() => frames(2, () => {
      if (k.below !== below || k.gone || !k.node.isConnected) return;
      inspect();
      if (k.below !== below) return;
      fault(`${id} stays at ${k.letters} letters after ${k.high}`);
      k.high = k.letters;
      k.below = undefined;
    }), settles);
  };
  const inspect = () => {
    const ids = new Set();
    for (const node of document.querySelectorAll("article[data-message]")) {
      const id = node.dataset.message;
      if (ids.has(id)) fault(`${id} is shown twice`);
      ids.add(id);
      const length = Number(node.dataset.len);
      // While a message is edited, its text is in a field.
      const text = node.dataset.editing ? records.get(id)?.letters ?? 0 : [...node.querySelectorAll(":scope > .text, :scope > .bubble > .said")].reduce((n, e) => n + letters(e), 0);
      const k = records.get(id);
      if (!k || k.gone) {
        records.set(id, { node, length, letters: text, high: text });
        continue;
      }
      if (k.node !== node) fault(`${id} is another element`);
      const shrink = may(id, "shrink");
      if (shrink) {
        if (length < k.length) window.takenBack.push({ id, from: k.length, to: length });
        k.high = text;
      } else {
        if (length < k.length) fault(`${id} shrank from ${k.length} to ${length}`);
        if (text < k.letters - syntax) {
          fault(`${id} has ${text} letters after ${k.letters}`);
          k.high = text; // report it once
        }
      }
      Object.assign(k, { node, length, letters: text, high: Math.max(k.high, text) });
      if (text >= k.high - syntax) k.below = undefined;
      else if (!k.below) dip(id, k);
    }
    for (const [id, k] of records) {
      if (ids.has(id) || k.gone) continue;
      k.gone = true; // out of view, or the conversation was left: looked at by where it was
      const box = k.box;
      if (!box || box.bottom <= 0 || box.top >= innerHeight || location.hash !== k.hash) continue;
      if (may(id, "go")) window.takenBack.push({ id, from: k.length });
      else fault(`${id} went while it was seen`);
    }
    for (const [id, k] of records) {
      if (!ids.has(id)) continue;
      k.box = k.node.getBoundingClientRect();
      // The hash of the message's conversation: the URL changes before the shown content. A new conversation gets a hash with its
      // first message.
      if (!k.hash?.startsWith("#/c/")) k.hash = location.hash;
    }
  };
  new MutationObserver(inspect).observe(document, { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["data-len"] });
}
