import { type CSSProperties, lazy, type ReactNode, useState } from "react";

import { LazyPart } from "./LazyPart";

const Lightbox = lazy(() => import("./Lightbox"));

/** A picture that opens in a lightbox. */
export function Enlargeable({ className, src, alt, style, children }: { className: string; src: string; alt: string; style?: CSSProperties | undefined; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={`enlarge ${className}`} style={style} data-sized={!!style || undefined} aria-haspopup="dialog" aria-label={`Enlarge ${alt || "the picture"}`} onClick={() => setOpen(true)}>{children}</button>
      {isOpen && <LazyPart of={src}><Lightbox src={src} alt={alt} close={() => setOpen(false)} /></LazyPart>}
    </>
  );
}
