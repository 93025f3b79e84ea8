// The second tab of the inspector: when each event arrived, was stored and was displayed; the answer as it grew; and the agent's
// original frames.

import type { Conversation, Turn } from "@leat/client";
import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";

import { line } from "../chat/parts/marks";
import { Part } from "../chat/parts/Part";
import { brief, size } from "../time";
import { Events } from "./Events";
import { Figures } from "./Figures";
import { Lanes } from "./Lanes";
import { Player } from "./Player";
import { rate } from "./rate";
import { Raw } from "./Raw";
import { shownOf } from "./shown";
import { beginOf, figures, isText, Replay, shownTimes } from "./trace";
import { type Traced, useTrace } from "./useTrace";

export function EventsView({ conversation, turn }: { conversation: Conversation; turn: Turn }) {
  const traced = useTrace(turn);
  return (
    <div className="scroll">
      {traced.error ? <p className="bad">{traced.error}</p> : !traced.trace && <p className="muted">Loading the events…</p>}
      {traced.trace && traced.trace.commits.length > 0 ? <Inside traced={traced} conversation={conversation} turn={turn} /> : <Raw turn={turn} begin={turn.startedAt ?? 0} arrival={undefined} />}
    </div>
  );
}

interface InsideProps { traced: Traced; conversation: Conversation; turn: Turn }

// The conversation changes with each frame, but the inspector renders only once a second.
const Inside = memo(function Inside({ traced, conversation, turn }: InsideProps) {
  const trace = traced.trace!;
  const { commits } = trace;
  // The trace can be complete before the connection has delivered the last messages, so the end of the turn reads them again.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const messages = useMemo(() => conversation.state.messages.filter((m) => m.turn === trace.turn && m.role !== "user"), [conversation, trace, turn.state]);
  const replay = useMemo(() => new Replay(trace, messages), [trace, messages]);
  const times = useMemo(() => shownTimes(trace, shownOf(turn.id), traced.offset), [trace, turn.id, traced.offset]);
  const f = useMemo(() => figures(trace, shownOf(turn.id), traced.offset), [trace, turn.id, traced.offset]);
  const r = useMemo(() => rate(trace, replay, turn.usage?.output), [trace, replay, turn.usage?.output]);
  const names = useMemo(() => new Map(messages.flatMap((m) => m.parts.map((p) => [`${m.id} ${p.id}`, line(p.name ?? p.kind)] as const))), [messages]);
  // Until the user selects a moment, it is the end of the trace, which may still grow.
  const [selection, setAt] = useState<number>();
  const at = Math.min(selection ?? commits.length, commits.length);
  const begin = beginOf(trace);
  const moment = commits[Math.max(0, at - 1)]!.arrival;
  const time = at === 0 ? 0 : Math.max(0, moment - begin);
  const tell = (i: number) => {
    const c = commits[i]!;
    const part = c.part ? names.get(`${c.message} ${c.part}`) ?? "" : "";
    return `+${brief(c.arrival - begin)} · ${c.seq} ${c.type}${part && ` · ${part}`}${c.field ? ` ${c.field}` : ""}${isText(c) ? ` · ${size(replay.size(i))}` : ""} · stored +${c.commit - c.arrival} ms${times[i] === undefined ? "" : ` · shown +${Math.max(0, Math.round(times[i] - c.commit))} ms`}`;
  };
  const pin = (i: number) => setAt(i + 1);
  const past = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (past.current) past.current.scrollTop = past.current.scrollHeight; // keep the growing end in view
  }, [at]);
  return (
    <>
      <Lanes trace={trace} replay={replay} names={names} shown={times} at={at === 0 ? commits[0]!.arrival : moment} tell={tell} now={at > 0 ? tell(at - 1) : "Before the first event"} pin={pin} />
      <Figures figures={f} rate={r} turn={turn} time={time} offset={traced.offset} within={traced.within} />
      <section className="past" aria-label="Replay of the answer">
        <Player trace={trace} at={at} setAt={setAt} label={`${brief(time)} of ${brief(f.total)}, event ${at} of ${commits.length}`} />
        <div ref={past} className="replay" tabIndex={0} role="region" aria-label="The answer at that moment">
          <p className="tag">Replay at {brief(time)}</p>
          {replay.at(at).map((m) => <div key={m.id} className="message">{m.parts.map((p) => <Part key={p.id} part={p} mine={false} live={false} last={false} hold={(_, go) => go()} />)}</div>)}
        </div>
      </section>
      <Events trace={trace} replay={replay} at={at} pin={pin} />
      <Raw turn={turn} begin={begin} arrival={at > 0 ? moment : undefined} />
    </>
  );
}, (a, b) => a.traced === b.traced && a.conversation === b.conversation && a.turn.id === b.turn.id && a.turn.state === b.turn.state);
