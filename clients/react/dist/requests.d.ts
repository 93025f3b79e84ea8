import { type ComponentPropsWithoutRef } from "react";
/** Renders the open questions of the thread with their answers. It renders nothing if there are none. */
export declare function Requests(props: Omit<ComponentPropsWithoutRef<"form">, "children" | "onSubmit">): import("react").JSX.Element[];
