// The position of turns inside other turns, and of turns without a message.

import type { Message, Turn } from "@leat/client";

/** The agents around a turn, outermost first, and how many they are; nothing for one that lies in none. */
export interface Around { inside?: string; depth?: number }

/** More are a circle, which no gateway makes. */
const maxDepth = 32;

export function around(turn: Turn, turnOf: ReadonlyMap<string, Turn>): Around {
  const names: string[] = [];
  for (let t = turn.parent; t && names.length < maxDepth; t = turnOf.get(t)?.parent) names.unshift(turnOf.get(t)?.agent ?? "agent");
  return names.length === 0 ? {} : { inside: names.join(" › "), depth: names.length };
}

/** The turns without a message: below what they answer, or below the turn around them; the rest at the end. */
export function answerless(turns: readonly Turn[], messages: readonly Message[], lastOf: ReadonlyMap<string, string>): { after: Map<string, Turn[]>; end: Turn[] } {
  const after = new Map<string, Turn[]>();
  const end: Turn[] = [];
  const ids = new Set(messages.map((m) => m.id));
  for (const t of turns) {
    if (lastOf.has(t.id) || t.state === "queued" || takenBack(t) || (t.parent && t.state === "ended" && t.outcome === "completed")) continue;
    const below = t.answers && ids.has(t.answers) ? t.answers : t.parent ? lastOf.get(t.parent) : undefined;
    if (below) after.set(below, [...(after.get(below) ?? []), t]);
    else if (t.state !== "ended") end.push(t);
    else if ((!t.answers && t === turns.at(-1)) || messages.length === 0) end.push(t);
  }
  return { after, end };
}

/** Whether a turn was stopped before it began: its message says so. */
export const takenBack = (t: Turn): boolean => t.state === "ended" && t.outcome === "cancelled" && t.startedAt === undefined;
