// What there is to say of a turn while it runs: that it is being stopped, or that nothing has come of it for long.

import { type Conversation, type ConversationState, independent } from "@leat/client";
import { useCallback, useEffect, useRef, useState } from "react";

import { theClient } from "../gateway";
import { counted } from "../time";
import { line } from "./parts/marks";
import { noteStopped } from "./stopped";

/** After how long without an event that is said, in milliseconds. */
export const quiet = 45_000;

interface Stop { turns: readonly string[]; error?: string }

export interface Stopping { stop: () => void; stopping: boolean; error?: string }

const open = (s: ConversationState) => s.turns.filter((t) => t.state !== "ended" && independent(t));

/** Stops what runs. To ask again does no harm, and something is said at every moment until it has ended. */
export function useStop(conversation: Conversation, state: ConversationState): Stopping {
  const [asked, setAsked] = useState<Stop>();
  const last = useRef<Stop>(undefined);
  const stop = useCallback(() => {
    const turns = open(conversation.state).map((t) => t.id);
    if (turns.length === 0) return;
    theClient().connect(); // in case it waits for its next try
    // What was asked and has no answer yet is not asked twice: it waits for a connection with its key.
    if (last.current && !last.current.error && turns.every((t) => last.current!.turns.includes(t))) return;
    const mine: Stop = { turns };
    noteStopped(turns);
    setAsked((last.current = mine));
    conversation.stop().catch((err: Error) => {
      if (last.current === mine) setAsked((last.current = { turns, error: err.message }));
    });
  }, [conversation]);
  const still = !!asked && open(state).some((t) => asked.turns.includes(t.id));
  return { stop, stopping: still && !asked.error, ...(still && asked.error && { error: asked.error }) };
}

/** exact is false where a turn ran already when the page came: what it said last may be longer ago. */
interface Heard { of: string; at: number; exact: boolean }

/** When something came of what runs last, in this page's time; it begins when the page finds it running. */
function useHeard(conversation: Conversation, running: string, live: boolean): Heard {
  const heard = useRef<Heard>({ of: "", at: 0, exact: false });
  const watched = useRef(false);
  if (heard.current.of !== running) heard.current = { of: running, at: Date.now(), exact: watched.current };
  useEffect(() => {
    watched.current = live;
  }, [live]);
  const [, draw] = useState(0);
  useEffect(() => {
    if (!running) return;
    const late = () => Date.now() - heard.current.at > quiet;
    const leave = conversation.onEvents((events) => {
      if (!events.some((e) => e.turn && running.includes(e.turn))) return;
      const told = late();
      heard.current = { of: running, at: Date.now(), exact: true };
      if (told) draw((n) => n + 1);
    });
    const tick = setInterval(() => late() && draw((n) => n + 1), 1000);
    return () => {
      leave();
      clearInterval(tick);
    };
  }, [conversation, running]);
  return heard.current;
}

/** One line between the log and the composer, where there is something to say. */
export function Running({ conversation, state, stop }: { conversation: Conversation; state: ConversationState; stop: Stopping }) {
  const turns = open(state).filter((t) => t.state === "running");
  const live = state.phase === "live";
  const heard = useHeard(conversation, turns.map((t) => t.id).join(" "), live);
  if (stop.error) {
    return <p className="running-note bad" role="alert">Could not stop: {line(stop.error)} <button type="button" className="link" onClick={stop.stop}>Stop again</button></p>;
  }
  if (stop.stopping) return <p className="running-note" role="status"><span className="dot running" /> {live ? "Stopping" : "It is stopped as soon as the connection is back"}</p>;
  const age = Date.now() - heard.at;
  // Without a connection, that nothing comes is not the agent's doing.
  if (turns.length === 0 || !live || age <= quiet) return null;
  return (
    <p className="running-note">
      <span className="dot running" /> No event for {counted(age)}{heard.exact ? "" : " or longer"}. The connection is good; the agent is quiet.
    </p>
  );
}
