// The parts of a message. The elements of parts are siblings, whether folded or not, so that a growing run keeps its elements.

import type { Message, Outcome, Turn } from "@leat/client";
import { type ReactNode, useCallback, useRef, useState } from "react";

import { Icon } from "../ui/Icon";
import type { Hold } from "./parts/Fold";
import { Part } from "./parts/Part";
import { type Run, runs, stays } from "./parts/steps";

interface PartsProps { conversation: string; message: Message; turn: Turn | undefined; growing: boolean; hold: Hold }

export function Parts({ conversation, message: m, turn, growing, hold }: PartsProps): ReactNode {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set()); // runs, by their first part
  const [openTools, setOpenTools] = useState<ReadonlySet<string>>(new Set()); // tool calls whose details the reader has opened
  const tell = useCallback((part: string, isOpen: boolean) => setOpenTools((ids) => changed(ids, part, isOpen)), []);
  const asks = turn?.requests?.map((r) => r.part) ?? [];
  const isOwn = m.role === "user";
  const longRuns = runs(m.parts);
  const nodes: ReactNode[] = [];
  m.parts.forEach((p, i) => {
    const run = longRuns.find((r) => i >= r.from && i < r.to);
    const runId = run && m.parts[run.from]!.id;
    if (runId === p.id) {
      nodes.push(<Steps key={`steps-${p.id}`} run={run!} open={unfolded.has(p.id)} hold={hold} turn={(isOpen) => setUnfolded((ids) => changed(ids, p.id, isOpen))} />);
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

function changed(ids: ReadonlySet<string>, id: string, isIn: boolean): ReadonlySet<string> {
  const next = new Set(ids);
  if (isIn) next.add(id);
  else next.delete(id);
  return next;
}

/** Returns the outcome of the turn that ended before its tool did, or undefined if the tool ended by itself. */
function cutOff(p: Message["parts"][number], t: Turn | undefined): Outcome | undefined {
  return p.kind === "tool" && !p.state && t?.outcome && t.outcome !== "completed" && p.endAt !== undefined && p.endAt === t.endedAt ? t.outcome : undefined;
}

/** A media part can end before its file is available. */
const isLoading = (p: Message["parts"][number]): boolean => p.kind === "media" && !p.media?.url && !p.error;
