// Who moves the log: the page while it follows the end, the reader once they have moved away from it. Growth never changes that;
// only what the reader does.

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

const atEnd = (s: Element): boolean => s.scrollHeight - s.scrollTop - s.clientHeight <= 1;

/** How far a finger moves before it counts, in pixels. */
const drag = 8;

/** Where a reader is: the first message that they see, and how far below the scroller's upper edge it begins, in pixels. */
export interface Spot { message: string; top: number }

export interface Scroll {
  /** The page keeps the end in view. */
  following: boolean;
  /** Follows again, at the end. */
  toEnd: () => void;
  /** Keeps an element where it is on the screen while f changes the height of what is above or in it. */
  hold: (element: Element, f: () => void) => void;
  /** Leaves the end, and brings an element to the middle. */
  bring: (element: Element) => void;
  /** Leaves the end. */
  release: () => void;
  /** Where the reader is, where they have left the end. */
  spot: () => Spot | undefined;
}

/** Looks after a scroller whose content grows. onTop is called when the reader comes near the beginning. It begins at the end, or at a spot. */
export function useScroll(scrollerRef: RefObject<HTMLElement | null>, contentRef: RefObject<HTMLElement | null>, onTop: () => void, begin?: Spot): Scroll {
  const [start] = useState(begin);
  const [following, setFollowing] = useState(!begin);
  const isFollowing = useRef(!begin); // following, for the listeners
  const anchor = useRef<{ element: Element; top: number } | undefined>(undefined);
  const top = useRef(onTop);
  useLayoutEffect(() => {
    top.current = onTop;
  }, [onTop]);

  const pin = useCallback(() => {
    const s = scrollerRef.current;
    if (s) s.scrollTop = s.scrollHeight;
  }, [scrollerRef]);
  const become = useCallback((f: boolean) => {
    isFollowing.current = f;
    setFollowing(f);
  }, []);
  const toEnd = useCallback(() => {
    become(true);
    pin();
  }, [become, pin]);

  // What is first on the screen keeps its place when things above it change.
  const mark = useCallback(() => {
    const s = scrollerRef.current;
    anchor.current = undefined;
    if (!s || isFollowing.current) return;
    const edge = s.getBoundingClientRect().top;
    for (const element of contentRef.current?.children ?? []) {
      const box = element.getBoundingClientRect();
      if (box.bottom > edge) {
        anchor.current = { element, top: box.top };
        return;
      }
    }
  }, [scrollerRef, contentRef]);
  const settle = useCallback(() => {
    const s = scrollerRef.current;
    if (!s) return;
    if (isFollowing.current) {
      pin();
      return;
    }
    const a = anchor.current;
    if (!a?.element.isConnected) return;
    const shift = a.element.getBoundingClientRect().top - a.top;
    if (Math.abs(shift) >= 1) s.scrollTop += shift;
  }, [scrollerRef, pin]);

  useLayoutEffect(() => {
    const s = scrollerRef.current;
    const element = start && contentRef.current?.querySelector(`:scope > [data-message="${CSS.escape(start.message)}"]`);
    if (s && element) anchor.current = { element, top: s.getBoundingClientRect().top + start.top };
    else if (start) queueMicrotask(() => become(true)); // the message is no longer there: begin at the end
  }, [scrollerRef, contentRef, start, become]);
  useLayoutEffect(() => settle()); // after each drawing
  useEffect(() => {
    const s = scrollerRef.current;
    const c = contentRef.current;
    if (!s || !c) return;
    const observer = new ResizeObserver(settle);
    observer.observe(c);
    observer.observe(s);

    const release = () => {
      if (isFollowing.current && s.scrollHeight > s.clientHeight + 1) become(false);
    };
    let reader = 0; // when the reader last moved it, so that the page's own moves and growth don't count
    const moves = () => (reader = performance.now());
    let holds = false; // the scrollbar, of whose being drawn only its scrolling tells
    const scrolled = () => {
      if (holds || performance.now() - reader < 1000) {
        if (isFollowing.current && !atEnd(s)) release();
        else if (!isFollowing.current && atEnd(s)) become(true);
      }
      mark();
      if (!isFollowing.current && s.scrollTop < 2 * s.clientHeight) top.current();
    };
    let touchStart = 0;
    const listeners: [keyof HTMLElementEventMap, (e: never) => void][] = [
      ["scroll", scrolled],
      ["wheel", (e: WheelEvent) => {
        moves();
        if (e.deltaY >= 0) return;
        release();
        if (s.scrollTop === 0) top.current(); // at the top no scroll event follows
      }],
      ["touchstart", (e: TouchEvent) => { touchStart = e.touches[0]?.clientY ?? 0; }],
      ["touchmove", (e: TouchEvent) => { moves(); if ((e.touches[0]?.clientY ?? 0) - touchStart > drag) release(); }],
      ["touchend", moves],
      ["click", (e: MouseEvent) => { if ((e.target as Element).closest('a[href^="#"]')) release(); }], // to another place of a text
      ["pointerdown", (e: PointerEvent) => { holds = e.target === s; if (holds) moves(); }],
      ["pointermove", (e: PointerEvent) => { if (e.buttons && e.target === s) moves(); }],
      ["keydown", (e: KeyboardEvent) => {
        if (!["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown", " "].includes(e.key)) return;
        moves();
        if (e.key === "PageUp" || e.key === "Home" || e.key === "ArrowUp") release();
        if (e.key === "End" && !(e.target as HTMLElement).closest("pre, .table")) toEnd();
      }],
    ];
    for (const [type, f] of listeners) s.addEventListener(type, f as EventListener, { passive: true });
    // A selection means that the user is reading it.
    const selected = () => {
      const sel = document.getSelection();
      if (sel && !sel.isCollapsed && s.contains(sel.anchorNode)) release();
    };
    document.addEventListener("selectionchange", selected);
    const letGo = () => {
      if (holds) moves();
      holds = false;
    };
    for (const type of ["pointerup", "pointercancel", "blur"]) addEventListener(type, letGo);
    return () => {
      observer.disconnect();
      for (const [type, f] of listeners) s.removeEventListener(type, f as EventListener);
      document.removeEventListener("selectionchange", selected);
      for (const type of ["pointerup", "pointercancel", "blur"]) removeEventListener(type, letGo);
    };
  }, [scrollerRef, contentRef, settle, mark, become, toEnd]);

  const hold = useCallback((element: Element, f: () => void) => {
    const s = scrollerRef.current;
    if (!s) return;
    const before = { top: element.getBoundingClientRect().top, height: s.scrollHeight };
    f();
    requestAnimationFrame(() => {
      if (!element.isConnected) return;
      s.scrollTop += element.getBoundingClientRect().top - before.top;
      // What is opened at the end is read: its head stays, not the end. Who folds it again is back there.
      if (isFollowing.current && !atEnd(s)) become(false);
      else if (!isFollowing.current && atEnd(s) && s.scrollHeight < before.height) become(true);
      mark();
    });
  }, [scrollerRef, become, mark]);
  const release = useCallback(() => become(false), [become]);
  const bring = useCallback((element: Element) => {
    const s = scrollerRef.current;
    if (!s) return;
    become(false);
    const box = element.getBoundingClientRect();
    const room = s.getBoundingClientRect();
    s.scrollTop += box.top - room.top - Math.max(0, (room.height - box.height) / 2);
    mark();
  }, [scrollerRef, become, mark]);
  const spot = useCallback(() => {
    const s = scrollerRef.current;
    if (!s || isFollowing.current) return undefined;
    const edge = s.getBoundingClientRect().top;
    for (const element of contentRef.current?.querySelectorAll<HTMLElement>(":scope > [data-message]") ?? []) {
      const box = element.getBoundingClientRect();
      if (box.bottom > edge) return { message: element.dataset["message"]!, top: box.top - edge };
    }
    return undefined;
  }, [scrollerRef, contentRef]);
  return { following, toEnd, hold, bring, release, spot };
}
