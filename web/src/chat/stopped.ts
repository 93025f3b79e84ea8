// The user who stopped a turn. The log contains the name if the user has one; for others, the page remembers the turns that were
// stopped in this browser.

import type { Turn } from "@leat/client";

import { subject } from "../gateway";
import { persistent } from "../store";
import { line } from "./parts/marks";

const maxTurns = 200;

const stoppedHere = persistent<string[]>("stopped", [], (v): v is string[] => Array.isArray(v) && v.every((id) => typeof id === "string"));

export function noteStopped(turns: readonly string[]): void {
  stoppedHere.change((ids) => [...ids.filter((id) => !turns.includes(id)), ...turns].slice(-maxTurns));
}

/** Describes the user who stopped a turn; empty if unknown. */
export function stoppedBy(t: Turn): string {
  if (t.by) return t.by === subject() ? "you" : line(t.by, 60);
  return stoppedHere.get().includes(t.id) ? "you" : "";
}
