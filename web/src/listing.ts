// What live events make of the list of conversations.

import type { LiveEvent, Summary } from "@leat/client";

/** The list after an event; ask says that the event is about what the list does not hold, so that the gateway has to be asked. */
export interface Listing { conversations: readonly Summary[]; ask: boolean }

/** Applies one event. What it does not change stays the same value. An event may come twice. */
export function applyEvent(entries: readonly Summary[], e: LiveEvent): Listing {
  switch (e.type) {
    case "conversation-updated": {
      const { id, title, createdAt, updatedAt } = e.conversation;
      return change(entries, id, (c) => ({ ...c, title, createdAt, updatedAt: laterTime(c.updatedAt, updatedAt) }));
    }
    case "conversation-deleted":
      return { conversations: entries.some((c) => c.id === e.conversationId) ? entries.filter((c) => c.id !== e.conversationId) : entries, ask: false };
    case "conversation-read":
      return change(entries, e.conversationId, ({ unread: _, ...c }) => ({ ...c, ...(e.unread && { unread: true }), read: e.read }));
    case "proactive-message":
      return change(entries, e.conversationId, touch(e.message.timestamp));
    case "agent_event":
      // The begin of a turn makes its conversation the most recently used.
      if (!e.roomId || e.stream !== "lifecycle") break;
      return { ...change(entries, e.roomId, touch(e.ts)), ask: false }; // what is shown again to those who come later may be of the deleted
    case "resync":
      return { conversations: entries, ask: true };
  }
  return { conversations: entries, ask: false };
}

const laterTime = (a: string, b: string): string => (Date.parse(b) > Date.parse(a) ? b : a);

const touch = (at: number) => (c: Summary): Summary => ({ ...c, updatedAt: laterTime(c.updatedAt, new Date(at).toISOString()) });

function change(entries: readonly Summary[], id: string, f: (c: Summary) => Summary): Listing {
  const before = entries.find((c) => c.id === id);
  if (!before) return { conversations: entries, ask: true };
  const updated = f(before);
  if (JSON.stringify(updated) === JSON.stringify(before)) return { conversations: entries, ask: false };
  return { conversations: entries.map((c) => (c === before ? updated : c)).sort(newest), ask: false };
}

// The last used first, as the gateway lists them.
const newest = (a: Summary, b: Summary): number => Date.parse(b.updatedAt) - Date.parse(a.updatedAt);
