// Keyboard navigation of the log. It is one stop of the Tab key: arrows move between messages, Enter moves into one, Escape back
// out. A request of an agent counts as a message, and is the only element inside the log that Tab reaches.

const reachable = "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, audio, video, [tabindex='0']";

const visible = (e: HTMLElement): boolean => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden" && !e.closest("[inert]");

const within = (e: Element): HTMLElement[] => [...e.querySelectorAll<HTMLElement>(reachable)].filter((x) => x.tabIndex >= 0 && visible(x));

/** Handles a key in the log. */
export function walk(event: KeyboardEvent, log: HTMLElement | null, content: HTMLElement | null): void {
  const at = event.target;
  if (!log || !content || !(at instanceof HTMLElement)) return;
  if (event.key === "Tab" && !event.altKey && !event.ctrlKey && !event.metaKey) {
    tab(event, log, at);
    return;
  }
  if (event.altKey || event.ctrlKey || event.metaKey || at.matches("input, textarea, select")) return;
  const items = [...content.querySelectorAll<HTMLElement>(":scope > article, :scope > .ask")];
  const i = items.findIndex((a) => a.contains(at));
  const self = at === items[i] || at === log;
  if (event.key === "Enter" && at === items[i]) {
    within(at)[0]?.focus();
    event.preventDefault(); // otherwise the key would also press the newly focused button
  } else if (event.key === "Escape" && i >= 0 && !self) {
    items[i]!.focus();
    event.preventDefault();
  } else if (self && (event.key === "ArrowDown" || event.key === "ArrowUp" || at !== log && (event.key === "PageDown" || event.key === "PageUp"))) {
    const next = items[i < 0 ? items.length - 1 : i + (event.key === "ArrowDown" || event.key === "PageDown" ? 1 : -1)];
    if (!next) return;
    next.focus();
    event.preventDefault();
  }
}

// From the log or a message, Tab skips their controls; inside a message it moves between the controls, and then out.
function tab(event: KeyboardEvent, log: HTMLElement, at: HTMLElement): void {
  const part = at.closest<HTMLElement>(".log > .column > *");
  const inside = part && at !== part ? within(part) : [];
  const step = event.shiftKey ? -1 : 1;
  const i = inside.indexOf(at);
  if (i >= 0 && inside[i + step]) return; // leave it to the browser
  const ask = log.querySelector<HTMLElement>(".ask");
  let to: HTMLElement | undefined;
  if (event.shiftKey) to = at === log ? undefined : log;
  else if (ask && !ask.contains(at)) to = within(ask)[0];
  if (!to) {
    const focusable = [...document.querySelectorAll<HTMLElement>(reachable)].filter((e) => e.tabIndex >= 0 && !log.contains(e) && visible(e));
    const follows = (e: HTMLElement) => (log.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    to = event.shiftKey ? focusable.findLast((e) => !follows(e)) : focusable.find(follows);
  }
  if (!to) return; // leave it to the browser's own controls
  to.focus();
  event.preventDefault();
}

/** Moves the focus to the log, not to its last button, when Shift+Tab enters it from below. */
export function focusLog(event: FocusEvent, log: HTMLElement | null): void {
  if (!log || !backwards || event.target === log || event.relatedTarget instanceof Node && log.contains(event.relatedTarget)) return;
  log.focus({ preventScroll: true });
}

let backwards = false;
addEventListener("keydown", (e) => { backwards = e.key === "Tab" && e.shiftKey; }, true);
addEventListener("pointerdown", () => { backwards = false; }, true);
