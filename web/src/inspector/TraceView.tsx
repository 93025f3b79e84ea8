// The first tab of the inspector: the trace of a turn as a tree of spans, and the details of the selected one.

import type { Conversation, Turn } from "@leat/client";
import { type KeyboardEvent, useMemo, useRef, useState, useSyncExternalStore } from "react";

import { amount } from "../chat/UsageLabel";
import { textOf } from "../chat/Composer";
import { brief } from "../time";
import { CopyButton } from "../ui/Copy";
import { Icon } from "../ui/Icon";
import { Sheet } from "../ui/Sheet";
import { traceJSON } from "./export";
import { terms } from "./glossary";
import { allSpans, around, countOf, hitsOf, longestPause, nextHit, rowsOf } from "./rows";
import { Fact, SpanDetails } from "./SpanDetails";
import type { Span } from "./spans";
import { durationOf, type Selection, TraceTree } from "./TraceTree";
import { useSpans } from "./useSpans";

/** Windows on which the bars are below the names, and the details in a sheet; inspector.css has the same width. */
const narrow = matchMedia("(max-width: 759px)");
const subscribe = (tell: () => void): (() => void) => {
  narrow.addEventListener("change", tell);
  return () => narrow.removeEventListener("change", tell);
};

export function TraceView({ conversation, turn }: { conversation: Conversation; turn: Turn }) {
  const question = turn.answers === undefined ? undefined : conversation.state.messages.find((m) => m.id === turn.answers);
  const { root, isLoaded, error, time, retry } = useSpans(conversation, turn, question && textOf(question));
  return (
    <div className="trace">
      {error && <p className="bad" role="alert">{error} <button type="button" className="link" onClick={retry}>Retry</button></p>}
      {root ? <Trace root={root} time={time} conversation={conversation.id} /> : !error && <p className="muted">{!isLoaded ? "Loading the trace…" : turn.state === "queued" ? "This turn hasn’t started yet." : "No events yet."}</p>}
    </div>
  );
}

function Trace({ root, time, conversation }: { root: Span; time: number; conversation: string }) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [selectedId, setSelected] = useState(root.id);
  const [text, setText] = useState("");
  const [isSheetOpen, setSheetOpen] = useState(false);
  const isNarrow = useSyncExternalStore(subscribe, () => narrow.matches);
  const details = useRef<HTMLElement>(null);
  const rows = useMemo(() => rowsOf(root, folded), [root, folded]);
  const hits = useMemo(() => hitsOf(root, text), [root, text]);
  const spans = useMemo(() => new Map(allSpans(root).map((s) => [s.id, s])), [root]);
  // A selected span can disappear, and be inside a span that was folded: then the next one around it is selected.
  const selected = !spans.has(selectedId) ? root.id : around(root, selectedId).find((id) => folded.has(id)) ?? selectedId;
  const span = spans.get(selected)!;
  const setOpen = (id: string, isOpen: boolean) => setFolded((f) => new Set(isOpen ? [...f].filter((x) => x !== id) : [...f, id]));
  const show = (id: string) => {
    setSelected(id);
    const parents = around(root, id);
    if (parents.some((p) => folded.has(p))) setFolded((f) => new Set([...f].filter((x) => !parents.includes(x))));
  };
  const select = (id: string, gesture: Selection) => {
    setSelected(id);
    if (gesture === "move") return;
    if (isNarrow) setSheetOpen(true);
    else if (gesture === "enter") details.current?.focus();
  };
  const go = (step: 1 | -1) => {
    const id = nextHit(root, hits, selected, step);
    if (id) show(id);
  };
  const place = [...hits.keys()].indexOf(selected);
  const search = (e: KeyboardEvent) => {
    if (e.key === "Enter" && !e.nativeEvent.isComposing) {
      e.preventDefault();
      go(e.shiftKey ? -1 : 1);
    } else if (e.key === "Escape" && text) {
      e.preventDefault();
      e.stopPropagation();
      setText("");
    }
  };
  return (
    <>
      <Summary root={root} time={time} />
      <div className="tools" role="search" aria-label="Spans">
        <label className="seek"><Icon name="search" /><input type="search" aria-label="Search in spans" placeholder="Search in spans" value={text} onChange={(e) => setText(e.target.value)} onKeyDown={search} /></label>
        {text.trim() && (
          <>
            <span className="count" role="status">{hits.size === 0 ? "No hits" : place >= 0 ? `${place + 1} of ${hits.size}` : `${hits.size} ${hits.size === 1 ? "hit" : "hits"}`}</span>
            <button type="button" className="quiet up" aria-label="Previous hit" title="Previous hit (Shift+Enter)" disabled={hits.size === 0} onClick={() => go(-1)}><Icon name="down" /></button>
            <button type="button" className="quiet" aria-label="Next hit" title="Next hit (Enter)" disabled={hits.size === 0} onClick={() => go(1)}><Icon name="down" /></button>
          </>
        )}
        <CopyButton what="trace as JSON" text={() => traceJSON(root, conversation)} />
      </div>
      <TraceTree rows={rows} selected={selected} select={select} setOpen={setOpen} hits={hits} text={text} time={time} isNarrow={isNarrow} />
      {isNarrow ? isSheetOpen && <Sheet name="Span details" className="span" close={() => setSheetOpen(false)}><SpanDetails key={selected} span={span} begin={root.start} time={time} /></Sheet>
        : <section ref={details} className="span-details" aria-label="Span details" tabIndex={0}><SpanDetails key={selected} span={span} begin={root.start} time={time} /></section>}
    </>
  );
}

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function Summary({ root, time }: { root: Span; time: number }) {
  const u = root.usage;
  const tools = countOf(root, "tool");
  return (
    <dl className="summary">
      <Fact name="Duration" text={terms.duration}>{brief(durationOf(root, time))}</Fact>
      <Fact name="First token" text={terms.first}>{root.first === undefined ? "–" : brief(root.first - root.start)}</Fact>
      <Fact name="Longest pause" text={terms.pause}>{brief(longestPause(root, time))}</Fact>
      <Fact name="Steps" text={terms.steps}>{root.children.length}</Fact>
      <Fact name="Tools" text={terms.tools}>{tools}</Fact>
      <Fact name="Tokens" text={terms.tokens}>{u?.input !== undefined || u?.output !== undefined ? `${compact.format(u.input ?? 0)} in, ${compact.format(u.output ?? 0)} out` : "–"}</Fact>
      <Fact name="Cost" text={terms.cost}>{u?.cost ? amount(u.cost) : "–"}</Fact>
    </dl>
  );
}
