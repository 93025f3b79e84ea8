// The log of a conversation: its messages, the newest at the end.

import { type Conversation, type ConversationState, independent, type Message as ChatMessage, type NewMessage, type Pending, type Turn } from "@leat/client";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { target } from "../find/target";
import { list } from "../list";
import { useStore } from "../store";
import { Icon } from "../ui/Icon";
import { Activity } from "./Activity";
import { Message } from "./Message";
import { around, answerless, type Around } from "./nesting";
import type { Hold } from "./parts/Fold";
import { line } from "./parts/marks";
import { bookmark, saveBookmark } from "./places";
import { Answers, Requests } from "./Requests";
import { useScroll } from "./scroll";
import { TurnEnd } from "./TurnEnd";
import { focusLog, walk } from "./walk";
import { earlier, showLater as showNext, near, place, type Stretch } from "./window";

interface LogProps {
  conversation: Conversation; state: ConversationState;
  editing: string; // the id of the message that is being edited, or ""
  edit: (m: ChatMessage | undefined) => void;
  resend: (id: string, message?: NewMessage) => Promise<void>;
  change: (m: ChatMessage) => void;
  inspect: (turn: string) => void;
}

export function Log({ conversation, state, editing, edit, resend, change, inspect }: LogProps) {
  const scroller = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { messages, turns } = state;
  const [bookmarked] = useState(() => bookmark(conversation.id, messages));
  const [stretch, setStretch] = useState<Stretch>(bookmarked?.stretch ?? {});
  const loading = useRef(false);
  const [loadError, setLoadError] = useState(""); // why older messages could not be loaded
  const [newestRead, setNewestRead] = useState(bookmarked?.newest); // the newest message when the reader left the end
  const latest = useRef({ from: 0, to: 0, stretch, newestRead }); // values of the last render, for event listeners

  const showEarlier = useCallback(() => {
    if (latest.current.from > 0) {
      setStretch(earlier(latest.current, conversation.state.messages));
      return;
    }
    if (!conversation.state.earlier || loading.current) return;
    loading.current = true;
    // The loaded messages are inserted above the shown ones. They stay hidden until the reader scrolls up to them.
    setStretch((s) => ({ ...s, first: conversation.state.messages[0]?.id }));
    conversation.loadEarlier()
      .then(() => {
        setLoadError("");
        setStretch(earlier(place(latest.current.stretch, conversation.state.messages, false), conversation.state.messages));
      })
      .catch((err: Error) => setLoadError(err.message)) // scrolling up again retries
      .finally(() => { loading.current = false; });
  }, [conversation]);
  const scroll = useScroll(scroller, content, showEarlier, bookmarked?.spot);
  const [wasFollowing, setWasFollowing] = useState(scroll.following);
  if (wasFollowing !== scroll.following) {
    setWasFollowing(scroll.following);
    if (scroll.following) {
      setStretch({ ...stretch, last: undefined });
    } else {
      // Fix the beginning, so that messages that arrive at the end don't push out the ones being read.
      if (stretch.first === undefined) setStretch({ ...stretch, first: messages[place(stretch, messages, wasFollowing).from]?.id });
      setNewestRead(messages.at(-1)?.id);
    }
  }

  // A search result is shown with the messages around it.
  const hit = useStore(target);
  const [shownTarget, setShownTarget] = useState<typeof hit>();
  if (shownTarget !== hit) {
    setShownTarget(hit);
    const i = hit ? messages.findIndex((m) => m.id === hit.message) : -1;
    if (i >= 0) setStretch(near(i, messages));
  }

  // A message that the user sends is shown at the end.
  const lastSent = state.pending.at(-1)?.key;
  const [shownSent, setShownSent] = useState<string>();
  if (shownSent !== lastSent) {
    setShownSent(lastSent);
    if (lastSent) setStretch({});
  }

  const range = place(stretch, messages, scroll.following);
  useLayoutEffect(() => {
    latest.current = { from: range.from, to: range.to, stretch, newestRead };
  });

  // Remember the place of a reader who leaves for another conversation.
  const { spot: currentSpot } = scroll;
  useLayoutEffect(() => () => {
    const spot = currentSpot();
    const { messages: loaded } = conversation.state;
    const { from, to, newestRead: newest } = latest.current;
    saveBookmark(conversation.id, spot && { spot, newest, stretch: { first: loaded[from]?.id, last: to < loaded.length ? loaded[to - 1]?.id : undefined } });
  }, [conversation, currentSpot]);

  const bringing = useRef<typeof hit>(undefined);
  const { bring, release, toEnd } = scroll;
  useLayoutEffect(() => {
    const loaded = hit && conversation.state.messages.some((m) => m.id === hit.message);
    bringing.current = loaded ? hit : undefined;
    if (loaded) release();
  }, [conversation, hit, release]);
  // While the log follows its end, the message may not be rendered yet.
  useLayoutEffect(() => {
    const element = bringing.current && content.current?.querySelector(`:scope > [data-message="${CSS.escape(bringing.current.message)}"]`);
    if (!element || scroll.following || stretch.first === undefined) return;
    bringing.current = undefined;
    bring(element);
  }, [stretch, scroll.following, bring]);
  useEffect(() => {
    if (lastSent) toEnd();
  }, [lastSent, toEnd]);

  // Near the end of a stretch that stops before the newest message, show more of the log.
  useEffect(() => {
    const s = scroller.current;
    if (!s || range.to >= messages.length) return;
    const showLater = () => {
      if (s.scrollHeight - s.scrollTop - s.clientHeight < 2 * s.clientHeight) setStretch(showNext(latest.current, conversation.state.messages));
    };
    s.addEventListener("scroll", showLater, { passive: true });
    return () => s.removeEventListener("scroll", showLater);
  }, [conversation, range.to, messages.length]);

  const unread = scroll.following ? 0 : messages.length - 1 - messages.findLastIndex((m) => m.id === newestRead);

  const turnOf = useMemo(() => new Map(turns.map((t) => [t.id, t])), [turns]);
  const lastOf = useMemo(() => lastMessages(messages), [messages]);
  const endedCount = turns.filter((t) => t.state === "ended").length;
  const isRunning = turns.some((t) => t.state !== "ended" && independent(t));
  const total = state.earlier ? -1 : messages.length;
  // Pending messages are rendered in their final place, so that the same element later shows the stored message.
  const rows: { message: ChatMessage; pending?: Pending }[] = messages.slice(range.from, range.to).map((message) => ({ message }));
  if (range.to === messages.length) for (const p of state.pending) rows.push({ message: asMessage(p), pending: p });
  const without = useMemo(() => answerless(turns, messages, lastOf), [turns, messages, lastOf]);
  const atEnd = range.to === messages.length;
  const newest = rows.at(-1)?.message.id;
  const isNamed = useStore(list).agents.length > 1;
  const firstOf = useMemo(() => firstMessages(messages), [messages]);

  return (
    <div className="log-frame">
      <section ref={scroller} className="log" role="log" aria-label="Conversation" aria-live="off" tabIndex={0} data-ended={endedCount} data-open={turns.length - endedCount} onKeyDown={(e) => walk(e.nativeEvent, scroller.current, content.current)} onFocus={(e) => focusLog(e.nativeEvent, scroller.current)}>
        <div ref={content} className="column">
          {range.from === 0 && state.earlier && loadError && <p className="note bad" role="alert">Couldn’t load earlier messages: {line(loadError)}</p>}
          {range.from === 0 && state.earlier && <button type="button" className="quiet wide" onClick={showEarlier}>{loadError ? "Try again" : "Earlier messages"}</button>}
          {state.phase === "loading" && rows.length === 0 && <Loading />}
          {rows.flatMap(({ message: m, pending }, i) => {
            const turn = m.turn ? turnOf.get(m.turn) : undefined;
            return [
              <Message key={m.id} conversation={conversation} message={m} pending={pending} turn={turn} targetTurn={m.stateTurn ? turnOf.get(m.stateTurn) : undefined} {...(turn?.parent ? around(turn, turnOf) : alone)}
                last={!!m.turn && lastOf.get(m.turn) === m.id} newest={atEnd && m.id === newest && !pending} named={isNamed && !!m.turn && firstOf.get(m.turn) === m.id} editing={m.id === editing && !pending} place={total < 0 ? -1 : range.from + i + 1} total={total} busy={isRunning} edit={edit} resend={resend} change={change} inspect={inspect} hold={scroll.hold} />,
              ...(without.after.get(m.id) ?? []).map((t) => <Answerless key={t.id} turn={t} at={around(t, turnOf)} again={atEnd && m.id === newest && !isRunning ? () => void resend(m.id).catch(() => {}) : undefined} hold={scroll.hold} />),
            ];
          })}
          {atEnd && without.end.map((t) => <Answerless key={t.id} turn={t} at={around(t, turnOf)} hold={scroll.hold} />)}
          {state.phase !== "loading" && <Requests conversation={conversation} turns={turns} messages={messages} />}
        </div>
      </section>
      {!scroll.following && !(scroll.fits && atEnd) && (
        <button type="button" className="to-end" onClick={() => { setStretch({}); scroll.toEnd(); }}>
          <Icon name="down" /> {unread > 0 ? `${unread} new` : "Jump to end"}{isRunning && " · answering"}
        </button>
      )}
    </div>
  );
}

