// The one argument that says what a call of a tool is about.

import { formed, type Value } from "./forming";

const telling = ["command", "cmd", "file_path", "filepath", "path", "file", "url", "uri", "query", "pattern", "expression", "code", "prompt", "description", "name", "text"];

/** How much of an input is looked at: what tells comes early, and a file that is written may be long. */
const enough = 4096;

export function argument(input: string | undefined): string | undefined {
  if (!input) return undefined;
  const { value } = formed(input.slice(0, enough));
  if (value === undefined) return undefined;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return words(value);
  const keys = Object.keys(value);
  for (const key of [...telling.filter((k) => keys.includes(k)), ...keys]) {
    const said = words(value[key]!);
    if (said) return said;
  }
  return undefined;
}

function words(v: Value): string | undefined {
  if (typeof v === "string") return v.trim() || undefined;
  if (Array.isArray(v) && v.length > 0 && v.every((w) => typeof w === "string" || typeof w === "number")) return v.join(" ");
  return undefined;
}

/** So many characters are cut at their end, as any other text. */
const short = 24;

/** A text in two pieces, of which the first may be cut: so that a path shows where it begins and how it ends. */
export function halves(text: string, most = 400): { head: string; tail: string } {
  const all = [...text.slice(0, 20 * most)];
  const n = all.length <= short ? 0 : Math.min(24, Math.floor(all.length / 3));
  const cut = all.length > most ? [...all.slice(0, most - n), "…", ...all.slice(-n)] : all;
  return { head: cut.slice(0, cut.length - n).join(""), tail: cut.slice(cut.length - n).join("") };
}
