// Loads the trace of a turn, repeatedly while the turn is running.

import { LeatError, type Turn } from "@leat/client";
import { useEffect, useRef, useState } from "react";

import { call } from "../gateway";
import type { Commit, Replacement, Trace } from "./trace";

/** The interval between two requests, in milliseconds. */
const interval = 1000;
/** A turn that ended longer ago and has no trace has lost it. Milliseconds. */
const patience = 60_000;

interface Answer { turn: string; commits: Commit[]; replaced?: Replacement[]; now: number }

export interface Traced {
  trace?: Trace;
  error: string;
  /**
   * The difference between the log's clock and this tab's, in milliseconds, and its maximum error. A difference within the error
   * counts as 0.
   */
  offset: number; within: number;
}

export function useTrace(turn: Turn): Traced {
  const [traced, setTraced] = useState<Traced>({ error: "", offset: 0, within: Infinity });
  const endedAt = useRef(turn.endedAt);
  useEffect(() => {
    endedAt.current = turn.endedAt;
  }, [turn.endedAt]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isMounted = true;
    let isComplete = false;
    let trace: Trace = { turn: turn.id, commits: [] };
    const ask = async () => {
      if (document.hidden) return;
      try {
        const sentAt = Date.now();
        const t = await call<Answer>(`api/turns/${encodeURIComponent(turn.id)}/trace?after=${trace.commits.at(-1)?.seq ?? 0}`);
        const got = Date.now();
        if (!isMounted) return;
        isComplete ||= t.commits.some((c) => c.type === "turn.end");
        if (t.commits.length > 0) trace = { turn: turn.id, commits: [...trace.commits, ...t.commits], replaced: [...(trace.replaced ?? []), ...(t.replaced ?? [])] };
        // The fastest response gives the smallest error.
        const clockOffset = Math.round(t.now - (sentAt + got) / 2);
        const within = Math.max(1, (got - sentAt) / 2);
        const clock = { offset: Math.abs(clockOffset) <= within + 1 ? 0 : clockOffset, within };
        setTraced((o) => ({ trace, error: "", ...(clock.within < o.within ? clock : { offset: o.offset, within: o.within }) }));
      } catch (err) {
        if (!isMounted) return;
        const isGone = err instanceof LeatError && err.reason === "not_found";
        if (isGone && (endedAt.current === undefined || Date.now() - endedAt.current < patience)) return;
        isComplete ||= isGone;
        setTraced((o) => ({ ...o, error: isGone ? "The trace of this turn is no longer stored." : (err as Error).message }));
      }
    };
    const go = async () => {
      clearTimeout(timer);
      await ask();
      if (isMounted && !isComplete) timer = setTimeout(() => void go(), interval);
    };
    void go();
    return () => {
      isMounted = false;
      clearTimeout(timer);
    };
  }, [turn.id]);
  return traced;
}
