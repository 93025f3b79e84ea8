// The list of conversations. It is loaded when the live events connect, and then kept up to date by them. It is loaded again only
// if an event concerns an unknown conversation, or if events were lost.

import { type Agent, LeatError, type LiveEvent, type Summary } from "@leat/client";

import { draft } from "./chat/draft";
import { call, theClient, theLive } from "./gateway";
import { applyEvent } from "./listing";
import { route } from "./route";
import { Store } from "./store";

export type Entry = Summary;

export interface List { loaded: boolean; conversations: readonly Entry[]; agents: readonly Agent[]; error?: string }

export const list = new Store<List>({ loaded: false, conversations: [], agents: [] });

/** How often the list is loaded while there are no live events, for example behind a proxy that blocks WebSockets. Milliseconds. */
const interval = 15_000;
let pendingRequest: Promise<void> | undefined;
let isStale = false;
let lateEvents: LiveEvent[] = []; // events that arrived while the list was loading, which the response may lack

/** Loads the list. Calls during a request share one further request. */
export function refresh(): Promise<void> {
  if (pendingRequest) {
    isStale = true;
    return pendingRequest;
  }
  lateEvents = [];
  pendingRequest = ask().finally(() => {
    pendingRequest = undefined;
    if (isStale) {
      isStale = false;
      void refresh();
    }
  });
  return pendingRequest;
}

async function ask(): Promise<void> {
  try {
    const [conversations, agents] = await Promise.all([theClient().list(), theClient().agents()]);
    const merged = lateEvents.reduce((l, e) => applyEvent(l, e).conversations, conversations as readonly Entry[]);
    list.change((l) => ({ loaded: true, conversations: keepIfEqual(l.conversations, merged), agents: keepIfEqual(l.agents, agents) }));
    void sweep(merged);
  } catch (err) {
    list.change((l) => ({ ...l, error: err instanceof Error ? err.message : String(err) }));
  }
}

// Deletes the drafts of conversations that were deleted while the page was closed. The list is limited, so each conversation that
// is not in it is checked once.
const checkedIds = new Set<string>();

async function sweep(entries: readonly Entry[]): Promise<void> {
  const listedIds = new Set(entries.map((c) => c.id));
  for (const id of draft.all()) {
    if (listedIds.has(id)) checkedIds.delete(id);
    else if (!checkedIds.has(id) && !isOpen(id) && theClient().conversation(id).state.pending.length === 0) {
      checkedIds.add(id);
      await call(`api/conversations/${encodeURIComponent(id)}`).catch((err: unknown) => {
        if (err instanceof LeatError && (err.reason === "not_found" || err.reason === "deleted")) draft.forget(id);
        else checkedIds.delete(id);
      });
    }
  }
}

// isOpen reports whether a conversation is open here. Its view manages its own draft.
function isOpen(id: string): boolean {
  const at = route.get();
  return at.view === "chat" && at.id === id;
}

// Unchanged entries stay the same objects, so that they aren't rendered again.
function keepIfEqual<T>(before: readonly T[], next: readonly T[]): readonly T[] {
  return JSON.stringify(before) === JSON.stringify(next) ? before : next;
}

function take(e: LiveEvent): void {
  if (e.type === "conversation-deleted") draft.forget(e.conversationId);
  if (pendingRequest) lateEvents.push(e);
  const l = list.get();
  if (!l.loaded) return;
  const { conversations, ask: unknown } = applyEvent(l.conversations, e);
  if (conversations !== l.conversations) list.set({ ...l, conversations });
  if (unknown) void refresh();
}

const kinds = ["conversation-updated", "conversation-deleted", "conversation-read", "proactive-message", "agent_event", "resync"] as const;

/** Keeps the list up to date until the returned function is called. */
export function follow(): () => void {
  const client = theClient();
  const events = theLive();
  const leaves = [
    ...kinds.map((k) => events.on(k, take)),
    events.onState((s) => {
      if (s === "connected") void refresh(); // earlier events may be lost
    }),
    client.onState((s) => {
      if (s === "connected" && events.state !== "connected") events.connect(); // don't wait for its next retry
    }),
  ];
  events.connect();
  void refresh();
  const tick = setInterval(() => {
    if (!document.hidden && events.state !== "connected" && client.state === "connected") void refresh();
  }, interval);
  return () => {
    clearInterval(tick);
    for (const leave of leaves) leave();
  };
}
