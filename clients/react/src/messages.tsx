// The messages of a thread: those in the log, and those that the gateway doesn't have yet.

import type { Message, Pending, Turn } from "@leat/client";
import { type ComponentPropsWithoutRef, type ReactNode, useLayoutEffect, useRef } from "react";

import { useThread } from "./context.js";
import { type PartComponents, Parts } from "./parts.js";
import { Requests } from "./requests.js";

export interface MessagesProps extends Omit<ComponentPropsWithoutRef<"section">, "children"> {
  /** The components for kinds of parts. */
  parts?: PartComponents;
  /** Renders a message instead of the default, an article with Parts. */
  children?: (message: Message, turn: Turn | undefined) => ReactNode;
}

// So near to its end, in pixels, a log counts as read to its end.
const endMargin = 32;

/**
 * Renders the messages of the thread, oldest first, with a button for older ones, the questions of waiting turns, errors of turns, and
 * messages that are on their way. If the section scrolls, it stays at its end while the reader is there.
 */
export function Messages({ parts, children, ...props }: MessagesProps) {
  const { messages, turns, pending, earlier, conversation, error } = useThread();
  const section = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) section.current!.scrollTop = section.current!.scrollHeight;
  });
  const turnOf = (m: Message) => turns.find((t) => t.id === m.turn);
  return (
    <section role="log" aria-label="Messages" {...props} ref={section} onScroll={({ currentTarget: e }) => {
      isAtEnd.current = e.scrollHeight - e.scrollTop - e.clientHeight < endMargin;
    }}>
      {earlier && <button type="button" onClick={() => void conversation.loadEarlier()}>Earlier messages</button>}
      {messages.map((m) => (children ? children(m, turnOf(m)) : <article key={m.id} data-role={m.role}><Parts message={m} components={parts} /></article>))}
      {pending.map((p) => <Unsent key={p.key} message={p} />)}
      <Requests />
      <TurnError turn={turns.at(-1)} />
      {error && <p role="alert">{error.message}</p>}
    </section>
  );
}

// Unsent shows a message that has no acknowledgement yet, or that was refused.
function Unsent({ message: { key, message, error } }: { message: Pending }) {
  const { conversation } = useThread();
  return (
    <article data-role="user" data-state={error ? "refused" : "unsent"}>
      <div style={{ whiteSpace: "pre-wrap" }}>{message.text ?? message.parts?.map((p) => p.text ?? p.media?.name ?? "").join("\n")}</div>
      {error && (
        <p role="alert">
          {error.message}
          <button type="button" onClick={() => void conversation.retry(key).catch(() => {})}>Try again</button>
          <button type="button" onClick={() => conversation.discard(key)}>Discard</button>
        </p>
      )}
    </article>
  );
}

function TurnError({ turn }: { turn: Turn | undefined }) {
  if (turn?.state !== "ended" || turn.outcome === "completed") return null;
  return <p role="alert" data-outcome={turn.outcome}>{turn.error?.message ?? outcomeWords[turn.outcome ?? "failed"]}</p>;
}

const outcomeWords = { completed: "", failed: "The answer failed.", cancelled: "Stopped.", interrupted: "The gateway was restarted during the answer." } as const;
