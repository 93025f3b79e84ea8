// Batches rendering: incoming data changes the stores at once, and React is notified once per frame. A hidden page is notified
// rarely, and at once when it becomes visible.

const waiting = new Set<() => void>();
let frame = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** How long a hidden page waits: it draws seldom, but its title and its sounds stay true. */
const hiddenWait = 1000;

function flush(): void {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  frame = 0;
  timer = undefined;
  const now = [...waiting];
  waiting.clear();
  for (const f of now) f();
}

/** Calls f with the next frame, once however often it is asked for. */
export function onFrame(f: () => void): void {
  waiting.add(f);
  if (frame || timer !== undefined) return;
  if (document.hidden) timer = setTimeout(flush, hiddenWait);
  else frame = requestAnimationFrame(flush);
}

/** Forgets f. */
export function offFrame(f: () => void): void {
  waiting.delete(f);
}

document.addEventListener("visibilitychange", () => {
  if (waiting.size > 0 || frame || timer !== undefined) flush();
});
