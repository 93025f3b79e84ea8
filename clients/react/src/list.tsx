// The list of the user's conversations.

import type { Client, LiveEvent, LiveEvents, Summary } from "@leat/client";
import { type ComponentPropsWithoutRef, useEffect, useState } from "react";

import { useClient, useLive } from "./context.js";

export interface Conversations {
  /** Most recently used first; empty while loading. */
  readonly conversations: readonly Summary[];
  readonly isLoading: boolean;
  /** Why the last request failed. */
  readonly error?: Error;
}

// How often the list is loaded without live events, in milliseconds.
const interval = 15_000;
const listEvents: readonly LiveEvent["type"][] = ["conversation-updated", "conversation-deleted", "conversation-read", "proactive-message", "agent_event", "resync"];

/** Loads the list of conversations, and keeps it up to date while the component is mounted. */
export function useConversations(): Conversations {
  const client = useClient();
  const liveEvents = useLive();
  const [list, setList] = useState<Conversations>({ conversations: [], isLoading: true });
  useEffect(() => follow(client, liveEvents, setList), [client, liveEvents]);
  return list;
}

// follow loads the list now and after each event. Events during a request share the next one.
function follow(client: Client, liveEvents: LiveEvents | undefined, onList: (change: (list: Conversations) => Conversations) => void): () => void {
  let isStopped = false;
  let isLoading = false;
  let isStale = false;
  const load = async () => {
    isStale = isLoading;
    if (isLoading) return;
    isLoading = true;
    try {
      const conversations = await client.list();
      if (!isStopped) onList(() => ({ conversations, isLoading: false }));
    } catch (err) {
      if (!isStopped) onList((l) => ({ ...l, isLoading: false, error: err instanceof Error ? err : new Error(String(err)) }));
    }
    isLoading = false;
    if (isStale && !isStopped) void load();
  };
  void load();
  const leave = liveEvents
    ? [...listEvents.map((type) => liveEvents.on(type, (e) => {
      if (e.type !== "agent_event" || e.stream === "lifecycle") void load();
    })), liveEvents.onState((s) => s === "connected" && void load())]
    : [client.onState((s) => s === "connected" && void load())];
  const timer = liveEvents ? undefined : setInterval(() => void load(), interval);
  return () => {
    isStopped = true;
    clearInterval(timer);
    for (const end of leave) end();
  };
}

export interface ConversationListProps extends Omit<ComponentPropsWithoutRef<"nav">, "onSelect" | "children"> {
  /** The id of the open conversation. */
  selected?: string;
  onSelect: (id: string) => void;
}

/** The list as buttons in a nav; an unread conversation has the attribute data-unread. */
export function ConversationList({ selected, onSelect, ...props }: ConversationListProps) {
  const { conversations, error } = useConversations();
  return (
    <nav aria-label="Conversations" {...props}>
      {error && <p role="alert">{error.message}</p>}
      <ul>
        {conversations.map((c) => (
          <li key={c.id} data-unread={c.unread && c.id !== selected ? "" : undefined}>
            <button type="button" aria-current={c.id === selected ? "page" : undefined} onClick={() => onSelect(c.id)}>{c.title || "Untitled"}</button>
          </li>
        ))}
      </ul>
    </nav>
  );
}
