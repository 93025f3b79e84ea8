import type { Conversation, ConversationState } from "@leat/client";
import { useEffect, useMemo, useState } from "react";

import { offFrame, onFrame } from "../frames";
import { theClient } from "../gateway";

/** Follows a conversation, where there is one already, and draws it once a frame however often it changes. */
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
  // Until it is followed nothing has been drawn of what it holds already, such as what is on its way into it.
  return { conversation, state: state ?? conversation.state };
}
