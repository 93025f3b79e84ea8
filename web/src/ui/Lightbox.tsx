// A picture in its full size, on top of the page.

import { useState } from "react";

import { Icon } from "./Icon";
import { Sheet } from "./Sheet";

export default function Lightbox({ src, alt, close }: { src: string; alt: string; close: () => void }) {
  const [isActual, setActual] = useState(false);
  const isData = src.startsWith("data:");
  return (
    <Sheet name={alt || "Picture"} className="lightbox" close={close}>
      <div className="frame" data-actual={isActual || undefined} tabIndex={0} role="group" aria-label="Picture"><img src={src} alt={alt} /></div>
      <footer>
        <button type="button" aria-pressed={isActual} onClick={() => setActual(!isActual)}><Icon name="search" /> Actual size</button>
        <a className="button" href={isData ? src : `${src}?download=${encodeURIComponent(alt || "picture")}`} download={alt || "picture"}><Icon name="save" /> Download</a>
        {!isData && <a className="button" href={src} target="_blank" rel="noopener noreferrer"><Icon name="out" /> Open in a new tab</a>}
      </footer>
    </Sheet>
  );
}
