// The one argument that says what a call of a tool is about.

import { formed, type Value } from "./forming";

const preferredKeys = ["command", "cmd", "file_path", "filepath", "path", "file", "url", "uri", "query", "pattern", "expression", "code", "prompt", "description", "name", "text"];

/** How much of an input is looked at: what tells comes early, and a file that is written may be long. */
const prefixLength = 4096;

export function argument(input: string | undefined): string | undefined {
  if (!input) return undefined;
  const { value } = formed(input.slice(0, prefixLength));
  if (value === undefined) return undefined;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return words(value);
  const keys = Object.keys(value);
  for (const key of [...preferredKeys.filter((k) => keys.includes(k)), ...keys]) {
    const text = words(value[key]!);
    if (text) return text;
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
export function halves(text: string, maxLength = 400): { head: string; tail: string } {
  const characters = [...text.slice(0, 20 * maxLength)];
  const n = characters.length <= short ? 0 : Math.min(24, Math.floor(characters.length / 3));
  const shortened = characters.length > maxLength ? [...characters.slice(0, maxLength - n), "…", ...characters.slice(-n)] : characters;
  return { head: shortened.slice(0, shortened.length - n).join(""), tail: shortened.slice(shortened.length - n).join("") };
}
