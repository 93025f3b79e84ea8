// The state of the gateway: running turns, readers, speed, agents, and failures.

import { useEffect, useRef, useState } from "react";

import { line } from "../chat/parts/marks";
import { openTurn } from "../route";
import { clock, elapsed, lasted, size } from "../time";
import { Icon } from "../ui/Icon";
import { Sparkline } from "../ui/Sparkline";
import { quantile, sum } from "./metrics";
import { Offers } from "./Offers";
import { Pairings } from "./Pairings";
import { course, type Health, maxReadings, type Sampled, type State, type Tile, tiles } from "./tiles";
import { useReadings } from "./useReadings";
import "../ui/ui.css";
import "./overview.css";

export default function Overview({ openRail }: { openRail: () => void }) {
  const { all, status, error } = useReadings();
  const [table, setTable] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = "Overview – Leat";
    heading.current?.focus();
  }, []);
  const latest = all.at(-1);
  const courses = tiles.map((t) => course(t, all));
  return (
    <div className="talk overview">
      <header className="top">
        <button type="button" className="quiet only-narrow rail-opener" aria-label="Conversations" onClick={openRail}><Icon name="menu" /></button>
        <h1 ref={heading} tabIndex={-1}>Overview</h1>
        <span className="muted">{status.uptime !== undefined && `up ${elapsed(status.uptime)}`}</span>
      </header>
      <div className="scroll">
        <div className="wide">
          {error && <p className="bad" role="status">{error}</p>}
          <div className="tiles">{tiles.map((t, i) => <Gauge key={t.name} tile={t} now={latest} values={courses[i]!} />)}</div>
          <section aria-labelledby="minute">
            <button type="button" className="link" aria-expanded={table} onClick={() => setTable(!table)}><span id="minute">{table ? "Hide table" : "View as table"}</span></button>
            {table && <Values all={all} courses={courses} />}
          </section>
          {latest && <Damaged now={latest} />}
          {latest && <Members now={latest} />}
          {latest && latest.look.channels.length > 0 && <Pairings now={latest.at} />}
          {latest && <Turns now={latest} />}
          {latest && latest.look.agents.length > 0 && <Offers agents={latest.look.agents.map((h) => h.name)} />}
          {latest && <Store now={latest} />}
        </div>
      </div>
    </div>
  );
}

/** A number with its chart of the last minute and its warning limit. */
function Gauge({ tile: t, now, values }: { tile: Tile; now: Sampled | undefined; values: readonly (number | undefined)[] }) {
  const v = values.at(-1);
  const isHigh = v !== undefined && v > t.limit;
  const text = now === undefined || v === undefined ? "–" : t.show(v, now);
  return (
    <section className="tile" aria-label={t.name} data-much={isHigh || undefined}>
      <h2>{t.name}</h2>
      <p className="value">{text}</p>
      <Sparkline values={values} slots={maxReadings} label={`${t.name} over the last minute; now ${text}`} {...(Number.isFinite(t.limit) && t.limit > 0 && { limit: t.limit })} />
      <p className={isHigh ? "words bad" : "words muted"}>{isHigh && <Icon name="warning" />}{t.words(now)}</p>
    </section>
  );
}

