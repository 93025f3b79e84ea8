// A diagram in the language of Mermaid. It is drawn in a sandboxed frame, which loads Mermaid when the first diagram is shown.

import { useEffect, useRef, useState } from "react";

import { useStore } from "../store";
import { theme } from "../theme";
import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import { limitHeight, type Post, Sandbox } from "../ui/Sandbox";
import { plain } from "./safe";

/** Longer diagrams are shown as source. Characters. */
const longest = 50_000;

interface Drawing { text: string; height: number }

export function Diagram({ text, live }: { text: string; live: boolean }) {
  const shownTheme = useStore(theme);
  const [isSource, setSource] = useState(false);
  const [drawing, setDrawing] = useState<Drawing>();
  const [failure, setFailure] = useState<{ text: string; message: string }>();
  const post = useRef<Post>(undefined);
  const request = useRef({ text: "", theme: "", isOpen: false }); // what the frame was asked to draw last, and whether it hasn't answered
  const next = useRef({ text, theme: shownTheme });
  const ask = () => {
    const { text: nextText, theme: nextTheme } = next.current;
    const last = request.current;
    if (!post.current || last.isOpen || (last.text === nextText && last.theme === nextTheme)) return;
    request.current = { text: nextText, theme: nextTheme, isOpen: true };
    post.current({ type: "draw", text: nextText, theme: nextTheme });
  };
  useEffect(() => {
    next.current = { text, theme: shownTheme };
    if (text.length <= longest) ask();
  });
  const receive = (m: Record<string, unknown>, answer: Post) => {
    const height = limitHeight(m.height);
    if (m.type === "ready") {
      post.current = answer;
      request.current = { text: "", theme: "", isOpen: false };
    } else if (m.type === "resized" && height !== undefined) {
      setDrawing((d) => d && { ...d, height });
    } else if (m.type === "drawn" && height !== undefined) {
      setDrawing({ text: request.current.text, height });
      request.current.isOpen = false;
    } else if (m.type === "failed") {
      setFailure({ text: request.current.text, message: String(m.message).slice(0, 300) });
      request.current.isOpen = false;
    }
    ask();
  };
  const isShown = !!drawing && text.startsWith(drawing.text) && (live || drawing.text === text);
  const source = isShown && !isSource ? text.slice(drawing.text.length).trim() : text;
  const isBroken = !live && !isShown && failure?.text === text;
  return (
    <figure className="code diagram" data-drawn={isShown || undefined}>
      <figcaption>
        <span>diagram · mermaid</span>
        <button type="button" className="quiet" aria-pressed={isSource} aria-label="Source" title="Source" onClick={() => setSource(!isSource)}><Icon name="code" /></button>
        <CopyButton text={text} what="diagram" />
      </figcaption>
      {text.length <= longest && <Sandbox document="diagram" title="Diagram" height={drawing?.height ?? 0} hidden={!isShown || isSource} receive={receive} />}
      {source && <pre tabIndex={0} role="group" aria-label="Source of the diagram"><code>{plain(source)}</code></pre>}
      {isBroken && !isSource && <p className="muted">This diagram can’t be drawn; its source is shown. <span className="unseen">{plain(failure.message)}</span></p>}
    </figure>
  );
}
