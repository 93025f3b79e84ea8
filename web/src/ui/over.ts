// Panels on top of the page, on windows too narrow to show them next to it.

import { type RefObject, useEffect, useLayoutEffect, useSyncExternalStore } from "react";

/** Where the list and what is looked into no longer stand beside the conversation; layout.css has the same. */
const narrow = matchMedia("(max-width: 1199px)");

const subscribe = (tell: () => void): (() => void) => {
  narrow.addEventListener("change", tell);
  return () => narrow.removeEventListener("change", tell);
};

export const useNarrow = (): boolean => useSyncExternalStore(subscribe, () => narrow.matches);

/** Makes what lies below unreachable as long as something lies over it. */
export function useBelow(isActive: boolean, belowRef: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const element = belowRef.current;
    if (!isActive || !element) return;
    element.inert = true;
    return () => {
      element.inert = false;
    };
  }, [isActive, belowRef]);
}

/** Escape closes what lies on top also where nothing has the focus; a key that is pressed within it is its own. */
export function useEscape(isActive: boolean, close: () => void): void {
  useEffect(() => {
    if (!isActive) return;
    const down = (e: KeyboardEvent) => {
      if (e.key !== "Escape" || e.isComposing || e.target !== document.body || document.querySelector("dialog.sheet")) return;
      e.preventDefault();
      e.stopImmediatePropagation();
      close();
    };
    document.addEventListener("keydown", down, true);
    return () => document.removeEventListener("keydown", down, true);
  }, [isActive, close]);
}
