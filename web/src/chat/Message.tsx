// One message. It keeps the same element from its first event to its last, and only changed parts render again.

import { type Conversation, type Message as ChatMessage, type Outcome, type Pending, type Turn, visibleText } from "@leat/client";
import { memo } from "react";

import { clock } from "../time";
import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import { Activity } from "./Activity";
import { Delivery } from "./Delivery";
import type { Hold } from "./parts/Fold";
import { line } from "./parts/marks";
import { Part } from "./parts/Part";
import { ReadAloud } from "./ReadAloud";
import { Answers } from "./Requests";
import { TurnEnd } from "./TurnEnd";
import { UsageLabel } from "./UsageLabel";

interface MessageProps {
  conversation: Conversation;
  message: ChatMessage;
  pending: Pending | undefined; // set while the message is not acknowledged, or if it was refused
  turn: Turn | undefined; // the turn that the message belongs to
  targetTurn?: Turn | undefined; // the turn that answers a user's message
  inside?: string | undefined; // the agents of the enclosing turns, outermost first; undefined for a top-level turn
  depth?: number; // the number of enclosing turns
  last: boolean; // the last message of its turn
  newest?: boolean; // the last message of the log
  place: number;
  total: number;
  busy: boolean;
  edit: (m: ChatMessage) => void;
  change: (m: ChatMessage) => void;
  inspect: (turn: string) => void;
  hold: Hold;
}

/**
 * Returns the source of a message that wasn't sent through Leat, such as another client of the agent's session, or "" if it is
 * unknown.
 */
function origin(m: ChatMessage, turn: Turn | undefined): string {
  if (turn) return turn.source === "upstream" ? "" : turn.source ?? "";
  return m.state ? "" : m.source ?? "";
}

/** The maximum indentation of nested turns. Deeper turns name their enclosing agents instead. */
const deepest = 3;

export const Message = memo(function Message({ conversation, message: m, pending, turn, targetTurn, inside, depth = 0, last, newest = false, place, total, busy, edit, change, inspect, hold }: MessageProps) {
  const isOwn = m.role === "user";
  const growing = !m.ended && (!turn || turn.state !== "ended");
  const isRunning = last && !!turn && turn.state !== "ended" && turn.state !== "queued";
  const authorName = m.author?.name ?? m.author?.id;
  const label = line(authorName ?? (isOwn ? "You" : m.role === "system" ? "System" : turn?.agent ?? "Agent"), 80);
  const from = line(origin(m, turn), 80);
  const heading = `m-${m.id}`;
  const asks = turn?.requests?.map((r) => r.part) ?? [];
  const answers = turn?.answers;
  const retry = newest && !busy && answers ? () => void conversation.resend(answers).catch(() => {}) : undefined;
  return (
    <article className={`message ${isOwn ? "user" : m.role}`} data-message={m.id} data-len={length(m)} data-depth={depth > 0 ? Math.min(depth, deepest) : undefined} aria-labelledby={heading} aria-posinset={place > 0 ? place : undefined} aria-setsize={total} aria-busy={growing || undefined} tabIndex={-1}>
      <h2 id={heading} className="unseen">{label}{from && `, from ${from}`}{m.at ? `, ${clock(m.at)}` : ""}{growing ? ", answering" : ""}</h2>
      {(inside !== undefined || authorName || from || m.role === "system") && (
        <p className="who" aria-hidden="true">{inside !== undefined && <Icon name="turn" />}<bdi>{label}</bdi>{inside !== undefined && <span className="muted">{depth > deepest ? `in ${inside}` : "works for"} {depth > deepest ? "" : <bdi>{inside.split(" › ").at(-1)}</bdi>}</span>}{from && <span className="muted">from <bdi>{from}</bdi></span>}</p>
      )}
      {m.parts.map((p, i) => (
        <Part key={p.id} part={p} conversation={conversation.id} mine={isOwn} live={growing && (!p.ended || isLoading(p))} last={i === m.parts.length - 1} waiting={asks.includes(p.id)} cut={cutOff(p, turn)} hold={hold} />
      ))}
      {isOwn && <Delivery conversation={conversation} message={m} pending={pending} turn={targetTurn} change={change} />}
      {last && turn && <Answers turn={turn.id} />}
      {last && turn?.state === "ended" && <TurnEnd turn={turn} said={m.parts.length > 0} again={retry} hold={hold} />}
      <footer className="acts" data-ready={(!growing && !isRunning) || undefined} data-live={isRunning || undefined}>
        {isRunning ? <Activity turn={turn} message={m} /> : (
          <>
            <CopyButton text={() => visibleText(m)} what="message" />
            {m.role === "assistant" && visibleText(m) !== "" && <ReadAloud conversation={conversation.id} message={m.id} />}
            {isOwn && !pending && <button type="button" className="quiet" disabled={busy} onClick={() => edit(m)} aria-label="Edit" title="Edit"><Icon name="pencil" /></button>}
            {isOwn && !pending && <button type="button" className="quiet" disabled={busy} onClick={() => void conversation.resend(m.id).catch(() => {})} aria-label="Send again" title="Send again"><Icon name="again" /></button>}
            {last && turn && <button type="button" className="quiet" onClick={() => inspect(turn.id)} aria-label="Inspect" title="Inspect"><Icon name="wave" /></button>}
            {m.at !== undefined && <time dateTime={new Date(m.at).toISOString()}>{clock(m.at)}</time>}
            {last && turn?.usage && <UsageLabel usage={turn.usage} model={turn.model} />}
          </>
        )}
      </footer>
    </article>
  );
});

/** Returns the outcome of the turn that ended before its tool did, or undefined if the tool ended by itself. */
function cutOff(p: ChatMessage["parts"][number], t: Turn | undefined): Outcome | undefined {
  return p.kind === "tool" && !p.state && t?.outcome && t.outcome !== "completed" && p.endAt !== undefined && p.endAt === t.endedAt ? t.outcome : undefined;
}

/** A media part can end before its file is available. */
const isLoading = (p: ChatMessage["parts"][number]): boolean => p.kind === "media" && !p.media?.url && !p.error;

/** Returns the length of the shown text. It grows, except when the agent retracts text. */
const length = (m: ChatMessage): number => m.parts.reduce((n, p) => n + (p.kind === "text" ? (p.text ?? "").length : 0), 0);
