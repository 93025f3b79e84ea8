// The progress of fine-tuning.

import { useState } from "react";

import { line } from "../chat/parts/marks";
import { clock } from "../time";
import { Icon } from "../ui/Icon";
import type { Training } from "./trainings";

export function Trainings({ trainings }: { trainings: readonly Training[] }) {
  return (
    <section aria-labelledby="trainings">
      <h2 id="trainings">Training</h2>
      <ul className="rows">{trainings.map((t) => <Row key={t.id} training={t} />)}</ul>
    </section>
  );
}

function Row({ training: t }: { training: Training }) {
  const [isOpen, setOpen] = useState(false);
  const name = t.id ? line(t.id, 80) : "Training";
  const percent = t.progress === undefined ? undefined : Math.round(t.progress * 100);
  return (
    <li>
      <p className="head">
        {t.steps.length > 1 ? <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}><Icon name="fold" /><span className="name">{name}</span></button> : <span className="name">{name}</span>}
        <span className="when muted">
          <span className={`dot ${t.state === "running" && !t.phase && percent === undefined ? "" : t.state}`} /> <span className={t.state === "failed" ? "bad" : undefined}>{line(t.phase || "reported", 60)}</span>
          {percent !== undefined && ` · ${percent} %`} · <time title={new Date(t.at).toLocaleString()}>{clock(t.at)}</time>
        </span>
      </p>
      {t.state !== "failed" && percent !== undefined && <progress aria-label={`Progress of ${name}`} max={100} value={percent} />}
      {t.message && <p className={t.state === "failed" ? "detail bad" : "detail"}>{line(t.message)}</p>}
      {isOpen && <ol className="steps">{t.steps.map((s) => <li key={s.event}><time>{clock(s.at)}</time> <span className="muted">{line(s.phase, 60)}</span> {line(s.message)}</li>)}</ol>}
    </li>
  );
}
