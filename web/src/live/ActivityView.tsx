// What happens at the gateway outside of conversations: commands, installations of plugins, training, and the agents' heartbeats.

import { useEffect, useRef } from "react";

import { Connection } from "../chat/Connection";
import { line } from "../chat/parts/marks";
import { openTurn } from "../route";
import { useStore } from "../store";
import { ago, clock, lasted } from "../time";
import { useNow } from "../ui/Clock";
import { Icon } from "../ui/Icon";
import type { Beat } from "./beats";
import { Commands } from "./Commands";
import { activity, markSeen } from "./feed";
import { Installs } from "./Installs";
import { Trainings } from "./Trainings";
import "./activity.css";

export default function ActivityView({ openRail, isOperator }: { openRail: () => void; isOperator: boolean }) {
  const a = useStore(activity);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = "Activity – Leat";
    heading.current?.focus();
  }, []);
  const failures = a?.failures ?? 0;
  useEffect(() => {
    const see = () => { if (!document.hidden) markSeen(); };
    see();
    document.addEventListener("visibilitychange", see);
    return () => document.removeEventListener("visibilitychange", see);
  }, [failures]);
  const { commands = [], installs = [], trainings = [], beats = [] } = a ?? {};
  const isEmpty = commands.length + installs.length + trainings.length + beats.length === 0;
  return (
    <div className="talk activity">
      <header className="top">
        <button type="button" className="quiet only-narrow rail-opener" aria-label="Conversations" onClick={openRail}><Icon name="menu" /></button>
        <h1 ref={heading} tabIndex={-1}>Activity</h1>
        <span className="muted">{a?.agent && `${line(a.agent, 60)} · ${line(a.agentState, 40).replace("_", " ")}`}</span>
        <Connection />
      </header>
      <div className="scroll" tabIndex={0} role="group" aria-label="Activity">
        <div className="wide" aria-busy={!a}>
          {a && isEmpty && (
            <div className="empty muted">
              <p>Nothing has happened since this page was opened.</p>
              <p>{isOperator ? "Commands of agents, installations of plugins, training and heartbeats appear here while they happen." : "Training and heartbeats of your agents appear here while they happen."}</p>
            </div>
          )}
          {commands.length > 0 && <Commands commands={commands} />}
          {installs.length > 0 && <Installs installs={installs} />}
          {trainings.length > 0 && <Trainings trainings={trainings} />}
          {beats.length > 0 && <Beats beats={beats} />}
        </div>
      </div>
    </div>
  );
}

function Beats({ beats }: { beats: readonly Beat[] }) {
  const time = useNow();
  return (
    <section aria-labelledby="beats">
      <h2 id="beats">Agents</h2>
      <ul className="rows">
        {beats.map((b) => (
          <li key={b.conversation || b.id}>
            <p className="head">
              <span className="name">{line(b.status, 60)}</span>
              {b.channel && <span className="tag">{line(b.channel, 60)}</span>}
              {b.hasMedia && <span className="tag">media</span>}
              {b.conversation && <a href={openTurn(b.conversation)}>conversation</a>}
              <span className="when muted">{b.duration !== undefined && b.duration > 0 && `for ${lasted(b.duration)} · `}<time title={new Date(b.at).toLocaleString()}>{time - b.at < 60_000 ? clock(b.at) : `${ago(new Date(b.at).toISOString(), time)} ago`}</time></span>
            </p>
            {b.preview && <p className="detail">{line(b.preview)}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}
