// Applies live events to the list of conversations.

import type { LiveEvent, Metadata, Summary } from "@leat/client";

/**
 * The list after an event. ask is true if the event concerns a conversation that the list lacks, so the list must be loaded again.
 */
export interface Listing { conversations: readonly Summary[]; ask: boolean }

/** Applies one event. Unchanged entries stay the same objects. Applying an event twice is harmless. */
export function applyEvent(entries: readonly Summary[], e: LiveEvent): Listing {
  switch (e.type) {
    case "conversation-updated": {
      const { id, title, createdAt, updatedAt, waiting, pinned, archived } = e.conversation;
      return change(entries, id, (c) => {
        const updated: Summary = { ...c, title, createdAt, updatedAt: laterTime(c.updatedAt, updatedAt) };
        if (waiting) updated.waiting = true;
        else delete updated.waiting;
        const metadata = withMarks(c.metadata, { pinned, archived });
        if (Object.keys(metadata).length > 0) updated.metadata = metadata;
        else delete updated.metadata;
        return updated;
      });
    }
    case "conversation-deleted":
      return { conversations: entries.some((c) => c.id === e.conversationId) ? entries.filter((c) => c.id !== e.conversationId) : entries, ask: false };
    case "conversation-read":
      return change(entries, e.conversationId, ({ unread: _, ...c }) => ({ ...c, ...(e.unread && { unread: true }), read: e.read }));
    case "proactive-message":
      return change(entries, e.conversationId, touch(e.message.timestamp));
    case "agent_event":
      // The start of a turn makes its conversation the most recently used one.
      if (!e.roomId || e.stream !== "lifecycle") break;
      // A replayed signal may be of a deleted conversation. A turn that ends while it waits for a person gets no answer, so only the list
      // shows whether the conversation still waits.
      return { ...change(entries, e.roomId, touch(e.ts)), ask: !!entries.find((c) => c.id === e.roomId)?.waiting };
    case "resync":
      return { conversations: entries, ask: true };
  }
  return { conversations: entries, ask: false };
}

// withMarks returns metadata with the marks of an event, which has only those that are set.
function withMarks(metadata: Metadata | undefined, marks: { pinned: boolean | undefined; archived: boolean | undefined }): Metadata {
  const updated = { ...metadata };
  for (const [name, isSet] of Object.entries(marks)) {
    if (isSet) updated[name] = true;
    else if (updated[name] === true) delete updated[name];
  }
  return updated;
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

// Most recently used first, as in the gateway's list.
const newest = (a: Summary, b: Summary): number => Date.parse(b.updatedAt) - Date.parse(a.updatedAt);
