// Panels on top of the page, on windows too narrow to show them next to it.

import { type RefObject, useLayoutEffect, useSyncExternalStore } from "react";

/** The width below which the list and the inspector cover the conversation; layout.css has the same value. */
const narrow = matchMedia("(max-width: 1199px)");

const subscribe = (tell: () => void): (() => void) => {
  narrow.addEventListener("change", tell);
  return () => narrow.removeEventListener("change", tell);
};

export const useNarrow = (): boolean => useSyncExternalStore(subscribe, () => narrow.matches);

/** Makes the element below inert while isActive. */
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

/** Nothing usable has the focus. A control that has just become inert keeps it until the browser's next rendering. */
const isNowhere = (target: EventTarget | null): boolean => target === document.body || (target instanceof Element && !!target.closest("[inert]"));

/**
 * Closes the panel on Escape, also if nothing has the focus. Controls inside the panel may handle the key first. It works as soon as the
 * panel is visible: a moment later the key would stop the answer.
 */
export function useEscape(isActive: boolean, close: () => void): void {
  useLayoutEffect(() => {
    if (!isActive) return;
    const down = (e: KeyboardEvent) => {
      if (e.key !== "Escape" || e.isComposing || !isNowhere(e.target) || document.querySelector("dialog.sheet")) return;
      e.preventDefault();
      e.stopImmediatePropagation();
      close();
    };
    document.addEventListener("keydown", down, true);
    return () => document.removeEventListener("keydown", down, true);
  }, [isActive, close]);
}
