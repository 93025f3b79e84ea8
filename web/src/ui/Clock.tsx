import { useState, useSyncExternalStore } from "react";

import { elapsed } from "../time";

// One timer for all clocks of the page, which counts only while there are any.
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let time = 0;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    time = Date.now();
    timer = setInterval(() => {
      time = Date.now();
      for (const l of [...listeners]) l();
    }, 1000);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The time, told anew once a second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => (timer === undefined ? (time = time || Date.now()) : time));

/** How long a value has been the same, in milliseconds. */
function useQuiet(value: unknown): number {
  const at = useNow();
  const [last, setLast] = useState({ value, at });
  if (last.value !== value) setLast({ value, at });
  return Math.max(0, at - last.at);
}

/** How long something has gone on, counted once a second; how long nothing of it has changed is told by its title. */
export function Clock({ since, changed }: { since: number; changed?: unknown }) {
  const at = useNow();
  const quiet = useQuiet(changed);
  return <time className="clock" title={quiet >= 5000 ? `Last activity ${elapsed(quiet)} ago` : undefined}>{elapsed(at - since)}</time>;
}
