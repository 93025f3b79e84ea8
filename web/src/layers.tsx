// The layers on top of the page, one at a time. The code of each is loaded when it is first opened.

import { lazy, useCallback } from "react";

import { Store, useStore } from "./store";
import { LazyPart } from "./ui/LazyPart";

export type Layer = "" | "palette" | "keys" | "settings" | "attach";

export const layer = new Store<Layer>("");

const kinds = { palette: lazy(() => import("./palette/Palette")), keys: lazy(() => import("./palette/Keys")), settings: lazy(() => import("./settings/Settings")),
  attach: lazy(() => import("./attach/Attach")) };

export function Layers() {
  const at = useStore(layer);
  const close = useCallback(() => layer.set(""), []);
  if (!at) return null;
  const Kind = kinds[at];
  return <LazyPart of={at}><Kind key={at} close={close} /></LazyPart>;
}
