// The log of a conversation: its messages, the newest at the end.

import { type Conversation, type ConversationState, independent, type Message as Held, type Pending, type Turn } from "@leat/client";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { target } from "../find/target";
import { useStore } from "../store";
import { Icon } from "../ui/Icon";
import { Alive } from "./Alive";
import { Message } from "./Message";
import { around, answerless, type Around } from "./nesting";
import type { Hold } from "./parts/Fold";
import { line } from "./parts/marks";
import { bookmark, keep } from "./places";
import { Answers, Requests } from "./Requests";
import { useScroll } from "./scroll";
import { TurnEnd } from "./TurnEnd";
import { entered, walk } from "./walk";
import { earlier, later, near, place, type Stretch } from "./window";

interface LogProps { conversation: Conversation; state: ConversationState; edit: (m: Held) => void; change: (m: Held) => void; inspect: (turn: string) => void }

export function Log({ conversation, state, edit, change, inspect }: LogProps) {
  const scroller = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { messages, turns } = state;
  const [begin] = useState(() => bookmark(conversation.id, messages));
  const [stretch, setStretch] = useState<Stretch>(begin?.stretch ?? {});
  const loading = useRef(false);
  const [missed, setMissed] = useState(""); // why older messages did not come
  const at = useRef({ from: 0, to: 0 });

  const more = useCallback(() => {
    if (at.current.from > 0) {
      setStretch(earlier(at.current, conversation.state.messages));
      return;
    }
    if (!conversation.state.earlier || loading.current) return;
    loading.current = true;
    // What comes is before what is shown, and is shown when the reader gets there.
    setStretch((s) => ({ ...s, first: conversation.state.messages[0]?.id }));
    conversation.loadEarlier()
      .then(() => {
        setMissed("");
        setStretch(earlier(place(stretchNow.current, conversation.state.messages, false), conversation.state.messages));
      })
      .catch((err: Error) => setMissed(err.message)) // the line is broken; scrolling asks again
      .finally(() => { loading.current = false; });
  }, [conversation]);
  const scroll = useScroll(scroller, content, more, begin?.spot);
  const stretchNow = useRef(stretch);
  stretchNow.current = stretch;
  const shown = place(stretch, messages, scroll.following);
  at.current = shown;
  useEffect(() => {
    if (scroll.following) setStretch((s) => (s.last === undefined ? s : { ...s, last: undefined }));
    // What is read stays, however much comes at the end.
    else setStretch((s) => (s.first === undefined ? { ...s, first: conversation.state.messages[at.current.from]?.id } : s));
  }, [scroll.following, conversation]);

  // Who has left the end and comes back from another conversation finds the place again.
  const { spot: where } = scroll;
  useLayoutEffect(() => () => {
    const spot = where();
    const { messages: all } = conversation.state;
    const { from, to } = at.current;
    keep(conversation.id, spot && { spot, newest: left.current, stretch: { first: all[from]?.id, last: to < all.length ? all[to - 1]?.id : undefined } });
  }, [conversation, where]);

  // What is looked for is shown.
  const sought = useStore(target);
  const bringing = useRef<typeof sought>(undefined);
  const { bring, release } = scroll;
  useLayoutEffect(() => {
    const i = sought ? conversation.state.messages.findIndex((m) => m.id === sought.message) : -1;
    bringing.current = i < 0 ? undefined : sought;
    if (i < 0) return;
    release();
    setStretch(near(i, conversation.state.messages));
  }, [conversation, sought, release]);
  useLayoutEffect(() => {
    const element = bringing.current && content.current?.querySelector(`:scope > [data-message="${CSS.escape(bringing.current.message)}"]`);
    if (!element || stretch.first === undefined) return;
    bringing.current = undefined;
    bring(element);
  }, [stretch, bring]);

  // Whoever says something goes to the end with it.
  const sent = state.pending.at(-1)?.key;
  const { toEnd } = scroll;
  useEffect(() => {
    if (!sent) return;
    setStretch({});
    toEnd();
  }, [sent, toEnd]);

  // Near the end of a stretch that does not reach the end, the rest comes in.
  useEffect(() => {
    const s = scroller.current;
    if (!s || shown.to >= messages.length) return;
    const look = () => {
      if (s.scrollHeight - s.scrollTop - s.clientHeight < 2 * s.clientHeight) setStretch(later(at.current, conversation.state.messages));
    };
    s.addEventListener("scroll", look, { passive: true });
    return () => s.removeEventListener("scroll", look);
  }, [conversation, shown.to, messages.length]);

  // How much is new since the reader went away from the end.
  const left = useRef<string | undefined>(begin?.newest);
  if (scroll.following) left.current = messages.at(-1)?.id;
  const fresh = scroll.following ? 0 : messages.length - 1 - messages.findLastIndex((m) => m.id === left.current);

  const turnOf = useMemo(() => new Map(turns.map((t) => [t.id, t])), [turns]);
  const lastOf = useMemo(() => lastMessages(messages), [messages]);
  const ended = turns.filter((t) => t.state === "ended").length;
  const running = turns.some((t) => t.state !== "ended" && independent(t));
  const total = state.earlier ? -1 : messages.length;
  // What is on its way stands in its place already, and becomes the message without being drawn anew.
  const drawn: { message: Held; pending?: Pending }[] = messages.slice(shown.from, shown.to).map((message) => ({ message }));
  if (shown.to === messages.length) for (const p of state.pending) drawn.push({ message: asMessage(p), pending: p });
  const without = useMemo(() => answerless(turns, messages, lastOf), [turns, messages, lastOf]);
  const atEnd = shown.to === messages.length;
  const newest = drawn.at(-1)?.message.id;

  return (
    <div className="log-frame">
      <section ref={scroller} className="log" role="log" aria-label="Conversation" aria-live="off" tabIndex={0} data-ended={ended} data-open={turns.length - ended} onKeyDown={(e) => walk(e.nativeEvent, scroller.current, content.current)} onFocus={(e) => entered(e.nativeEvent, scroller.current)}>
        <div ref={content} className="column">
          {shown.from === 0 && state.earlier && missed && <p className="note bad" role="alert">Earlier messages did not come: {line(missed)}</p>}
          {shown.from === 0 && state.earlier && <button type="button" className="quiet wide" onClick={more}>{missed ? "Try again" : "Earlier messages"}</button>}
          {state.phase === "loading" && drawn.length === 0 && <Loading />}
          {drawn.flatMap(({ message: m, pending }, i) => {
            const turn = m.turn ? turnOf.get(m.turn) : undefined;
            return [
              <Message key={m.id} conversation={conversation} message={m} pending={pending} turn={turn} fate={m.stateTurn ? turnOf.get(m.stateTurn) : undefined} {...(turn?.parent ? around(turn, turnOf) : alone)}
                last={!!m.turn && lastOf.get(m.turn) === m.id} newest={atEnd && m.id === newest && !pending} place={total < 0 ? -1 : shown.from + i + 1} total={total} busy={running} edit={edit} change={change} inspect={inspect} hold={scroll.hold} />,
              ...(without.after.get(m.id) ?? []).map((t) => <Answerless key={t.id} turn={t} at={around(t, turnOf)} again={atEnd && m.id === newest && !running ? () => void conversation.resend(m.id).catch(() => {}) : undefined} hold={scroll.hold} />),
            ];
          })}
          {atEnd && without.end.map((t) => <Answerless key={t.id} turn={t} at={around(t, turnOf)} hold={scroll.hold} />)}
          {state.phase !== "loading" && <Requests conversation={conversation} turns={turns} messages={messages} />}
        </div>
      </section>
      {!scroll.following && (
        <button type="button" className="to-end" onClick={() => { setStretch({}); scroll.toEnd(); }}>
          <Icon name="down" /> {fresh > 0 ? `${fresh} new` : "To the end"}{running && " · answering"}
        </button>
      )}
    </div>
  );
}

