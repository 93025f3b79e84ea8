import { useState, useSyncExternalStore } from "react";

import { isLost, link } from "../chat/turnStatus";
import { useStore } from "../store";
import { elapsed } from "../time";

// One timer for all clocks of the page. It runs only while there are any.
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

/** Returns the current time, and renders again every second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => (timer === undefined ? (time = time || Date.now()) : time));

/** useQuiet returns how long a value has not changed, in milliseconds. */
function useQuiet(value: unknown): number {
  const at = useNow();
  const [last, setLast] = useState({ value, at });
  if (last.value !== value) setLast({ value, at });
  return Math.max(0, at - last.at);
}

/** Shows the time since `since`, updated every second. Its title shows the time since `changed` last changed. */
export function Clock({ since, changed }: { since: number; changed?: unknown }) {
  const at = useNow();
  const quiet = useQuiet(changed);
  const isUnknown = isLost(useStore(link));
  if (isUnknown) return null; // it may have ended meanwhile
  return <time className="clock" title={quiet >= 5000 ? `Last activity ${elapsed(quiet)} ago` : undefined}>{elapsed(at - since)}</time>;
}
