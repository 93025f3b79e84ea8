// Notices about a running turn: it is being stopped, or its agent has been silent for long.

import { type Conversation, type ConversationState, independent } from "@leat/client";
import { useCallback, useEffect, useRef, useState } from "react";

import { theClient } from "../gateway";
import { elapsed } from "../time";
import { line } from "./parts/marks";
import { noteStopped } from "./stopped";

/** A silence of this length is shown. Milliseconds. */
export const quiet = 45_000;

interface Stop { turns: readonly string[]; error?: string }

export interface Stopping { stop: () => void; stopping: boolean; error?: string }

const open = (s: ConversationState) => s.turns.filter((t) => t.state !== "ended" && independent(t));

/** Stops the running turns. It may be called repeatedly, and shows its progress until the turns have ended. */
export function useStop(conversation: Conversation, state: ConversationState): Stopping {
  const [request, setAsked] = useState<Stop>();
  const last = useRef<Stop>(undefined);
  const stop = useCallback(() => {
    const turns = open(conversation.state).map((t) => t.id);
    if (turns.length === 0) return;
    theClient().connect(); // if the client waits for its next attempt
    // A stop without an answer isn't sent again: the client repeats it with the same key when it reconnects.
    if (last.current && !last.current.error && turns.every((t) => last.current!.turns.includes(t))) return;
    const ownStop: Stop = { turns };
    noteStopped(turns);
    setAsked((last.current = ownStop));
    conversation.stop().catch((err: Error) => {
      if (last.current === ownStop) setAsked((last.current = { turns, error: err.message }));
    });
  }, [conversation]);
  const isStopping = !!request && open(state).some((t) => request.turns.includes(t.id));
  return { stop, stopping: isStopping && !request.error, ...(isStopping && request.error && { error: request.error }) };
}

/**
 * The time since the last event of the running turns, in milliseconds. exact is false if they ran before the page followed them;
 * then it may be longer.
 */
interface Silence { of: string; age: number; exact: boolean }

/** useSilence returns the silence of the running turns once it exceeds quiet, and undefined before that. */
function useSilence(conversation: Conversation, turnId: string, isLive: boolean): Silence | undefined {
  const [silence, setSilence] = useState<Silence>();
  const isWatching = useRef(false);
  useEffect(() => {
    if (!turnId) return;
    let [at, exact] = [Date.now(), isWatching.current];
    const unsubscribe = conversation.onEvents((events) => {
      if (!events.some((e) => e.turn && turnId.includes(e.turn))) return;
      [at, exact] = [Date.now(), true];
      setSilence(undefined);
    });
    const tick = setInterval(() => {
      const age = Date.now() - at;
      if (age > quiet) setSilence({ of: turnId, age, exact });
    }, 1000);
    return () => {
      unsubscribe();
      clearInterval(tick);
    };
  }, [conversation, turnId]);
  // This must be after the effect above: a turn that already runs when the page connects was not followed from its start.
  useEffect(() => {
    isWatching.current = isLive;
  }, [isLive]);
  return silence?.of === turnId ? silence : undefined;
}

/** A notice between the log and the composer, if there is one. */
export function TurnNotice({ conversation, state, stop }: { conversation: Conversation; state: ConversationState; stop: Stopping }) {
  const turns = open(state).filter((t) => t.state === "running");
  const isLive = state.phase === "live";
  const silence = useSilence(conversation, turns.map((t) => t.id).join(" "), isLive);
  if (stop.error) {
    return <p className="running-note bad" role="alert">Couldn’t stop the answer: {line(stop.error)} <button type="button" className="link" onClick={stop.stop}>Try again</button></p>;
  }
  if (stop.stopping) return <p className="running-note" role="status"><span className="dot running" /> {isLive ? "Stopping" : "The answer is stopped when the connection is back"}</p>;
  // Without a connection nobody knows whether the agent is silent.
  if (turns.length === 0 || !isLive || !silence) return null;
  return (
    <p className="running-note">
      <span className="dot running" /> Nothing received for {elapsed(silence.age)}{silence.exact ? "" : " or longer"}. The connection is fine, but the agent is silent.
    </p>
  );
}
