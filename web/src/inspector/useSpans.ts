// Loads the log of a turn, and follows it while the turn runs.

import type { Conversation, Event, Turn } from "@leat/client";
import { useCallback, useEffect, useMemo, useState } from "react";

import { readBody, refusal } from "../gateway";
import { EventFold } from "./fold";
import { type Span, spansOf } from "./spans";

/** The delay between renderings while events arrive, and between those of a silent turn, whose bars grow. Milliseconds. */
const pause = 200;
const beat = 500;

export interface Spans {
  /** Undefined until the log is loaded, and while the turn is queued. */
  root?: Span;
  isLoaded: boolean;
  error: string;
  /** The current time by the gateway's clock; for a turn that has ended, the time of its last event. */
  time: number;
  retry: () => void;
}

/** Returns the events of a turn's recording. */
export function eventsOf(recording: string): Event[] {
  return recording.split("\n").flatMap((l) => {
    if (!l) return [];
    const { dir, frame } = JSON.parse(l) as { dir: string; frame?: Event };
    return dir === "in" && frame ? [frame] : [];
  });
}

async function load(turn: string): Promise<Event[]> {
  const { res, body } = await readBody(`api/turns/${encodeURIComponent(turn)}/log`);
  if (!res.ok) throw await refusal(res, body);
  return eventsOf(await body.text());
}

interface View { fold?: EventFold; version: number; time: number; error: string }

export function useSpans(conversation: Conversation, turn: Turn, question: string | undefined): Spans {
  const [view, setView] = useState<View>({ version: 0, time: 0, error: "" });
  const [attempt, setAttempt] = useState(0);
  const isEnded = turn.state === "ended";
  // When the turn ends, its log is read again: live events may be merged, and those in the log are the original ones.
  useEffect(() => {
    let isMounted = true;
    let fold: EventFold | undefined;
    let queue: Event[] | undefined; // events that arrive while the log is read
    let offset = -Infinity;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let due = Infinity;
    const draw = () => {
      const clock = isEnded ? 0 : Date.now() + (Number.isFinite(offset) ? offset : 0);
      if (fold) setView((v) => ({ fold: fold!, version: v.version + 1, time: Math.max(fold!.at, clock), error: "" }));
      schedule(beat);
    };
    const schedule = (after: number) => {
      if (isEnded || performance.now() + after >= due) return;
      clearTimeout(timer);
      due = performance.now() + after;
      timer = setTimeout(() => {
        due = Infinity;
        draw();
      }, after);
    };
    const reload = async () => {
      queue ??= [];
      try {
        const events = await load(turn.id);
        if (!isMounted) return;
        fold = new EventFold(turn.id, events);
        fold.add(queue);
        fold.hasGap = false;
        queue = undefined;
        draw();
      } catch (err) {
        if (isMounted) setView((v) => ({ ...v, error: `Couldn’t load the trace: ${(err as Error).message}.` }));
      }
    };
    const stopEvents = conversation.onEvents((events) => {
      if (isEnded) return;
      // The newest events have travelled the shortest time.
      for (const e of events) if (e.at) offset = Math.max(offset, e.at - Date.now());
      if (queue) queue.push(...events);
      else if (fold?.add(events)) {
        if (fold.hasGap) void reload();
        else schedule(pause);
      }
    });
    // After a lost connection the missed events may come as a snapshot, which has none.
    let wasLive = conversation.state.phase === "live";
    const stopStates = conversation.subscribe(() => {
      const isLive = conversation.state.phase === "live";
      if (isLive && !wasLive && !isEnded) void reload();
      wasLive = isLive;
    });
    void reload();
    return () => {
      isMounted = false;
      clearTimeout(timer);
      stopEvents();
      stopStates();
    };
  }, [conversation, turn.id, isEnded, attempt]);
  const { fold, version } = view;
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const root = useMemo(() => fold && spansOf(fold, question), [fold, version, question]);
  const retry = useCallback(() => setAttempt((n) => n + 1), []);
  return { ...(root && { root }), isLoaded: fold !== undefined, error: view.error, time: view.time, retry };
}
