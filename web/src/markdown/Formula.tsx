// A formula. The part of its text that can’t be drawn, or not yet, is shown as source.

import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";

import { Store, useStore } from "../store";
import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import { plain } from "./safe";

type Maths = typeof import("./maths");

const maths = new Store<Maths | undefined>(undefined);
let pendingLoad: Promise<void> | undefined;

function load(): void {
  pendingLoad ??= import("./maths").then((m) => maths.set(m), () => {
    pendingLoad = undefined; // the gateway can't be reached: the next formula tries again
  });
}

interface FormulaProps { text: string; isBlock: boolean; live: boolean }

const Drawing = memo(function Drawing({ text, isBlock, live }: FormulaProps) {
  const drawer = useStore(maths);
  const host = useRef<HTMLSpanElement>(null);
  const [isWide, setWide] = useState(false); // an inline formula wider than the text is shown as a block that scrolls
  const [drawnText, setDrawn] = useState(""); // the text of what is shown in host
  useEffect(load, []);
  useLayoutEffect(() => {
    if (!drawer) return;
    // What is drawn depends on whether KaTeX accepts the text, and while a formula grows also on its earlier text.
    if (drawer.draw(host.current!, text, isBlock)) {
      setDrawn(text);
      if (!isBlock) {
        host.current!.hidden = false; // to measure it
        setWide(host.current!.scrollWidth > host.current!.clientWidth + 1);
      }
    } else setDrawn((before) => (live && text.startsWith(before) ? before : ""));
  }, [drawer, text, isBlock, live]);
  const isShown = drawnText !== "" && text.startsWith(drawnText);
  const source = isShown ? text.slice(drawnText.length) : text;
  return (
    <>
      <span ref={host} className="drawn" hidden={!isShown} {...(isWide && { "data-wide": true, tabIndex: 0, role: "group", "aria-label": "Formula, scrollable" })} />
      {source && <code className="math">{plain(source)}</code>}
    </>
  );
});

/** A formula within a line. */
export function Formula({ text }: { text: string }) {
  return <span className="formula" title={plain(text)}><Drawing text={text} isBlock={false} live={false} /></span>;
}

/** A formula on lines of its own, with its source on demand. */
export function FormulaBlock({ text, live }: { text: string; live: boolean }) {
  const [isSource, setSource] = useState(false);
  return (
    <div className="formula-block" role="group" aria-label="Formula">
      <div className="view" tabIndex={0} role="group" aria-label="Formula, scrollable" hidden={isSource}><Drawing text={text} isBlock live={live} /></div>
      {isSource && <pre tabIndex={0} role="group" aria-label="Source of the formula"><code>{plain(text)}</code></pre>}
      <div className="acts">
        <button type="button" className="quiet" aria-pressed={isSource} aria-label="Source" title="Source" onClick={() => setSource(!isSource)}><Icon name="code" /></button>
        <CopyButton text={text} what="formula" />
      </div>
    </div>
  );
}
