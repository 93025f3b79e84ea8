// Finds in a whole conversation: in what is held, and page by page in what is older. The browser's own find sees only what is drawn.

import type { Conversation, ConversationState } from "@leat/client";
import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";

import { say } from "../chat/speaker";
import { Icon } from "../ui/Icon";
import { mark, ranges, unmark } from "./mark";
import { type Hit, hits } from "./search";
import { target } from "./target";
import "./find.css";

/** How many messages a page brings, and after how many older ones the reader is asked before there are more. */
const page = 200;
const bound = 20_000;

export default function Find({ conversation, state, close }: { conversation: Conversation; state: ConversationState; close: () => void }) {
  const [text, setText] = useState("");
  const sought = useDeferredValue(text);
  const [now, setNow] = useState<Hit>();
  const [upTo, setUpTo] = useState(bound);
  const [error, setError] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const opener = useRef(document.activeElement);
  const { messages, earlier } = state;
  const found = useMemo(() => messages.flatMap((m) => hits(m, sought)), [messages, sought]);
  const same = (h: Hit) => now && h.message === now.message && h.nth === now.nth && h.folded === now.folded;
  const at = found.findIndex(same);
  // The newest hit is shown first. It stays selected while older ones are found.
  if (!sought.trim()) {
    if (now) setNow(undefined);
  } else if (at < 0 && found.length > 0) {
    setNow(found.at(-1));
  }
  useEffect(() => {
    if (now) target.set({ message: now.message });
  }, [now]);

  useEffect(() => {
    field.current?.focus();
    const back = opener.current;
    return () => {
      unmark();
      target.set(undefined);
      if (document.activeElement === document.body && back instanceof HTMLElement && back.isConnected) back.focus({ preventScroll: true });
    };
  }, []);

  // Older messages come while there is something to find.
  const looking = sought.trim() !== "" && earlier && messages.length < upTo && !error;
  const oldest = messages[0]?.id; // of the loaded messages: when it changes, the next page is loaded
  useEffect(() => {
    if (!looking) return;
    let wanted = true;
    conversation.loadEarlier(page).catch((err: Error) => {
      if (wanted) setError(err.message);
    });
    return () => {
      wanted = false;
    };
  }, [conversation, looking, oldest]);

  // What is drawn is marked, whenever that changes.
  useEffect(() => {
    const column = document.querySelector(".log > .column");
    if (!column) return;
    let frame = 0;
    const draw = () => {
      frame = 0;
      const all: Range[] = [];
      let current: Range | undefined;
      for (const article of column.querySelectorAll<HTMLElement>(":scope > article[data-message]")) {
        const there = ranges(article, sought);
        all.push(...there);
        const mine = !!now && article.dataset["message"] === now.message && sought.trim() !== "";
        article.classList.toggle("found", mine);
        if (mine && now.nth >= 0) current = there[Math.min(now.nth, there.length - 1)];
      }
      mark(all, current);
    };
    const later = () => { frame ||= requestAnimationFrame(draw); };
    const seen = new MutationObserver(later);
    seen.observe(column, { childList: true, subtree: true, characterData: true });
    draw();
    return () => {
      seen.disconnect();
      cancelAnimationFrame(frame);
      for (const a of column.querySelectorAll("article.found")) a.classList.remove("found");
    };
  }, [sought, now]);

  const go = (step: number) => {
    if (found.length === 0) return;
    setNow({ ...found[(at + step + found.length) % found.length]! }); // a copy, so that the same hit is shown again
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
  const words = !sought.trim() ? "" : found.length === 0 ? (looking ? "" : "No results") : `${at + 1} of ${found.length}${now?.folded ? `, in ${now.folded}` : ""}`;
  const how = !sought.trim() || !earlier ? "" : looking ? `${messages.length} messages searched so far…` : error ? `Only the newest ${messages.length} messages searched: ${error}` : `The newest ${messages.length} messages searched`;
  useEffect(() => {
    if (!words || looking) return;
    const t = setTimeout(() => say([words, how].filter(Boolean).join(". ")), 700); // when typing pauses
    return () => clearTimeout(t);
  }, [words, how, looking]);
  return (
    <search className="find" onKeyDown={keys}>
      <label className="seek"><Icon name="search" /><span className="unseen">Find in the conversation</span>
        <input ref={field} type="text" autoComplete="off" spellCheck={false} placeholder="Find in the conversation" value={text} onChange={(e) => { setText(e.target.value); setError(""); }} />
      </label>
      <span className="count">{words}</span>
      <button type="button" className="quiet" aria-label="Previous match" title="Previous match (Enter)" onClick={() => go(-1)}><span className="flip"><Icon name="down" /></span></button>
      <button type="button" className="quiet" aria-label="Next match" title="Next match (Shift+Enter)" onClick={() => go(1)}><Icon name="down" /></button>
      <button type="button" className="quiet" aria-label="Close" title="Close (Esc)" onClick={close}><Icon name="close" /></button>
      {how && <p className="muted">{how}{!looking && <> <button type="button" className="link" onClick={() => { setError(""); setUpTo(messages.length + bound); }}>Search older messages</button></>}</p>}
    </search>
  );
}
