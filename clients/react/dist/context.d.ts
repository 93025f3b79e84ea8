import type { Client, LiveEvents } from "@leat/client";
import { type UseConversation } from "@leat/client/react";
import { type ReactNode } from "react";
export interface LeatProviderProps {
    client: Client;
    /** With live events the list of conversations is up to date within a moment, else within 15 seconds. */
    live?: LiveEvents;
    children: ReactNode;
}
/** Provides the client for the components inside. Client and live events belong to the application, which closes them. */
export declare function LeatProvider({ client, live, children }: LeatProviderProps): import("react").JSX.Element;
export declare const useClient: () => Client;
export declare const useLive: () => LiveEvents | undefined;
export interface ThreadProps {
    /** The conversation's id. It is created if there is none. */
    id: string;
    /** Its title and agent, if it is created. */
    title?: string;
    agent?: string;
    children: ReactNode;
}
/** Opens a conversation, and follows it for the components inside while it is mounted. */
export declare function Thread({ id, title, agent, children }: ThreadProps): import("react").JSX.Element;
/** The state of the Thread around the component, and its conversation with all commands. */
export declare function useThread(): UseConversation;
