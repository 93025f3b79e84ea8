// The inspector of a turn: its trace, and the events that it consists of.

import type { Conversation, Turn } from "@leat/client";
import { type PointerEvent, useLayoutEffect, useRef, useState } from "react";

import { persistent, useStore } from "../store";
import { Icon } from "../ui/Icon";
import { Tabs } from "../ui/Tabs";
import { EventsView } from "./EventsView";
import { TraceView } from "./TraceView";
import "../ui/ui.css";
import "./inspector.css";
import "./trace.css";

/** The minimum and maximum width in pixels, and the step of the arrow keys. */
const narrowest = 360;
const widest = 720;
const step = 24;

const width = persistent("inspector", 480, (v): v is number => typeof v === "number" && v >= narrowest && v <= widest);

const tabs = [{ id: "trace", name: "Trace" }, { id: "events", name: "Events" }] as const;

interface InspectorProps { conversation: Conversation; turn: Turn; close: () => void }

export default function Inspector({ conversation, turn, close }: InspectorProps) {
  const [tab, setTab] = useState<"trace" | "events">("trace");
  const wide = useStore(width);
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []); // at once, so that the first key already belongs to the inspector
  const isLive = turn.state !== "ended";
  return (
    <aside className="inspector" aria-label="Answer details" style={{ "--inspector": `${wide}px` } as React.CSSProperties} onKeyDown={(e) => { if (e.key === "Escape") { e.stopPropagation(); close(); } }}>
      <Edge wide={wide} />
      <header>
        <h2 ref={heading} tabIndex={-1}>Answer details</h2>
        {isLive && <span className="muted"><span className="dot running" /> running</span>}
        <button type="button" className="quiet" aria-label="Close" title="Close" onClick={close}><Icon name="close" /></button>
      </header>
      <Tabs label="Views of the answer" tabs={tabs} selected={tab} select={setTab}>
        {tab === "trace" ? <TraceView conversation={conversation} turn={turn} /> : <EventsView conversation={conversation} turn={turn} />}
      </Tabs>
    </aside>
  );
}

/** The draggable edge that changes the width. */
function Edge({ wide }: { wide: number }) {
  const setWidth = (n: number) => width.set(Math.min(widest, Math.max(narrowest, Math.round(n))));
  const drag = (e: PointerEvent<HTMLDivElement>) => {
    if (e.currentTarget.hasPointerCapture(e.pointerId)) setWidth(e.currentTarget.parentElement!.getBoundingClientRect().right - e.clientX);
  };
  return (
    <div className="edge" role="separator" aria-orientation="vertical" aria-label="Width" aria-valuemin={narrowest} aria-valuemax={widest} aria-valuenow={wide} tabIndex={0}
      onPointerDown={(e) => { e.currentTarget.setPointerCapture(e.pointerId); e.preventDefault(); }} onPointerMove={drag}
      onKeyDown={(e) => { if (e.key === "ArrowLeft") setWidth(wide + step); else if (e.key === "ArrowRight") setWidth(wide - step); }} />
  );
}
