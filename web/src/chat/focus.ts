// Moves the focus when the pressed control disappears, as many controls do.

import { type RefObject, useEffect } from "react";

import { coarse } from "./Composer";

/**
 * Moves the focus to the composer when a pressed control inside the element is removed, so that the next Tab doesn't start at the
 * top of the page.
 */
export function useFocusKept(within: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const container = within.current;
    if (!container) return;
    let pressed: Element | null = null;
    const press = () => {
      pressed = document.activeElement;
    };
    const observer = new MutationObserver(() => {
      if (!pressed || pressed.isConnected) return;
      pressed = null;
      // On a touch screen this would open the keyboard, and the focus isn't needed for navigation.
      if (document.activeElement === document.body && !coarse()) document.getElementById("composer")?.focus({ preventScroll: true });
    });
    const key = (e: KeyboardEvent) => {
      if (e.key === "Enter" || e.key === "Escape") press();
    };
    container.addEventListener("click", press, true);
    container.addEventListener("keydown", key, true);
    observer.observe(container, { childList: true, subtree: true });
    return () => {
      container.removeEventListener("click", press, true);
      container.removeEventListener("keydown", key, true);
      observer.disconnect();
    };
  }, [within]);
}
