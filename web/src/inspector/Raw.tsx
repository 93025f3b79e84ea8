// The agent's original frames, for users who may see them, and the download of the turn's recording.

import type { Turn } from "@leat/client";
import { useState } from "react";

import { lines } from "../chat/parts/marks";
import { call, readBody, refusal } from "../gateway";
import { brief } from "../time";
import { Icon } from "../ui/Icon";
import { save } from "../ui/save";

interface Step { at: number; sent?: string; frame?: string; event?: string; events?: unknown[]; shown?: string; visible?: string; error?: string; lost?: number }
interface Explanation { dialect?: string; same: boolean; steps: Step[] }

/** The number of frames rendered at first, and added at a time. */
const firstCount = 50;
const nextCount = 200;

interface RawProps {
  turn: Turn;
  /** The beginning of the turn, and the arrival time of the selected event; undefined if none is selected. */
  begin: number; arrival: number | undefined;
}

export function Raw({ turn, begin, arrival }: RawProps) {
  const [explanation, setTold] = useState<Explanation>();
  const [showAll, setAll] = useState(false);
  const [error, setError] = useState("");
  const [count, setCount] = useState(firstCount);
  const ask = async (isFull: boolean) => {
    setError("");
    setAll(isFull);
    try {
      setTold(await call<Explanation>(`api/turns/${encodeURIComponent(turn.id)}/explain`));
    } catch (err) {
      setError(`Couldn’t load the agent’s frames: ${(err as Error).message}.`);
    }
  };
  const file = async (path: string, name: string) => {
    setError("");
    try {
      const { res, body } = await readBody(`api/turns/${encodeURIComponent(turn.id)}/${path}`);
      if (!res.ok) throw await refusal(res, body);
      save(body, "application/x-ndjson", name);
    } catch (err) {
      setError(`Couldn’t save the file: ${(err as Error).message}.`);
    }
  };
  // An event belongs to the last frame that had arrived by then.
  const step = arrival === undefined ? undefined : explanation?.steps.findLast((s) => s.frame !== undefined && s.at <= arrival);
  const steps = showAll ? explanation?.steps ?? [] : step ? [step] : [];
  return (
    <section className="raw" aria-label="Frames">
      <header>
        <h3>Frames</h3>
        <span>
          <button type="button" disabled={arrival === undefined} onClick={() => void ask(false)}>Frame of this event</button>
          <button type="button" onClick={() => void ask(true)}>All frames</button>
        </span>
      </header>
      {error && <p className="bad" role="alert">{error}</p>}
      {explanation && !explanation.same && <p className="warn">Decoding these frames now gives a different text than the stored one.</p>}
      {explanation && !showAll && !step && <p className="muted">No frame from before this event was kept.</p>}
      {steps.length > 0 && (
        <ol>
          {steps.slice(0, count).map((s, i) => (
            <li key={i}>
              <p className="muted">+{s.at - begin} ms{s.sent !== undefined ? ", sent" : s.event ? `, ${s.event}` : ""}</p>
              {s.sent !== undefined && <pre tabIndex={0} role="group" className="sent" aria-label="Sent">{lines(s.sent)}</pre>}
              {s.frame !== undefined && <pre tabIndex={0} role="group" aria-label="Received">{lines(s.frame)}</pre>}
              {s.lost !== undefined && <p className="warn">{s.lost} bytes were not kept.</p>}
              {s.shown && <p className="said">+ {lines(s.shown)}</p>}
              {s.visible !== undefined && <p className="said">= {lines(s.visible)}</p>}
              {s.error && <p className="bad">{s.error}</p>}
            </li>
          ))}
        </ol>
      )}
      {steps.length > count && <button type="button" className="quiet" onClick={() => setCount(count + nextCount)}>{steps.length - count} more</button>}
      <div className="files">
        <button type="button" onClick={() => void file("log", `${turn.id}.jsonl`)}><Icon name="save" /> Save as a recording</button>
        <button type="button" onClick={() => void file("recording", `${turn.id}.frames.jsonl`)}><Icon name="save" /> Save the agent’s frames</button>
      </div>
      <p className="muted">Play a recording with <code>leat serve --agent replay:FILE</code>. {turn.endedAt !== undefined && turn.startedAt !== undefined && `This one lasts ${brief(turn.endedAt - turn.startedAt)}.`}</p>
    </section>
  );
}
