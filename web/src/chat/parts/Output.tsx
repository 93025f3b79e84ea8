// The output of a tool, shown as what it is, with its source on demand.

import { type ReactNode, useMemo, useState } from "react";

import { CopyButton } from "../../ui/Copy";
import { Enlargeable } from "../../ui/Enlargeable";
import { Icon } from "../../ui/Icon";
import { Lines } from "./Lines";
import { line, lines } from "./marks";
import { type Json, type Result, resultOf } from "./result";

/** The maximum numbers of shown entries of an object or list, and of lines of a diff. The source has all. */
const maxEntries = 200;
const maxLines = 2000;

const labels = { json: "JSON", diff: "diff", table: "table", pictures: "picture" } as const;

export function Output({ text }: { text: string }) {
  const [isSource, setSource] = useState(false);
  const result = useMemo(() => resultOf(text), [text]);
  if (result.kind === "text" || result.kind === "app") return <Lines name="Output" text={text} />;
  const button = <button type="button" className="quiet" aria-pressed={isSource} aria-label="Source of the output" title="Source" onClick={() => setSource(!isSource)}><Icon name="code" /></button>;
  return (
    <div className="field output">
      <header role="none"><span>Output</span><span className="kind">{labels[result.kind]}</span>{button}<CopyButton text={text} what="output" /></header>
      {isSource ? <Lines name="Source" text={text} from="start" /> : <div className={`view ${result.kind}`} tabIndex={0} role="group" aria-label="Output">{view(result, text)}</div>}
    </div>
  );
}

function view(result: Result, text: string): ReactNode {
  switch (result.kind) {
    case "json": return <Tree value={result.value} depth={0} />;
    case "diff": return <Diff text={text} />;
    case "table": return <Table rows={result.rows} />;
    case "pictures": return <>{result.text && <p>{lines(result.text)}</p>}{result.pictures.map((src, i) => <Enlargeable key={i} className="picture" src={src} alt={`Picture ${i + 1}`}><img src={src} alt={`Picture ${i + 1}`} loading="lazy" /></Enlargeable>)}</>;
  }
  return null;
}

function Tree({ value, depth, name }: { value: Json; depth: number; name?: string }): ReactNode {
  const [open, setOpen] = useState(depth < 2);
  const label = name !== undefined && <span className="key">{line(name, 120)}: </span>;
  if (typeof value !== "object" || value === null) return <div className="leaf">{label}<span data-type={value === null ? "null" : typeof value}>{typeof value === "string" ? `"${lines(value.slice(0, 10_000))}"` : String(value)}</span></div>;
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const count = `${entries.length} ${isList ? (entries.length === 1 ? "item" : "items") : entries.length === 1 ? "key" : "keys"}`;
  if (entries.length === 0) return <div className="leaf">{label}{isList ? "[]" : "{}"}</div>;
  return (
    <div className="branch">
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name="fold" />{label}<span className="muted">{isList ? `[${count}]` : `{${count}}`}</span></button>
      {open && <div className="children">{entries.slice(0, maxEntries).map(([k, v]) => <Tree key={k} name={k} value={v} depth={depth + 1} />)}{entries.length > maxEntries && <p className="muted">and {(entries.length - maxEntries).toLocaleString("en")} more; the source has all</p>}</div>}
    </div>
  );
}

function Diff({ text }: { text: string }) {
  const textLines = text.trimEnd().split("\n");
  const kind = (l: string) => (/^(?:diff |index |Index: |--- |\+\+\+ )/.test(l) ? "head" : l.startsWith("@@") ? "place" : l.startsWith("+") ? "added" : l.startsWith("-") ? "removed" : undefined);
  return <pre>{textLines.slice(0, maxLines).map((l, i) => <span key={i} className={kind(l)}>{lines(l)}{"\n"}</span>)}{textLines.length > maxLines && <span className="head">and {textLines.length - maxLines} more lines; the source has all</span>}</pre>;
}

function Table({ rows: [head, ...body] }: { rows: string[][] }) {
  const isNumber = (c: string) => /^[-+]?[\d.,]+%?$/.test(c.trim());
  return (
    <table>
      <thead><tr>{head!.map((c, i) => <th key={i} scope="col">{line(c)}</th>)}</tr></thead>
      <tbody>{body.map((r, i) => <tr key={i}>{r.map((c, j) => <td key={j} data-number={isNumber(c) || undefined}>{lines(c)}</td>)}</tr>)}</tbody>
    </table>
  );
}