function Values({ all, courses }: { all: readonly (Sampled | undefined)[]; courses: readonly (readonly (number | undefined)[])[] }) {
  const rows = all.flatMap((r, i) => (r ? [{ r, i }] : [])).toReversed();
  return (
    <div className="table" tabIndex={0} role="group" aria-label="Values of the last minute">
      <table>
        <thead><tr><th scope="col">At</th>{tiles.map((t) => <th key={t.name} scope="col">{t.name}</th>)}</tr></thead>
        <tbody>
          {rows.map(({ r, i }) => (
            <tr key={r.at}><th scope="row">{new Date(r.at).toLocaleTimeString()}</th>{tiles.map((t, n) => <td key={t.name}>{courses[n]![i] === undefined ? "–" : t.show(courses[n]![i], r)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The conversations that can't be read. It renders nothing if there are none. */
function Damaged({ now }: { now: Sampled }) {
  const damaged = now.look.damaged ?? [];
  if (damaged.length === 0) return null;
  return (
    <section aria-labelledby="damaged">
      <h2 id="damaged">Damaged conversations</h2>
      <p className="bad" role="status"><Icon name="warning" /> {damaged.length === 1 ? "One conversation is" : `${damaged.length} conversations are`} damaged on disk and can’t be read. All others work.</p>
      <div className="table" tabIndex={0} role="group" aria-label="Damaged conversations">
        <table>
          <thead><tr><th scope="col">Conversation</th><th scope="col" className="number">From event</th><th scope="col">Error</th></tr></thead>
          <tbody>
            {damaged.map((d) => <tr key={d.conversation}><th scope="row">{line(d.conversation)}</th><td className="number">{d.seq ?? "–"}</td><td className="error">{line(d.error)}</td></tr>)}
          </tbody>
        </table>
      </div>
      <p className="muted">To read one, restore a backup from before into another folder. Then delete the damaged conversation here.</p>
    </section>
  );
}

const words: Record<State, string> = { up: "up", down: "down", failing: "failing", starting: "starting", unknown: "not checked yet" };
const dots: Record<State, string> = { up: "done", down: "failed", failing: "failed", starting: "running", unknown: "" };

function Members({ now }: { now: Sampled }) {
  const { agents, channels } = now.look;
  return (
    <section aria-labelledby="members">
      <h2 id="members">Agents and channels</h2>
      <div className="table" tabIndex={0} role="group" aria-label="Agents and channels">
        <table>
          <thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">State</th><th scope="col">Since</th><th scope="col">Last event</th><th scope="col" className="number">Turns</th><th scope="col" className="number">Failed</th><th scope="col" className="number">First text</th><th scope="col">Last error</th></tr></thead>
          <tbody>
            {agents.map((h) => <Member key={`a ${h.name}`} health={h} now={now} agent />)}
            {channels.map((h) => <Member key={`c ${h.name}`} health={h} now={now} />)}
          </tbody>
        </table>
      </div>
      {agents.length + channels.length === 0 && <p className="muted">No agents or channels</p>}
    </section>
  );
}

function Member({ health: h, now, agent = false }: { health: Health; now: Sampled; agent?: boolean }) {
  const of = (l: Record<string, string>) => agent && l["agent"] === h.name;
  const firstText = quantile([], now.samples.filter((s) => of(s.labels)), "leat_turn_first_text_seconds", 0.5);
  const age = (at: number) => elapsed(Math.max(0, now.look.now - at));
  return (
    <tr>
      <th scope="row">{line(h.name)}{h.default && <span className="muted"> default</span>}</th>
      <td>{agent ? h.kind : `channel, ${h.kind}`}</td>
      <td className={h.state === "down" || h.state === "failing" ? "bad" : undefined}><span className={`dot ${dots[h.state]}`} /> {words[h.state]}</td>
      <td>{clock(h.since)}, {age(h.since)}</td>
      <td>{h.lastEvent === undefined ? "–" : h.conversation ? <a href={openTurn(h.conversation)}>{age(h.lastEvent)} ago</a> : `${age(h.lastEvent)} ago`}</td>
      <td className="number">{agent ? sum(now.samples, "leat_turns_total", of) : "–"}</td>
      <td className="number">{agent ? sum(now.samples, "leat_turns_total", (l) => of(l) && (l["outcome"] === "failed" || l["outcome"] === "interrupted")) : "–"}</td>
      <td className="number">{firstText === undefined ? "–" : lasted(firstText * 1000)}</td>
      <td className="error">{h.error ? <>{h.errorConversation ? <a href={openTurn(h.errorConversation, h.errorTurn)}>{line(h.error)}</a> : line(h.error)}{h.errorAt !== undefined && <span className="muted"> · {age(h.errorAt)} ago</span>}</> : "–"}</td>
    </tr>
  );
}

const stateLabels = { queued: "queued", running: "running", waiting: "awaiting approval" };

function Turns({ now }: { now: Sampled }) {
  const { turns } = now.look;
  return (
    <section aria-labelledby="turns">
      <h2 id="turns">Open turns</h2>
      {turns.length === 0 ? <p className="muted">Nothing running</p> : (
        <div className="table" tabIndex={0} role="group" aria-label="Open turns">
          <table>
            <thead><tr><th scope="col">Conversation</th><th scope="col">Agent</th><th scope="col">State</th><th scope="col">For</th></tr></thead>
            <tbody>{turns.map((t) => (
              <tr key={t.turn}>
                <td><a href={openTurn(t.conversation, t.turn)}>{line(t.title || "New conversation")}</a></td><td>{line(t.agent ?? "")}</td>
                <td><span className={`dot ${t.state === "running" ? "running" : ""}`} /> {stateLabels[t.state]}</td><td>{elapsed(now.look.now - t.since)}</td>
              </tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Store({ now: { samples } }: { now: Sampled }) {
  const free = sum(samples, "leat_disk_free_bytes");
  const failed = sum(samples, "leat_commits_failed_total");
  return (
    <section aria-labelledby="store">
      <h2 id="store">Store</h2>
      <dl className="figures">
        <div><dt>On disk</dt><dd>{size(sum(samples, "leat_journal_bytes"))}</dd></div>
        <div><dt>Free</dt><dd>{free < 0 ? "unknown" : size(free)}</dd></div>
        <div><dt>Conversations in memory</dt><dd>{sum(samples, "leat_conversations_open")}</dd></div>
        <div><dt>Failed commits</dt><dd className={failed > 0 ? "bad" : undefined}>{failed}</dd></div>
        <div><dt>Webhooks waiting</dt><dd>{sum(samples, "leat_webhook_waiting")}</dd></div>
      </dl>
    </section>
  );
}
