import type { Conversation, ConversationState } from "@leat/client";
import { useEffect, useMemo, useState } from "react";

import { offFrame, onFrame } from "../frames";
import { theClient } from "../gateway";

/** Follows a conversation, if it exists, and renders it at most once a frame. */
export function useConversation(id: string, there: boolean): { conversation: Conversation; state: ConversationState } {
  const conversation = useMemo(() => theClient().conversation(id), [id]);
  const [state, setState] = useState<ConversationState>();
  useEffect(() => {
    if (!there) return;
    const draw = () => setState(conversation.state);
    const leave = conversation.subscribe(() => onFrame(draw));
    draw();
    return () => {
      leave();
      offFrame(draw);
    };
  }, [conversation, there]);
  // Before the first event, use the state that the client already has, such as pending messages.
  return { conversation, state: state ?? conversation.state };
}
