import type { Message, Turn } from "@leat/client";
import { type ComponentPropsWithoutRef, type ReactNode } from "react";
import { type PartComponents } from "./parts.js";
export interface MessagesProps extends Omit<ComponentPropsWithoutRef<"section">, "children"> {
    /** The components for kinds of parts. */
    parts?: PartComponents;
    /** Renders a message instead of the default, an article with Parts. */
    children?: (message: Message, turn: Turn | undefined) => ReactNode;
}
/**
 * Renders the messages of the thread, oldest first, with a button for older ones, the questions of waiting turns, errors of turns, and
 * messages that are on their way. If the section scrolls, it stays at its end while the reader is there.
 */
export declare function Messages({ parts, children, ...props }: MessagesProps): import("react").JSX.Element;
