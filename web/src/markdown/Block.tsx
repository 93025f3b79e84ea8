// The blocks of a text. A block, list item or table row renders again only if its own source changes, or if something that it
// refers to is defined.

import type { Token, Tokens } from "marked";
import { type ComponentType, Fragment, memo, type ReactNode, useEffect, useState } from "react";

import { Code } from "./Code";
import { FormulaBlock } from "./Formula";
import { endOfFence, type Open } from "./growing";
import { Inline } from "./Inline";
import { countBlock, deepest, isBlank, maxBlock, plain, unescape } from "./lex";

// level is that of a heading in the page, or 0 within another block: such a heading is not part of the outline.
interface BlockProps { token: Token; depth: number; definitions: number; live: boolean; level?: number }

export const Block = memo(function Block({ token, depth, definitions, live, level = 0 }: BlockProps): ReactNode {
  countBlock();
  const t = token as Tokens.Generic;
  if (t.raw.length > maxBlock && t.type !== "code" && t.type !== "list" && t.type !== "table" || depth > deepest) return <pre className="plain">{plain(t.raw)}</pre>;
  switch (t.type) {
    case "heading": {
      if (isBlank(t)) return null; // screen readers list every heading, also a blank one
      if (level === 0) return <p dir="auto" className="heading"><Inline tokens={t.tokens} /></p>;
      const Tag = `h${level}` as "h3";
      return <Tag dir="auto"><Inline tokens={t.tokens} /></Tag>;
    }
    case "code":
      return <Fence text={t.text as string} language={(t as Tokens.Code).lang ?? ""} live={live && !closed(t.raw)} />;
    case "formula":
      return <FormulaBlock text={t.text as string} live={live} />;
    case "blockquote":
      return <blockquote dir={direction(t.raw)}><Blocks tokens={t.tokens ?? []} depth={depth + 1} definitions={definitions} live={live} /></blockquote>;
    case "list":
      return <List list={t as unknown as Tokens.List} depth={depth} definitions={definitions} live={live} />;
    case "table":
      return <Table table={t as unknown as Tokens.Table} definitions={definitions} />;
    case "hr":
      return <hr />;
    case "def":
    case "space":
    case "footnote":
      return null;
    case "html":
      return <p dir="auto" className="html">{plain(t.raw.trim())}</p>;
  }
  return <p dir="auto">{t.tokens ? <Inline tokens={t.tokens} /> : unescape((t.text as string | undefined) ?? t.raw)}</p>;
}, (a, b) => a.live === b.live && a.depth === b.depth && a.level === b.level && isUnchanged(a.token, b.token, a.definitions === b.definitions));

// A fence holds code, or the source of a formula or a diagram.
function Fence({ text, language, live }: { text: string; language: string; live: boolean }) {
  const name = /^[a-z]*/i.exec(language)![0].toLowerCase();
  if (name === "math" || name === "katex") return <FormulaBlock text={text} live={live} />;
  return name === "mermaid" ? <DiagramFence text={text} live={live} /> : <Code text={text} language={language} live={live} />;
}

interface DiagramProps { text: string; live: boolean }

let loadedDiagram: ComponentType<DiagramProps> | undefined;

// A diagram is shown as code until the code that draws it is loaded.
function DiagramFence({ text, live }: DiagramProps) {
  const [Diagram, setDiagram] = useState(() => loadedDiagram);
  useEffect(() => {
    if (loadedDiagram) return;
    let isMounted = true;
    import("./Diagram").then((m) => {
      loadedDiagram = m.Diagram;
      if (isMounted) setDiagram(() => m.Diagram);
    }, () => {}); // the gateway can't be reached: it stays code
    return () => {
      isMounted = false;
    };
  }, []);
  return Diagram ? <Diagram text={text} live={live} /> : <Code text={text} language="mermaid" live={live} />;
}

