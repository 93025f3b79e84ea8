import type { Summary } from "@leat/client";
import { type ComponentPropsWithoutRef } from "react";
export interface Conversations {
    /** Most recently used first; empty while loading. */
    readonly conversations: readonly Summary[];
    readonly isLoading: boolean;
    /** Why the last request failed. */
    readonly error?: Error;
}
/** Loads the list of conversations, and keeps it up to date while the component is mounted. */
export declare function useConversations(): Conversations;
export interface ConversationListProps extends Omit<ComponentPropsWithoutRef<"nav">, "onSelect" | "children"> {
    /** The id of the open conversation. */
    selected?: string;
    onSelect: (id: string) => void;
}
/** The list as buttons in a nav; an unread conversation has the attribute data-unread. */
export declare function ConversationList({ selected, onSelect, ...props }: ConversationListProps): import("react").JSX.Element;
