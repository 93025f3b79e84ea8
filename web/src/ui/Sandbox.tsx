// A document in a frame with an opaque origin and a separate policy: it can reach neither the page nor the network. The frame and
// the page exchange messages only.

import { useEffectEvent, useLayoutEffect, useRef } from "react";

import { base } from "../gateway";

/** The heights that a document may ask for. CSS pixels. */
const [minHeight, maxHeight] = [24, 2000];

/** Limits a height that a document asks for; undefined if it isn't a number. */
export const limitHeight = (height: unknown): number | undefined => (typeof height === "number" && Number.isFinite(height) ? Math.min(maxHeight, Math.max(minHeight, Math.ceil(height))) : undefined);

export type Post = (message: unknown) => void;

interface SandboxProps {
  document: "diagram" | "app"; // a file of the gateway, below ui/frames
  title: string;
  height: number;
  hidden?: boolean;
  /** Called with each message from the frame, and with a function that answers it. */
  receive: (message: Record<string, unknown>, post: Post) => void;
}

export function Sandbox({ document: name, title, height, hidden = false, receive }: SandboxProps) {
  const frame = useRef<HTMLIFrameElement>(null);
  const handle = useEffectEvent((e: MessageEvent) => {
    const target = frame.current?.contentWindow;
    // The origin of the frame is opaque, so its window identifies it, and its messages have no other target than "*".
    if (!target || e.source !== target || typeof e.data !== "object" || e.data === null) return;
    receive(e.data as Record<string, unknown>, (m) => target.postMessage(m, "*"));
  });
  // At once: the frame says only once that it is ready.
  useLayoutEffect(() => {
    const listen = (e: MessageEvent) => handle(e);
    addEventListener("message", listen);
    return () => removeEventListener("message", listen);
  }, []);
  return <iframe ref={frame} className="sandbox" src={`${base}/ui/frames/${name}.html`} title={title} sandbox="allow-scripts" referrerPolicy="no-referrer" loading="eager" data-hidden={hidden || undefined} aria-hidden={hidden || undefined} height={height} />;
}
