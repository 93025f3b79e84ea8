// Renders Markdown, also while it grows. Elements are created from tokens, never from HTML: HTML in a text is shown as text.

import type { Token, Tokens } from "marked";
import { memo, type MouseEvent, useEffect, useReducer, useRef } from "react";

import { Block, Blocks } from "./Block";
import { Growing } from "./growing";
import { type Footnote, isBlank, placeOf } from "./lex";

// Incomplete syntax at the end of a growing text is hidden for a moment, so the result depends on the time.
const readNow = (growing: Growing, text: string, isLive: boolean): Token[] => growing.parse(text, isLive, performance.now());

/** A text in Markdown. live means that it is still growing. */
export const Markdown = memo(function Markdown({ text, live }: { text: string; live: boolean }) {
  const ref = useRef<Growing>(null);
  const growing = (ref.current ??= new Growing());
  const [, rerender] = useReducer((n: number) => n + 1, 0);
  const tokens = readNow(growing, text, live);
  const { shows, definitions } = growing;
  useEffect(() => {
    if (!shows) return;
    const t = setTimeout(rerender, Math.max(0, shows - performance.now()) + 1);
    return () => clearTimeout(t);
  }, [shows]);
  const last = tokens.findLastIndex((t) => t.type !== "space");
  const levels = outline(tokens);
  const notes = tokens.filter((t) => t.type === "footnote");
  return (
    <div className="markdown" data-len={text.length} onClick={follow}>
      {tokens.map((t, i) => (t.type === "space" || t.type === "def" || t.type === "footnote" ? null : <Block key={i} token={t} depth={0} definitions={definitions} live={live && i === last} level={levels[i] ?? 0} />))}
      {notes.length > 0 && <Notes notes={notes} definitions={definitions} live={live} />}
    </div>
  );
});

/**
 * Returns the level in the page of each heading among the tokens: the first ones are below the message's own, and none is skipped,
 * whatever levels the text uses. Later tokens don't change earlier levels.
 */
function outline(tokens: readonly Token[]): number[] {
  const above: number[] = []; // the depths of the headings that the current one is under
  return tokens.map((t) => {
    if (t.type !== "heading" || isBlank(t)) return 0;
    const { depth } = t as Tokens.Heading;
    while (above.length > 0 && above.at(-1)! >= depth) above.pop();
    above.push(depth);
    return Math.min(6, above.length + 2);
  });
}

// Footnotes are rendered at the end, in the order of their definitions and with their own labels. If they were numbered, the
// numbers would change while the text grows.
function Notes({ notes, definitions, live }: { notes: Token[]; definitions: number; live: boolean }) {
  return (
    <section className="notes" aria-label="Notes">
      <ul>{notes.map((t, i) => <Note key={i} note={t as unknown as Footnote} definitions={definitions} live={live && i === notes.length - 1} />)}</ul>
    </section>
  );
}

function Note({ note, definitions, live }: { note: Footnote; definitions: number; live: boolean }) {
  return (
    <li data-note={note.label} tabIndex={-1}>
      <span className="label">{note.label}</span>
      <div><Blocks tokens={note.tokens} depth={1} definitions={definitions} live={live} /></div>
      <a className="back" href={`#ref-${note.label}`} data-to={note.label} role="doc-backlink" aria-label={`Back to reference ${note.label}`}>↩</a>
    </li>
  );
}

/** Returns the anchor of a heading, as on GitHub. */
const slug = (text: string): string => text.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");

// follow scrolls to a footnote, a reference or a heading of this text, without changing the page's URL.
function follow(e: MouseEvent<HTMLElement>): void {
  const link = (e.target as Element).closest<HTMLElement>('a[href^="#"]');
  if (!link) return;
  e.preventDefault();
  const within = [...e.currentTarget.querySelectorAll<HTMLElement>("[data-note], [data-ref], h3, h4, h5, h6, .heading")];
  const { ref, to } = link.dataset;
  const name = placeOf(link.getAttribute("href")!);
  const isHeading = (w: HTMLElement) => w.matches("h3, h4, h5, h6, .heading") && slug(w.textContent) === name.toLowerCase();
  const place = within.find((w) => (ref ? w.dataset.note === ref : to ? w.dataset.ref === to : isHeading(w)));
  if (!place) return;
  place.scrollIntoView({ block: "nearest" });
  if (place.tabIndex < 0) place.tabIndex = -1;
  place.focus({ preventScroll: true });
}
