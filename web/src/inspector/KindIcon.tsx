// The icons of spans, drawn like those of the page. They are separate, because only the inspector loads them.

import type { SpanKind } from "./spans";

const paths: Record<SpanKind, string> = {
  turn: "M6 9h12v10H6zM12 9V5M9 13v2M15 13v2",
  step: "M12 4l8 4-8 4-8-4zM4 12l8 4 8-4M4 16l8 4 8-4",
  reasoning: "M9 18h6M10 21h4M12 3a6 6 0 0 0-3.5 10.9c.5.4.5 1 .5 1.6h6c0-.6 0-1.2.5-1.6A6 6 0 0 0 12 3z",
  text: "M5 7h14M5 12h14M5 17h9",
  tool: "M14.5 5.5a4 4 0 0 0-5 5L4 16v4h4l5.500-5.500a4 4 0 0 0 5-5l-2.500 2.500-3-1-1-3z",
  status: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  question: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18h.01",
  media: "M6 3h8l4 4v14H6zM14 3v4h4",
  data: "M9 4c-3 0-3 2-3 4s0 4-2 4c2 0 2 2 2 4s0 4 3 4M15 4c3 0 3 2 3 4s0 4 2 4c-2 0-2 2-2 4s0 4-3 4",
};

export function KindIcon({ kind }: { kind: SpanKind }) {
  return <svg className={`icon kind-${kind}`} viewBox="0 0 24 24" aria-hidden="true"><path d={paths[kind]} /></svg>;
}
