// Moves the focus when the pressed control disappears, as many controls do.

import { type RefObject, useEffect } from "react";

import { coarse } from "./Composer";

/** Puts the focus where one writes when a control within was pressed and is gone, so that keys go on from there and not from the page's top. */
export function useFocusKept(within: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const all = within.current;
    if (!all) return;
    let pressed: Element | null = null;
    const press = () => {
      pressed = document.activeElement;
    };
    const look = new MutationObserver(() => {
      if (!pressed || pressed.isConnected) return;
      pressed = null;
      // On a touch screen this would open the keyboard, and the focus isn't needed for navigation.
      if (document.activeElement === document.body && !coarse()) document.getElementById("composer")?.focus({ preventScroll: true });
    });
    const key = (e: KeyboardEvent) => {
      if (e.key === "Enter" || e.key === "Escape") press();
    };
    all.addEventListener("click", press, true);
    all.addEventListener("keydown", key, true);
    look.observe(all, { childList: true, subtree: true });
    return () => {
      all.removeEventListener("click", press, true);
      all.removeEventListener("keydown", key, true);
      look.disconnect();
    };
  }, [within]);
}
