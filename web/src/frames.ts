// Batches rendering: incoming data changes the stores at once, and React is notified once per frame. A hidden page is notified
// rarely, and at once when it becomes visible.

const callbacks = new Set<() => void>();
let frame = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** How long a hidden page waits: it draws seldom, but its title and its sounds stay true. */
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

/** Calls f with the next frame, once however often it is asked for. */
export function onFrame(f: () => void): void {
  callbacks.add(f);
  if (frame || timer !== undefined) return;
  if (document.hidden) timer = setTimeout(flush, hiddenWait);
  else frame = requestAnimationFrame(flush);
}

/** Forgets f. */
export function offFrame(f: () => void): void {
  callbacks.delete(f);
}

document.addEventListener("visibilitychange", () => {
  if (callbacks.size > 0 || frame || timer !== undefined) flush();
});
