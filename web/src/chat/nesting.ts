// The position of turns inside other turns, and of turns without a message.

import type { Message, Turn } from "@leat/client";

/** The agents of the enclosing turns, outermost first, and their number. Empty for a top-level turn. */
export interface Around { inside?: string; depth?: number }

/** A greater depth means a circle, which no gateway sends. */
const maxDepth = 32;

export function around(turn: Turn, turnOf: ReadonlyMap<string, Turn>): Around {
  const names: string[] = [];
  for (let t = turn.parent; t && names.length < maxDepth; t = turnOf.get(t)?.parent) names.unshift(turnOf.get(t)?.agent ?? "agent");
  return names.length === 0 ? {} : { inside: names.join(" › "), depth: names.length };
}

/** Places the turns without a message: after the message that they answer, after the enclosing turn, or else at the end. */
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

/** Reports whether a turn was stopped before it began. Its message shows that. */
export const takenBack = (t: Turn): boolean => t.state === "ended" && t.outcome === "cancelled" && t.startedAt === undefined;
