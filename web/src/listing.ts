// What live events make of the list of conversations.

import type { LiveEvent, Summary } from "@leat/client";

/** The list after an event; ask says that the event is about what the list does not hold, so that the gateway has to be asked. */
export interface Listing { conversations: readonly Summary[]; ask: boolean }

/** Applies one event. What it does not change stays the same value. An event may come twice. */
export function applyEvent(all: readonly Summary[], e: LiveEvent): Listing {
  switch (e.type) {
    case "conversation-updated": {
      const { id, title, createdAt, updatedAt } = e.conversation;
      return change(all, id, (c) => ({ ...c, title, createdAt, updatedAt: later(c.updatedAt, updatedAt) }));
    }
    case "conversation-deleted":
      return { conversations: all.some((c) => c.id === e.conversationId) ? all.filter((c) => c.id !== e.conversationId) : all, ask: false };
    case "conversation-read":
      return change(all, e.conversationId, ({ unread: _, ...c }) => ({ ...c, ...(e.unread && { unread: true }), read: e.read }));
    case "proactive-message":
      return change(all, e.conversationId, used(e.message.timestamp));
    case "agent_event":
      // The begin of a turn makes its conversation the most recently used.
      if (!e.roomId || e.stream !== "lifecycle") break;
      return { ...change(all, e.roomId, used(e.ts)), ask: false }; // what is shown again to those who come later may be of the deleted
    case "resync":
      return { conversations: all, ask: true };
  }
  return { conversations: all, ask: false };
}

const later = (a: string, b: string): string => (Date.parse(b) > Date.parse(a) ? b : a);

const used = (at: number) => (c: Summary): Summary => ({ ...c, updatedAt: later(c.updatedAt, new Date(at).toISOString()) });

function change(all: readonly Summary[], id: string, f: (c: Summary) => Summary): Listing {
  const before = all.find((c) => c.id === id);
  if (!before) return { conversations: all, ask: true };
  const now = f(before);
  if (JSON.stringify(now) === JSON.stringify(before)) return { conversations: all, ask: false };
  return { conversations: all.map((c) => (c === before ? now : c)).sort(newest), ask: false };
}

// The last used first, as the gateway lists them.
const newest = (a: Summary, b: Summary): number => Date.parse(b.updatedAt) - Date.parse(a.updatedAt);
