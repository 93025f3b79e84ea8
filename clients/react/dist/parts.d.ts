import type { Message, Part, PartKind } from "@leat/client";
import { type ComponentType } from "react";
export interface PartProps {
    part: Part;
    message: Message;
}
/** The application's components for some kinds of parts. Keep the object outside of the component, so that memo works. */
export type PartComponents = {
    readonly [kind in PartKind]?: ComponentType<PartProps>;
};
/** Renders the parts of a message in their order. */
export declare const Parts: import("react").MemoExoticComponent<({ message, components }: {
    message: Message;
    components?: PartComponents | undefined;
}) => import("react").JSX.Element[]>;
