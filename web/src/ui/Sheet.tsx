// A layer on top of the page. The page below is inert, except for the announcer, which a modal dialog of the browser would silence.
// Closing returns the focus.

import { type ReactNode, useLayoutEffect, useRef } from "react";
import { createPortal } from "react-dom";

import { Icon } from "./Icon";
import "./sheet.css";

interface SheetProps { name: string; className?: string; close: () => void; children: ReactNode }

export function Sheet({ name, className = "", close, children }: SheetProps) {
  const sheet = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const page = document.getElementById("root")!;
    const opener = document.activeElement;
    page.inert = true;
    const s = sheet.current!;
    (s.querySelector<HTMLElement>("[data-first]") ?? s).focus();
    return () => {
      page.inert = false;
      // If the opener was removed, focus the composer.
      const focusTarget = opener instanceof HTMLElement && opener !== document.body && opener.isConnected ? opener : document.getElementById("composer");
      if (document.activeElement === document.body || s.contains(document.activeElement)) focusTarget?.focus({ preventScroll: true });
    };
  }, []);
  return createPortal(
    <div className="over" onMouseDown={(e) => { if (e.target === e.currentTarget) close(); }}>
      <dialog ref={sheet} open className={`sheet ${className}`} role="dialog" aria-modal="true" aria-label={name} tabIndex={-1} onKeyDown={(e) => {
        if (e.key === "Escape" && !e.nativeEvent.isComposing) {
          e.preventDefault();
          e.stopPropagation();
          close();
        }
      }}>
        {className !== "palette" && <header role="none"><h2>{name}</h2><button type="button" className="quiet" aria-label="Close" onClick={close}><Icon name="close" /></button></header>}
        {children}
      </dialog>
    </div>, document.body);
}
