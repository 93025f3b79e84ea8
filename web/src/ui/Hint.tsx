// A word that explains itself: a tooltip on hover, focus and touch. Escape hides it, and the pointer may move onto it.

import { type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";

import "./hint.css";

/** The distance to the edges of the window, and the delay before a word under the pointer explains itself. */
const margin = 8;
const delay = 200;

export function Hint({ text, children }: { text: string; children: ReactNode }) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const word = useRef<HTMLButtonElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const show = (after: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setOpen(true), after);
  };
  const hide = () => {
    clearTimeout(timer.current);
    setOpen(false);
  };
  useLayoutEffect(() => {
    const t = tip.current!;
    if (!isOpen) return;
    t.showPopover();
    const place = word.current!.getBoundingClientRect();
    const { width, height } = t.getBoundingClientRect();
    t.style.left = `${Math.max(margin, Math.min(place.left, innerWidth - width - margin))}px`;
    t.style.top = `${place.bottom + height + margin <= innerHeight ? place.bottom : Math.max(0, place.top - height)}px`;
    // Before anything else: Escape would close the panel around the word.
    const escape = (e: KeyboardEvent) => {
      if (e.key !== "Escape") return;
      e.preventDefault();
      e.stopImmediatePropagation();
      setOpen(false);
    };
    const scroll = () => setOpen(false);
    document.addEventListener("keydown", escape, true);
    document.addEventListener("scroll", scroll, true);
    return () => {
      document.removeEventListener("keydown", escape, true);
      document.removeEventListener("scroll", scroll, true);
      if (t.isConnected) t.hidePopover();
    };
  }, [isOpen]);
  return (
    <span className="hint" onPointerEnter={(e) => { if (e.pointerType !== "touch") show(delay); }} onPointerLeave={(e) => { if (e.pointerType !== "touch" && document.activeElement !== word.current) hide(); }}>
      <button ref={word} type="button" aria-describedby={id} onFocus={() => show(0)} onBlur={hide} onClick={() => show(0)}>{children}</button>
      <span ref={tip} id={id} role="tooltip" popover="manual">{text}</span>
    </span>
  );
}
