// The client and the conversation that the components of a page share.

import type { Client, LiveEvents } from "@leat/client";
import { useConversation, type UseConversation } from "@leat/client/react";
import { createContext, type ReactNode, useContext, useEffect, useMemo } from "react";

interface Gateway { client: Client; live?: LiveEvents | undefined }

const GatewayContext = createContext<Gateway | undefined>(undefined);
const ThreadContext = createContext<UseConversation | undefined>(undefined);

export interface LeatProviderProps {
  client: Client;
  /** With live events the list of conversations is up to date within a moment, else within 15 seconds. */
  live?: LiveEvents;
  children: ReactNode;
}

/** Provides the client for the components inside. Client and live events belong to the application, which closes them. */
export function LeatProvider({ client, live, children }: LeatProviderProps) {
  const gateway = useMemo(() => ({ client, live }), [client, live]);
  return <GatewayContext.Provider value={gateway}>{children}</GatewayContext.Provider>;
}

function useGateway(): Gateway {
  const gateway = useContext(GatewayContext);
  if (!gateway) throw new Error("this component of @leat/react must be inside a LeatProvider");
  return gateway;
}

export const useClient = (): Client => useGateway().client;
export const useLive = (): LiveEvents | undefined => useGateway().live;

export interface ThreadProps {
  /** The conversation's id. The conversation is created if it does not exist. */
  id: string;
  /** Its title and agent, if it is created. */
  title?: string;
  agent?: string;
  children: ReactNode;
}

/** Opens a conversation, and follows it for the components inside while it is mounted. */
export function Thread({ id, title, agent, children }: ThreadProps) {
  const client = useClient();
  // Before the effect of useConversation, which would not find a conversation that isn't being created.
  useEffect(() => void client.open(id, { ...(title !== undefined && { title }), ...(agent !== undefined && { agent }) }), [client, id, title, agent]);
  return <ThreadContext.Provider value={useConversation(client, id)}>{children}</ThreadContext.Provider>;
}

/** The state of the Thread around the component, and its conversation with all commands. */
export function useThread(): UseConversation {
  const thread = useContext(ThreadContext);
  if (!thread) throw new Error("this component of @leat/react must be inside a Thread");
  return thread;
}
