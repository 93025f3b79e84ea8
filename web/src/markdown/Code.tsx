// A code block: its language, buttons for copying and wrapping, and syntax highlighting once it no longer grows. Formulas and
// diagrams are shown as source, with a label.

import { memo, type ReactNode, useEffect, useState } from "react";

import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import { plain } from "./lex";

/** Larger blocks are not highlighted, because that would block the page. Characters. */
const maxColoured = 20_000;

/**
 * Code is rendered in elements of at least this length, up to a line's end. When code grows, only the last element is laid out
 * again. Characters.
 */
const stretch = 4000;

const kinds: Record<string, string> = { math: "formula", latex: "formula", tex: "formula", katex: "formula", mermaid: "diagram", dot: "diagram", graphviz: "diagram", plantuml: "diagram", d2: "diagram" };

interface CodeProps { text: string; language: string; live: boolean }

export const Code = memo(function Code({ text, language, live }: CodeProps) {
  const name = plain(language.split(/[\s{,:]/)[0] ?? "");
  const kind = kinds[name.toLowerCase()];
  const label = kind ? (kind === "formula" ? kind : `${kind} · ${name}`) : name || "text";
  const [wrapped, wrap] = useState(!!kind);
  const coloured = useColours(text, name, live);
  return (
    <figure className="code" data-wrapped={wrapped || undefined}>
      <figcaption>
        <span>{label}</span>
        <button type="button" className="quiet" aria-pressed={wrapped} aria-label="Wrap lines" title="Wrap lines" onClick={() => wrap(!wrapped)}><Icon name="wrap" /></button>
        <CopyButton text={text} what="code" />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={name ? `Code, ${label}` : "Code"}><code>{coloured ?? pieces(text)}</code></pre>
    </figure>
  );
});

const Piece = memo(function Piece({ text }: { text: string }) {
  return <span className="piece">{plain(text)}</span>;
});

// Each piece begins a line. The line break between two pieces belongs to their elements, not to the text.
function pieces(text: string): ReactNode {
  if (text.length <= stretch) return plain(text);
  const nodes: ReactNode[] = [];
  let from = 0;
  while (from <= text.length) {
    let end = text.indexOf("\n", from + stretch);
    while (end > 0 && text[end - 1] === "\n") end = text.indexOf("\n", end + 1); // an empty line at the end of a piece would not be visible
    if (end < 0) end = text.length;
    nodes.push(<Piece key={from} text={text.slice(from, end)} />);
    from = end + 1;
  }
  return nodes;
}

/** Returns the highlighted text; undefined while the code grows, and for unknown languages. */
function useColours(text: string, language: string, isLive: boolean): ReactNode {
  const [colouring, setDone] = useState<{ text: string; nodes: ReactNode }>();
  useEffect(() => {
    if (isLive || !language || text.length > maxColoured) return;
    let isMounted = true;
    const idle = globalThis.requestIdleCallback ?? ((f: () => void) => setTimeout(f, 1));
    const stop = globalThis.cancelIdleCallback ?? clearTimeout;
    const ticket = idle(() => {
      void import("./colours").then(({ colour }) => {
        const nodes = isMounted && colour(text, language);
        if (nodes) setDone({ text, nodes });
      }).catch(() => {}); // the gateway can't be reached: the code stays without highlighting
    });
    return () => {
      isMounted = false;
      stop(ticket);
    };
  }, [text, language, isLive]);
  return colouring?.text === text ? colouring.nodes : undefined;
}
