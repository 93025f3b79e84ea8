// Batches rendering: incoming data changes the stores at once, and React is notified once per frame. A hidden page is notified
// rarely, and at once when it becomes visible.

const callbacks = new Set<() => void>();
let frame = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** The delay between renders of a hidden page. It renders rarely, but its title and sounds must be current. Milliseconds. */
const hiddenWait = 1000;

function flush(): void {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  frame = 0;
  timer = undefined;
  const due = [...callbacks];
  callbacks.clear();
  for (const f of due) f();
}

/** Calls f in the next frame, once even if it is requested several times. */
export function onFrame(f: () => void): void {
  callbacks.add(f);
  if (frame || timer !== undefined) return;
  if (document.hidden) timer = setTimeout(flush, hiddenWait);
  else frame = requestAnimationFrame(flush);
}

/** Cancels the call of f. */
export function offFrame(f: () => void): void {
  callbacks.delete(f);
}

document.addEventListener("visibilitychange", () => {
  if (callbacks.size > 0 || frame || timer !== undefined) flush();
});
