// Selects the one argument that best describes a tool call.

import { formed, type Value } from "./forming";

const preferredKeys = ["command", "cmd", "file_path", "filepath", "path", "file", "url", "uri", "query", "pattern", "expression", "code", "prompt", "description", "name", "text"];

/**
 * The number of characters that are searched. The descriptive argument usually comes early, and the content of a written file may
 * be long.
 */
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

/** Texts up to this length are shortened at their end. */
const short = 24;

/** Splits a text in two, of which the first may be shortened, so that a path shows its beginning and its end. */
export function halves(text: string, maxLength = 400): { head: string; tail: string } {
  const characters = [...text.slice(0, 20 * maxLength)];
  const n = characters.length <= short ? 0 : Math.min(24, Math.floor(characters.length / 3));
  const shortened = characters.length > maxLength ? [...characters.slice(0, maxLength - n), "…", ...characters.slice(-n)] : characters;
  return { head: shortened.slice(0, shortened.length - n).join(""), tail: shortened.slice(shortened.length - n).join("") };
}
