// Scrolling of the log. The page scrolls while it follows the end; once the reader has scrolled away, only the reader does. New
// content never changes who scrolls.

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

const atEnd = (s: Element): boolean => s.scrollHeight - s.scrollTop - s.clientHeight <= 1;

/** The movement in pixels after which a touch counts as scrolling. */
const drag = 8;

/** A reading position: the first visible message, and the distance of its top edge from the scroller's, in pixels. */
export interface Spot { message: string; top: number }

export interface Scroll {
  /** The end is kept in view. */
  following: boolean;
  /** Everything fits without scrolling. */
  fits: boolean;
  /** Scrolls to the end and follows it. */
  toEnd: () => void;
  /** Keeps an element's position on the screen while f changes heights above or inside it. */
  hold: (element: Element, f: () => void) => void;
  /** Stops following and scrolls an element to the middle. */
  bring: (element: Element) => void;
  /** Stops following. */
  release: () => void;
  /** Returns the reading position, or undefined at the end. */
  spot: () => Spot | undefined;
}

/**
 * Manages a scroller with growing content. It starts at the end, or at a given position. onTop is called when the reader approaches
 * the beginning.
 */
export function useScroll(scrollerRef: RefObject<HTMLElement | null>, contentRef: RefObject<HTMLElement | null>, onTop: () => void, begin?: Spot): Scroll {
  const [start] = useState(begin);
  const [following, setFollowing] = useState(!begin);
  const [fits, setFits] = useState(true);
  const isFollowing = useRef(!begin); // the current value of following, for event listeners
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

  // mark remembers the first visible message, which keeps its position if heights above it change.
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
    setFits(s.scrollHeight <= s.clientHeight + 1);
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
    else if (start) queueMicrotask(() => become(true)); // the message no longer exists: start at the end
  }, [scrollerRef, contentRef, start, become]);
  useLayoutEffect(() => settle()); // after each render
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
    let reader = 0; // the time of the reader's last scroll action, to tell it from scrolling by the page and by growth
    const moves = () => (reader = performance.now());
    let holds = false; // the reader drags the scrollbar, which only scroll events show
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
        if (s.scrollTop === 0) top.current(); // no scroll event follows at the top
      }],
      ["touchstart", (e: TouchEvent) => { touchStart = e.touches[0]?.clientY ?? 0; }],
      ["touchmove", (e: TouchEvent) => { moves(); if ((e.touches[0]?.clientY ?? 0) - touchStart > drag) release(); }],
      ["touchend", moves],
      ["click", (e: MouseEvent) => { if ((e.target as Element).closest('a[href^="#"]')) release(); }], // a link to another place of the page
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
      // A detail expanded at the end of the log is being read: keep its top in view instead of the end. Collapsing it returns to
      // the end.
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
  return { following, fits, toEnd, hold, bring, release, spot };
}
