// A turn's trace, as it grows while the turn runs.

import { LeatError, type Turn } from "@leat/client";
import { useEffect, useRef, useState } from "react";

import { call } from "../gateway";
import type { Commit, Replacement, Trace } from "./trace";

/** How often what is new is asked for. */
const every = 1000;
/** After this a turn without a trace is said to have none any more. */
const patience = 60_000;

interface Answer { turn: string; commits: Commit[]; replaced?: Replacement[]; now: number }

export interface Traced {
  trace?: Trace;
  error: string;
  /** What has to be added to this tab's clock to have the log's, in milliseconds, and by how much that may be wrong. What is no more
   * than that is 0. */
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
    let wanted = true;
    let whole = false;
    let trace: Trace = { turn: turn.id, commits: [] };
    const ask = async () => {
      if (document.hidden) return;
      try {
        const sent = Date.now();
        const t = await call<Answer>(`api/turns/${encodeURIComponent(turn.id)}/trace?after=${trace.commits.at(-1)?.seq ?? 0}`);
        const got = Date.now();
        if (!wanted) return;
        whole ||= t.commits.some((c) => c.type === "turn.end");
        if (t.commits.length > 0) trace = { turn: turn.id, commits: [...trace.commits, ...t.commits], replaced: [...(trace.replaced ?? []), ...(t.replaced ?? [])] };
        // The quickest answer tells the most.
        const off = Math.round(t.now - (sent + got) / 2);
        const within = Math.max(1, (got - sent) / 2);
        const clock = { offset: Math.abs(off) <= within + 1 ? 0 : off, within };
        setTraced((o) => ({ trace, error: "", ...(clock.within < o.within ? clock : { offset: o.offset, within: o.within }) }));
      } catch (err) {
        if (!wanted) return;
        const gone = err instanceof LeatError && err.reason === "not_found";
        if (gone && (endedAt.current === undefined || Date.now() - endedAt.current < patience)) return;
        whole ||= gone;
        setTraced((o) => ({ ...o, error: gone ? "The trace of this turn is no longer stored." : (err as Error).message }));
      }
    };
    const go = async () => {
      clearTimeout(timer);
      await ask();
      if (wanted && !whole) timer = setTimeout(() => void go(), every);
    };
    void go();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [turn.id]);
  return traced;
}
