// Recognizes what a tool's output is: an app, a picture, JSON, a diff, a table, or text.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type Result =
  | { kind: "app"; html: string; title: string; content: Json }
  | { kind: "pictures"; pictures: string[]; text: string }
  | { kind: "json"; value: Json }
  | { kind: "diff" }
  | { kind: "table"; rows: string[][] }
  | { kind: "text" };

/** Larger outputs are text. Characters. */
const maxParsed = 500_000;
export const maxApp = 1_000_000;
const maxRows = 500;

const picture = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]+$/;

/** Reports whether an output may be an app, without parsing it. */
export const mayBeApp = (text: string): boolean => text.length <= 2 * maxApp && (/^\s*(?:<!doctype html|<html[\s>])/i.test(text) || (/^\s*[[{]/.test(text) && /"ui:\/\/|"text\/html/.test(text)));

export function resultOf(text: string): Result {
  const trimmed = text.trim();
  if (/^(?:<!doctype html|<html[\s>])/i.test(trimmed) && trimmed.length <= maxApp) return { kind: "app", html: trimmed, title: titleOf(trimmed), content: { content: [] } };
  if (picture.test(trimmed)) return { kind: "pictures", pictures: [trimmed], text: "" };
  if (/^[[{]/.test(trimmed) && trimmed.length <= 2 * maxApp) {
    const value = parse(trimmed);
    if (value !== undefined) return ofContent(value) ?? (trimmed.length <= maxParsed ? { kind: "json", value } : { kind: "text" });
  }
  if (trimmed.length > maxParsed) return { kind: "text" };
  if (/^(?:diff --git |Index: |--- \S)/.test(trimmed) && /^@@ -\d/m.test(trimmed)) return { kind: "diff" };
  const rows = table(trimmed);
  return rows ? { kind: "table", rows } : { kind: "text" };
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined; // not JSON: text that begins with a bracket
  }
}

const isObject = (v: Json | undefined): v is { [key: string]: Json } => typeof v === "object" && v !== null && !Array.isArray(v);

/** Recognizes the content of an MCP tool result: an app's resource, or pictures. */
function ofContent(value: Json): Result | undefined {
  const list = Array.isArray(value) ? value : isObject(value) && Array.isArray(value.content) ? value.content : [value];
  const items = list.filter(isObject);
  for (const { type, resource } of items) {
    if (type !== "resource" || !isObject(resource)) continue;
    const { uri, mimeType, text, blob } = resource;
    if (!(typeof uri === "string" && uri.startsWith("ui://")) && !(typeof mimeType === "string" && mimeType.startsWith("text/html"))) continue;
    const html = typeof text === "string" ? text : typeof blob === "string" ? decode(blob) : "";
    if (html && html.length <= maxApp) return { kind: "app", html, title: titleOf(html) || (typeof uri === "string" ? uri : ""), content: isObject(value) && Array.isArray(value.content) ? value : { content: list } };
  }
  const pictures = items.flatMap(({ type, data, mimeType }) => (type === "image" && typeof mimeType === "string" && typeof data === "string" ? [`data:${mimeType};base64,${data}`] : [])).filter((p) => picture.test(p));
  return pictures.length > 0 ? { kind: "pictures", pictures, text: items.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : [])).join("\n") } : undefined;
}

function decode(blob: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(blob), (c) => c.charCodeAt(0)));
  } catch {
    return ""; // not Base64
  }
}

const titleOf = (html: string): string => /<title[^>]*>([^<]{1,200})<\/title>/i.exec(html.slice(0, 5000))?.[1]?.trim() ?? "";

/** Parses comma, semicolon or tab separated values; undefined if the lines have no common number of fields. */
function table(text: string): string[][] | undefined {
  const firstLine = text.slice(0, text.indexOf("\n") + 1);
  for (const separator of ["\t", ";", ","]) {
    if (!firstLine.includes(separator)) continue;
    const rows = fields(text, separator);
    const width = rows[0]?.length ?? 0;
    if (rows.length >= 3 && width >= 2 && rows.every((r) => r.length === width) && rows[0]!.every((h) => h.trim() !== "" && h.length <= 60)) return rows.slice(0, maxRows + 1);
  }
  return undefined;
}

function fields(text: string, separator: string): string[][] {
  const rows: string[][] = [[""]];
  let isQuoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    const row = rows.at(-1)!;
    const at = row.length - 1;
    if (c === '"' && isQuoted && text[i + 1] === '"') row[at] += text[++i]!;
    else if (c === '"' && (isQuoted || row[at] === "")) isQuoted = !isQuoted;
    else if (isQuoted) row[at] += c;
    else if (c === separator) row.push("");
    else if (c === "\n") rows.push([""]);
    else if (c !== "\r") row[at] += c;
  }
  return rows;
}
