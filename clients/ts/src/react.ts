// React: a conversation as a hook. It needs react 18 or newer.

import { useCallback, useSyncExternalStore } from "react";

import type { Client } from "./client.js";
import type { ConnectionState } from "./connection.js";
import type { Conversation, ConversationState } from "./conversation.js";

export interface UseConversation extends ConversationState {
  /** The conversation, with its commands. */
  readonly conversation: Conversation;
  /** A turn is queued, running, or waiting for a person. */
  readonly busy: boolean;
}

/**
 * Follows a conversation while the component is mounted, and renders it again when it changes. Unchanged messages and turns are the
 * same objects as before, so that memo works on them. On a server the conversation is empty and loading.
 */
export function useConversation(client: Client, id: string): UseConversation {
  const conversation = client.conversation(id);
  const state = useSyncExternalStore(
    useCallback((onChange: () => void) => conversation.subscribe(onChange), [conversation]),
    () => conversation.state,
    () => conversation.state,
  );
  return { ...state, conversation, busy: state.turns.some((t) => t.state !== "ended") };
}

/** Returns the state of the client's connection. */
export function useConnection(client: Client): ConnectionState {
  return useSyncExternalStore(
    useCallback((onChange: () => void) => client.onState(onChange), [client]),
    () => client.state,
    () => "idle",
  );
}
