import { lazy, type ReactNode, useState } from "react";

import { LazyPart } from "./LazyPart";

const Lightbox = lazy(() => import("./Lightbox"));

/** A picture that opens in a lightbox. */
export function Enlargeable({ className, src, alt, children }: { className: string; src: string; alt: string; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={`enlarge ${className}`} aria-haspopup="dialog" aria-label={`Enlarge ${alt || "the picture"}`} onClick={() => setOpen(true)}>{children}</button>
      {isOpen && <LazyPart of={src}><Lightbox src={src} alt={alt} close={() => setOpen(false)} /></LazyPart>}
    </>
  );
}
