import { type ComponentPropsWithoutRef } from "react";
export interface ComposerProps extends Omit<ComponentPropsWithoutRef<"form">, "children" | "onSubmit"> {
    placeholder?: string;
}
/** A form that sends its text: Enter sends, Shift+Enter begins a line. A message can be sent without a connection; it waits for one. */
export declare function Composer({ placeholder, ...props }: ComposerProps): import("react").JSX.Element;
