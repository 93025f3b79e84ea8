// The parts of a message. The elements of parts are siblings, whether folded or not, so that a growing run keeps its elements.

import type { Message, Outcome, Turn } from "@leat/client";
import { type ReactNode, useCallback, useRef, useState } from "react";

import { Icon } from "../ui/Icon";
import type { Hold } from "./parts/Fold";
import { Part } from "./parts/Part";
import { type Run, runs, stays } from "./parts/steps";

interface PartsProps { conversation: string; message: Message; turn: Turn | undefined; growing: boolean; hold: Hold }

export function Parts({ conversation, message: m, turn, growing, hold }: PartsProps): ReactNode {
  const [unfolded, unfold] = useIds(); // runs, by their first part
  const [openTools, tell] = useIds(); // tool calls whose details the reader has opened
  const asks = turn?.requests?.map((r) => r.part) ?? [];
  const isOwn = m.role === "user";
  const longRuns = runs(m.parts);
  const nodes: ReactNode[] = [];
  m.parts.forEach((p, i) => {
    const run = longRuns.find((r) => i >= r.from && i < r.to);
    const runId = run && m.parts[run.from]!.id;
    if (runId === p.id) {
      nodes.push(<Steps key={`steps-${p.id}`} run={run!} open={unfolded.has(p.id)} hold={hold} turn={(isOpen) => unfold(p.id, isOpen)} />);
    }
    const isFolded = runId !== undefined && !unfolded.has(runId) && !stays(p, growing, openTools.has(p.id));
    if (isFolded) return;
    nodes.push(<Part key={p.id} part={p} conversation={conversation} mine={isOwn} live={growing && (!p.ended || isLoading(p))} last={i === m.parts.length - 1} waiting={asks.includes(p.id)} cut={cutOff(p, turn)} tell={tell} hold={hold} />);
  });
  return nodes;
}

function Steps({ run, open, turn, hold }: { run: Run; open: boolean; turn: (open: boolean) => void; hold: Hold }) {
  const row = useRef<HTMLButtonElement>(null);
  return (
    <div className="fold tool steps" data-open={open || undefined}>
      <button ref={row} type="button" className="row" aria-expanded={open} onClick={() => hold(row.current!, () => turn(!open))}>
        <Icon name="fold" /><span>{run.tools} steps</span>{run.failed > 0 && <span className="bad">{run.failed} failed</span>}
      </button>
    </div>
  );
}

/**
 * A set of ids and the function that puts an id in or takes it out. The function is made here and not in Parts, because it stays
 * the same for the life of the component: there it would keep the nodes of the first rendering, and with them the whole log of
 * that time.
 */
function useIds(): [ReadonlySet<string>, (id: string, isIn: boolean) => void] {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const change = useCallback((id: string, isIn: boolean) => setIds((before) => {
    const next = new Set(before);
    if (isIn) next.add(id);
    else next.delete(id);
    return next;
  }), []);
  return [ids, change];
}

/** Returns the outcome of the turn that ended before its tool did, or undefined if the tool ended by itself. */
function cutOff(p: Message["parts"][number], t: Turn | undefined): Outcome | undefined {
  return p.kind === "tool" && !p.state && t?.outcome && t.outcome !== "completed" && p.endAt !== undefined && p.endAt === t.endedAt ? t.outcome : undefined;
}

/** A media part can end before its file is available. */
const isLoading = (p: Message["parts"][number]): boolean => p.kind === "media" && !p.media?.url && !p.error;