const asMessages = new WeakMap<Pending, Held>();

function asMessage(p: Pending): Held {
  let m = asMessages.get(p);
  if (!m) {
    const parts = [...(p.message.text ? [{ kind: "text" as const, text: p.message.text }] : []), ...(p.message.parts ?? [])];
    m = { id: p.message.id ?? p.key, role: "user", at: p.at, ended: true, parts: parts.map((part, i) => ({ id: `p${i + 1}`, ...part })) };
    asMessages.set(p, m);
  }
  return m;
}

const alone: Around = {};

// A turn without a message yet, or at all.
function Answerless({ turn, at, again, hold }: { turn: Turn; at: Around; again?: (() => void) | undefined; hold: Hold }) {
  return (
    <article className="message assistant" data-depth={at.depth ? Math.min(at.depth, 3) : undefined} aria-label="Answer" aria-busy={turn.state !== "ended"} tabIndex={-1}>
      <Answers turn={turn.id} />
      {turn.state === "ended" ? <TurnEnd turn={turn} said={false} again={again} hold={hold} /> : <Alive turn={turn} />}
    </article>
  );
}

// Lines where the messages will be; they are seen only where that takes longer than a moment.
function Loading() {
  return <div className="loading" aria-hidden="true">{[60, 92, 84, 40].map((w) => <i key={w} data-width={w} />)}</div>;
}

/** The last message of each turn. */
function lastMessages(messages: readonly Held[]): Map<string, string> {
  const last = new Map<string, string>();
  for (const m of messages) if (m.turn && m.role !== "user") last.set(m.turn, m.id);
  return last;
}
