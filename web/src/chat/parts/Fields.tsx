// Arguments and other values: one row for each field, with long values below the field's name.

import type { ReactNode } from "react";

import type { Value } from "./forming";
import { Lines } from "./Lines";
import { line } from "./marks";

/** The number of shown fields. Copying includes all of them. */
const maxFields = 60;

/** The maximum length of a value beside its name. */
const short = 160;

export function Fields({ value, live = false }: { value: Value; live?: boolean }): ReactNode {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return <Lines name="Value" text={textOf(value)} from="start" />;
  const keys = Object.keys(value);
  if (keys.length === 0) return <p className="muted">No arguments.</p>;
  return (
    <dl className="fields">
      {keys.slice(0, maxFields).map((k, i) => <Row key={k} name={k} value={value[k]!} live={live && i === keys.length - 1} />)}
      {keys.length > maxFields && <div><dt className="muted">and {keys.length - maxFields} more</dt><dd /></div>}
    </dl>
  );
}

function Row({ name, value, live }: { name: string; value: Value; live: boolean }) {
  const text = textOf(value);
  const label = line(name, 80);
  const isLong = text.length > short || text.includes("\n");
  return (
    <div data-long={isLong || undefined}>
      <dt><bdi>{label}</bdi></dt>
      <dd>{isLong ? <Lines name={label} text={text} from={live ? "end" : "start"} /> : <code dir="auto">{line(text) || "“”"}</code>}</dd>
    </div>
  );
}

export function textOf(v: Value): string {
  if (typeof v === "string") return v;
  if (v === null || typeof v !== "object") return String(v);
  const flat = JSON.stringify(v);
  return flat.length <= 80 ? flat : JSON.stringify(v, null, 2);
}
