// A trace as JSON. Attributes have the names of OpenTelemetry's semantic conventions for generative AI if these have one, and begin
// with "leat." otherwise, like the attributes of the spans that the gateway exports. docs/dashboard.md describes the format.

import type { Usage } from "@leat/client";

import { allSpans } from "./rows";
import type { Span } from "./spans";

export type Attributes = Record<string, unknown>;

const operations: Partial<Record<Span["kind"], string>> = { turn: "invoke_agent", step: "chat", tool: "execute_tool" };

const usageOf = (u: Usage): Attributes => ({
  "gen_ai.usage.input_tokens": u.input, "gen_ai.usage.output_tokens": u.output, "gen_ai.usage.cache_read.input_tokens": u.cache_read,
  "gen_ai.usage.cache_creation.input_tokens": u.cache_write, "leat.usage.reasoning_tokens": u.reasoning, "leat.usage.cost": u.cost,
});

/** Returns the attributes of a span, without absent ones. */
export function attributesOf(s: Span): Attributes {
  const f = s.facts;
  const attributes: Attributes = {
    "gen_ai.operation.name": operations[s.kind],
    ...(s.kind === "turn" && { "gen_ai.agent.name": f.agent, "gen_ai.response.model": s.model }),
    ...(s.kind === "tool" && { "gen_ai.tool.name": s.name, "gen_ai.tool.call.id": f.call }),
    ...(s.usage && usageOf(s.usage)),
    "error.type": s.error && (s.error.code || "_OTHER"),
    "leat.turn": f.turn, "leat.outcome": f.outcome, "leat.reason": f.reason, "leat.by": f.by, "leat.step": f.step, "leat.message": f.message, "leat.part": f.part,
    "leat.title": f.title, "leat.request": f.request, "leat.decision": f.decision, "leat.mime": f.mime, "leat.data": f.data,
    "leat.retryable": s.error?.retryable,
  };
  return Object.fromEntries(Object.entries(attributes).filter(([, v]) => v !== undefined));
}

/** Returns a span as in the JSON of a trace. */
export function spanJSON(s: Span, parent?: string): Attributes {
  return {
    id: s.id, ...(parent !== undefined && { parent }), kind: s.kind, name: s.name, state: s.state, start: s.start,
    ...(s.end !== undefined && { end: s.end, duration: s.end - s.start }), ...(s.first !== undefined && s.kind !== "tool" && { firstOutput: s.first }), ...(s.first !== undefined && s.kind === "tool" && { inputComplete: s.first }),
    ...(s.input !== undefined && { input: s.input }), ...(s.output !== undefined && { output: s.output }), ...(s.stderr !== undefined && { stderr: s.stderr }),
    ...(s.error && { error: s.error }), ...(s.moments.length > 0 && { moments: s.moments }), attributes: attributesOf(s),
  };
}

/** Returns a trace as JSON: its spans in the order of the tree, each with the id of the span around it. */
export function traceJSON(root: Span, conversation: string): string {
  const parents = new Map(allSpans(root).flatMap((s) => s.children.map((c) => [c.id, s.id] as const)));
  return JSON.stringify({ turn: root.facts.turn, "gen_ai.conversation.id": conversation, spans: allSpans(root).map((s) => spanJSON(s, parents.get(s.id))) }, null, 2);
}
