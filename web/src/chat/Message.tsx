// One message. It keeps the same element from its first event to its last, and only changed parts render again.

import { type Conversation, type Message as ChatMessage, type NewMessage, type Pending, type Turn, visibleText } from "@leat/client";
import { memo } from "react";

import { clock } from "../time";
import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import { Activity } from "./Activity";
import { Delivery } from "./Delivery";
import { EditMessage } from "./EditMessage";
import { explain } from "./failure";
import { Parts } from "./Parts";
import type { Hold } from "./parts/Fold";
import { line } from "./parts/marks";
import { ReadAloud } from "./ReadAloud";
import { Answers } from "./Requests";
import { stoppedBy } from "./stopped";
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
  named?: boolean; // the agent's name is shown, because several agents can answer
  editing?: boolean;
  place: number;
  total: number;
  busy: boolean;
  edit: (m: ChatMessage | undefined) => void; // undefined ends editing
  resend: (id: string, message?: NewMessage) => Promise<void>; // removes the message and later ones, and sends it again, or another
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

export const Message = memo(function Message({ conversation, message: m, pending, turn, targetTurn, inside, depth = 0, last, newest = false, named = false, editing = false, place, total, busy, edit, resend, change, inspect, hold }: MessageProps) {
  const isOwn = m.role === "user";
  const growing = !m.ended && (!turn || turn.state !== "ended");
  const isRunning = last && !!turn && turn.state !== "ended" && turn.state !== "queued";
  const authorName = m.author?.name ?? m.author?.id;
  const label = line(authorName ?? (isOwn ? "You" : m.role === "system" ? "System" : turn?.agent ?? "Agent"), 80);
  const from = line(origin(m, turn), 80);
  const heading = `m-${m.id}`;
  const answers = turn?.answers;
  const isOver = last && turn?.state === "ended";
  const retry = isOver && !busy && answers ? () => void resend(answers).catch(() => {}) : undefined; // the page shows why it failed
  const isRetryOffered = newest && isOver && !!explain(turn, m.parts.length > 0, stoppedBy(turn))?.again;
  const retryButton = retry && { run: retry, title: newest ? "Try again" : "Try again from here; what follows is removed" };
  const parts = <Parts conversation={conversation.id} message={m} turn={turn} growing={growing} hold={hold} />;
  const whoShown = inside !== undefined || authorName || from || m.role === "system" || (named && m.role === "assistant");
  return (
    <article className={`message ${isOwn ? "user" : m.role}`} data-message={m.id} data-newest={newest || undefined} data-editing={editing || undefined} data-len={length(m)} data-depth={depth > 0 ? Math.min(depth, deepest) : undefined} aria-labelledby={heading} aria-posinset={place > 0 ? place : undefined} aria-setsize={total} aria-busy={growing || undefined} tabIndex={-1}>
      <h2 id={heading} className="unseen">{label}{from && `, from ${from}`}{m.at ? `, ${clock(m.at)}` : ""}{growing ? ", answering" : ""}</h2>
      {whoShown && (
        <p className="who" aria-hidden="true">{inside !== undefined && <Icon name="turn" />}<bdi>{label}</bdi>{inside !== undefined && <span className="muted">{depth > deepest ? `in ${inside}` : "works for"} {depth > deepest ? "" : <bdi>{inside.split(" › ").at(-1)}</bdi>}</span>}{from && <span className="muted">from <bdi>{from}</bdi></span>}</p>
      )}
      {isOwn ? (
        <div className="bubble">{editing ? <EditMessage conversation={conversation.id} message={m} send={resend} close={() => edit(undefined)} /> : parts}</div>
      ) : parts}
      {isOwn && <Delivery conversation={conversation} message={m} pending={pending} turn={targetTurn} change={change} />}
      {last && turn && <Answers turn={turn} />}
      {last && turn?.state === "ended" && <TurnEnd turn={turn} said={m.parts.length > 0} again={newest ? retry : undefined} hold={hold} />}
      <footer className="acts" data-ready={(!growing && !isRunning) || undefined} data-live={isRunning || undefined}>
        {isRunning ? <Activity turn={turn} message={m} /> : (
          <>
            <CopyButton text={() => visibleText(m)} what="message" />
            {retryButton && !isRetryOffered && <button type="button" className="quiet" onClick={retryButton.run} aria-label="Try again" title={retryButton.title}><Icon name="again" /></button>}
            {m.role === "assistant" && visibleText(m) !== "" && <ReadAloud conversation={conversation.id} message={m.id} />}
            {isOwn && !pending && !editing && <button type="button" className="quiet" disabled={busy} onClick={() => edit(m)} aria-label="Edit" title="Edit"><Icon name="pencil" /></button>}
            {isOwn && !pending && newest && !editing && <button type="button" className="quiet" disabled={busy} onClick={() => void resend(m.id).catch(() => {})} aria-label="Send again" title="Send again"><Icon name="again" /></button>}
            {last && turn && <button type="button" className="quiet" onClick={() => inspect(turn.id)} aria-label="Inspect" title="Inspect"><Icon name="wave" /></button>}
            {m.at !== undefined && <time dateTime={new Date(m.at).toISOString()}>{clock(m.at)}</time>}
            {last && turn?.usage && <UsageLabel usage={turn.usage} model={turn.model} />}
          </>
        )}
      </footer>
    </article>
  );
});

/** Returns the length of the shown text. It grows, except when the agent retracts text. */
const length = (m: ChatMessage): number => m.parts.reduce((n, p) => n + (p.kind === "text" ? (p.text ?? "").length : 0), 0);
