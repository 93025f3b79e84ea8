// Who stopped a turn: the log names those who have a name. Of the others it is known which turns were stopped in this browser.

import type { Turn } from "@leat/client";

import { subject } from "../gateway";
import { persistent } from "../store";
import { line } from "./parts/marks";

const maxTurns = 200;

const stoppedHere = persistent<string[]>("stopped", [], (v): v is string[] => Array.isArray(v) && v.every((id) => typeof id === "string"));

export function noteStopped(turns: readonly string[]): void {
  stoppedHere.change((ids) => [...ids.filter((id) => !turns.includes(id)), ...turns].slice(-maxTurns));
}

/** Who stopped a turn, in words; empty where that is not known. */
export function stoppedBy(t: Turn): string {
  if (t.by) return t.by === subject() ? "you" : line(t.by, 60);
  return stoppedHere.get().includes(t.id) ? "you" : "";
}
