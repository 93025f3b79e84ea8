// React: a conversation as a hook. Beside the client it needs react, 18 or newer.

import { useCallback, useSyncExternalStore } from "react";

import type { Client } from "./client.js";
import type { ConnectionState } from "./connection.js";
import type { Conversation, ConversationState } from "./conversation.js";

export interface UseConversation extends ConversationState {
  /** What can be done in it. */
  readonly conversation: Conversation;
  /** A turn is queued, runs, or waits for a person. */
  readonly busy: boolean;
}

/**
 * Follows a conversation while the component is mounted, and draws it again when it changes. Messages and turns that have not
 * changed are the same objects as before, so that memo works on them. On a server it is empty and loading.
 */
export function useConversation(client: Client, id: string): UseConversation {
  const conversation = client.conversation(id);
  const state = useSyncExternalStore(
    useCallback((changed: () => void) => conversation.subscribe(changed), [conversation]),
    () => conversation.state,
    () => conversation.state,
  );
  return { ...state, conversation, busy: state.turns.some((t) => t.state !== "ended") };
}

/** Whether the client is connected. */
export function useConnection(client: Client): ConnectionState {
  return useSyncExternalStore(
    useCallback((changed: () => void) => client.onState(changed), [client]),
    () => client.state,
    () => "idle",
  );
}