/** Renders blocks inside another block. */
export function Blocks({ tokens, depth, definitions, live }: { tokens: Token[]; depth: number; definitions: number; live: boolean }): ReactNode {
  const last = tokens.findLastIndex((t) => t.type !== "space");
  return tokens.map((t, i) => (t.type === "space" ? null : <Block key={i} token={t} depth={depth} definitions={definitions} live={live && i === last} />));
}

// isUnchanged reports whether two tokens render the same: equal source, the same open end, and no reference to a new definition.
function isUnchanged(a: Open, b: Open, defined: boolean): boolean {
  return a === b || (a.raw === b.raw && a.open === b.open && (defined || !a.raw.includes("[")));
}

function closed(raw: string): boolean {
  const mark = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
  return !mark || endOfFence(raw.trimEnd(), mark);
}

// The direction of a list or quote is that of its first letters; paragraphs have their own direction.
const letters = /[\p{L}]/u;
const rightToLeft = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const direction = (raw: string): "rtl" | undefined => (rightToLeft.test(letters.exec(raw.slice(0, 400))?.[0] ?? "") ? "rtl" : undefined);

function List({ list, depth, definitions, live }: { list: Tokens.List; depth: number; definitions: number; live: boolean }) {
  const items = list.items.map((item, i) => <Item key={i} item={item} loose={list.loose} depth={depth} definitions={definitions} live={live && i === list.items.length - 1} />);
  const dir = direction(list.raw);
  return list.ordered ? <ol start={list.start === "" ? 1 : list.start} dir={dir}>{items}</ol> : <ul dir={dir}>{items}</ul>;
}

interface ItemProps { item: Tokens.ListItem; loose: boolean; depth: number; definitions: number; live: boolean }

const Item = memo(function Item({ item, loose, depth, definitions, live }: ItemProps) {
  countBlock();
  const last = item.tokens.findLastIndex((t) => t.type !== "space");
  return (
    <li className={item.task ? "task" : undefined}>
      {item.task && <span role="img" className={item.checked ? "ticked" : "unticked"} aria-label={item.checked ? "done" : "to do"} />}
      {item.tokens.map((t, i) => {
        if (t.type === "space" || (t.type) === "checkbox") return null;
        // The items of a tight list have no paragraphs.
        if (!loose && (t.type === "text" || t.type === "paragraph")) return <Fragment key={i}>{t.tokens ? <Inline tokens={t.tokens} /> : unescape((t as Tokens.Text).text)}</Fragment>;
        return <Block key={i} token={t} depth={depth + 1} definitions={definitions} live={live && i === last} />;
      })}
    </li>
  );
}, (a, b) => a.live === b.live && a.loose === b.loose && a.depth === b.depth && isUnchanged(a.item as unknown as Token, b.item as unknown as Token, a.definitions === b.definitions));

const alignment = (c: Tokens.TableCell) => c.align ?? undefined;

function Table({ table, definitions }: { table: Tokens.Table; definitions: number }) {
  return (
    <div className="table" tabIndex={0} role="group" aria-label="Table">
      <table dir={direction(table.raw)}>
        <thead><tr>{table.header.map((c, i) => <th key={i} scope="col" dir="auto" data-align={alignment(c)}><Inline tokens={c.tokens} /></th>)}</tr></thead>
        <tbody>{table.rows.map((row, i) => <Row key={i} row={row} definitions={definitions} />)}</tbody>
      </table>
    </div>
  );
}

const Row = memo(function Row({ row }: { row: Tokens.TableCell[]; definitions: number }) {
  countBlock();
  return <tr>{row.map((c, i) => <td key={i} dir="auto" data-align={alignment(c)}><Inline tokens={c.tokens} /></td>)}</tr>;
}, (a, b) => a.row === b.row || (a.row.length === b.row.length && a.row.every((c, i) => {
  const other = b.row[i]! as Tokens.TableCell & { open?: string };
  return c.text === other.text && (c as typeof other).open === other.open && (a.definitions === b.definitions || !c.text.includes("["));
})));
