// Searches a whole conversation: first the loaded messages, then older ones page by page. The browser's own search sees only
// rendered messages.

import type { Conversation, ConversationState } from "@leat/client";
import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";

import { say } from "../chat/speaker";
import { Icon } from "../ui/Icon";
import { mark, ranges, unmark } from "./mark";
import { type Hit, hits } from "./search";
import { target } from "./target";
import "./find.css";

/** The number of messages in a page, and after how many the user is asked before older ones are searched. */
const page = 200;
const maxMessages = 20_000;

export default function Find({ conversation, state, close }: { conversation: Conversation; state: ConversationState; close: () => void }) {
  const [text, setText] = useState("");
  const query = useDeferredValue(text);
  const [selection, setNow] = useState<Hit>();
  const [upTo, setUpTo] = useState(maxMessages);
  const [error, setError] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const opener = useRef(document.activeElement);
  const { messages, earlier } = state;
  const matches = useMemo(() => messages.flatMap((m) => hits(m, query)), [messages, query]);
  const isSelected = (h: Hit) => selection && h.message === selection.message && h.nth === selection.nth && h.folded === selection.folded;
  const at = matches.findIndex(isSelected);
  // The newest hit is shown first. It stays selected while older ones are found.
  if (!query.trim()) {
    if (selection) setNow(undefined);
  } else if (at < 0 && matches.length > 0) {
    setNow(matches.at(-1));
  }
  useEffect(() => {
    if (selection) target.set({ message: selection.message });
  }, [selection]);

  useEffect(() => {
    field.current?.focus();
    const focusTarget = opener.current;
    return () => {
      unmark();
      target.set(undefined);
      if (document.activeElement === document.body && focusTarget instanceof HTMLElement && focusTarget.isConnected) focusTarget.focus({ preventScroll: true });
    };
  }, []);

  // Older messages are loaded while the search is active.
  const isSearching = query.trim() !== "" && earlier && messages.length < upTo && !error;
  const oldest = messages[0]?.id; // of the loaded messages: when it changes, the next page is loaded
  useEffect(() => {
    if (!isSearching) return;
    let isMounted = true;
    conversation.loadEarlier(page).catch((err: Error) => {
      if (isMounted) setError(err.message);
    });
    return () => {
      isMounted = false;
    };
  }, [conversation, isSearching, oldest]);

  // Highlight the rendered hits again when the log renders other messages.
  useEffect(() => {
    const column = document.querySelector(".log > .column");
    if (!column) return;
    let frame = 0;
    const draw = () => {
      frame = 0;
      const highlights: Range[] = [];
      let current: Range | undefined;
      for (const article of column.querySelectorAll<HTMLElement>(":scope > article[data-message]")) {
        const there = ranges(article, query);
        highlights.push(...there);
        const isCurrent = !!selection && article.dataset["message"] === selection.message && query.trim() !== "";
        article.classList.toggle("found", isCurrent);
        if (isCurrent && selection.nth >= 0) current = there[Math.min(selection.nth, there.length - 1)];
      }
      mark(highlights, current);
    };
    const scheduleDraw = () => { frame ||= requestAnimationFrame(draw); };
    const observer = new MutationObserver(scheduleDraw);
    observer.observe(column, { childList: true, subtree: true, characterData: true });
    draw();
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      for (const a of column.querySelectorAll("article.found")) a.classList.remove("found");
    };
  }, [query, selection]);

  const go = (step: number) => {
    if (matches.length === 0) return;
    setNow({ ...matches[(at + step + matches.length) % matches.length]! }); // a copy, so that the same hit is shown again
  };
  const keys = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing || e.keyCode === 229) return;
    if (e.key === "Escape") close();
    else if (e.key === "Enter") go(e.shiftKey ? 1 : -1);
    else if (e.key === "ArrowUp" && e.target === field.current) go(-1);
    else if (e.key === "ArrowDown" && e.target === field.current) go(1);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const words = !query.trim() ? "" : matches.length === 0 ? (isSearching ? "" : "No results") : `${at + 1} of ${matches.length}${selection?.folded ? `, in ${selection.folded}` : ""}`;
  const progress = !query.trim() || !earlier ? "" : isSearching ? `${messages.length} messages searched so far…` : error ? `Only the newest ${messages.length} messages searched: ${error}` : `The newest ${messages.length} messages searched`;
  useEffect(() => {
    if (!words || isSearching) return;
    const t = setTimeout(() => say([words, progress].filter(Boolean).join(". ")), 700); // announce after a pause in typing
    return () => clearTimeout(t);
  }, [words, progress, isSearching]);
  return (
    <search className="find" onKeyDown={keys}>
      <label className="seek"><Icon name="search" /><span className="unseen">Find in the conversation</span>
        <input ref={field} type="text" autoComplete="off" spellCheck={false} placeholder="Find in the conversation" value={text} onChange={(e) => { setText(e.target.value); setError(""); }} />
      </label>
      <span className="count">{words}</span>
      <button type="button" className="quiet" aria-label="Previous match" title="Previous match (Enter)" onClick={() => go(-1)}><span className="flip"><Icon name="down" /></span></button>
      <button type="button" className="quiet" aria-label="Next match" title="Next match (Shift+Enter)" onClick={() => go(1)}><Icon name="down" /></button>
      <button type="button" className="quiet" aria-label="Close" title="Close (Esc)" onClick={close}><Icon name="close" /></button>
      {progress && <p className="muted">{progress}{!isSearching && <> <button type="button" className="link" onClick={() => { setError(""); setUpTo(messages.length + maxMessages); }}>Search older messages</button></>}</p>}
    </search>
  );
}