const asMessages = new WeakMap<Pending, ChatMessage>();

function asMessage(p: Pending): ChatMessage {
  let m = asMessages.get(p);
  if (!m) {
    const parts = [...(p.message.text ? [{ kind: "text" as const, text: p.message.text }] : []), ...(p.message.parts ?? [])];
    m = { id: p.message.id ?? p.key, role: "user", at: p.at, ended: true, parts: parts.map((part, i) => ({ id: `p${i + 1}`, ...part })) };
    asMessages.set(p, m);
  }
  return m;
}

const alone: Around = {};

// A turn that has no message, or none yet.
function Answerless({ turn, at, again, hold }: { turn: Turn; at: Around; again?: (() => void) | undefined; hold: Hold }) {
  return (
    <article className="message assistant" data-depth={at.depth ? Math.min(at.depth, 3) : undefined} aria-label="Answer" aria-busy={turn.state !== "ended"} tabIndex={-1}>
      <Answers turn={turn} />
      {turn.state === "ended" ? <TurnEnd turn={turn} said={false} again={again} hold={hold} /> : <Activity turn={turn} />}
    </article>
  );
}

// Placeholder lines. CSS shows them only if loading takes longer than a moment.
function Loading() {
  return <div className="loading" aria-hidden="true">{[60, 92, 84, 40].map((w) => <i key={w} data-width={w} />)}</div>;
}

/** The first message of each turn. */
function firstMessages(messages: readonly ChatMessage[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const m of messages) if (m.turn && m.role !== "user" && !ids.has(m.turn)) ids.set(m.turn, m.id);
  return ids;
}

/** The last message of each turn. */
function lastMessages(messages: readonly ChatMessage[]): Map<string, string> {
  const last = new Map<string, string>();
  for (const m of messages) if (m.turn && m.role !== "user") last.set(m.turn, m.id);
  return last;
}
