// The words of the inspector and their explanations, for people who see a trace for the first time.

import type { SpanKind, SpanState } from "./spans";

export const kindWords: Record<SpanKind, { name: string; text: string }> = {
  turn: { name: "Turn", text: "One run of an agent, from your message to the end of the answer. A turn inside another one is the work of a subagent." },
  step: { name: "Step", text: "One call of the model, and the tools that it asked for. The next step begins when these have ended." },
  reasoning: { name: "Reasoning", text: "What the model wrote for itself before it answered or called a tool." },
  text: { name: "Text", text: "A piece of the answer, as it is shown in the conversation." },
  tool: { name: "Tool", text: "A function that the model called. The light part of its bar is the time in which the model wrote the arguments." },
  status: { name: "Status", text: "Short messages about the progress, each of which replaces the one before." },
  question: { name: "Question", text: "The agent waited for a person’s approval or answer." },
  media: { name: "File", text: "A file that the agent sent." },
  data: { name: "Data", text: "Structured data that the agent sent." },
};

export const stateWords: Record<SpanState, string> = {
  running: "running", waiting: "awaiting an answer", done: "done", failed: "failed", denied: "denied", cancelled: "stopped", interrupted: "interrupted",
  retracted: "taken back by the agent", incomplete: "incomplete",
};

export const terms = {
  duration: "From the start of the turn to its end.",
  first: "The time until the first output arrived: text, reasoning or a tool call. Until then the model was reading and computing.",
  pause: "The longest time in which no tool ran and the model wrote nothing: it was reading, or waiting for its provider.",
  steps: kindWords.step.text,
  tools: "How many tools the model called, in this turn and its subagents.",
  tokens: "The pieces of text that the model read (in) and wrote (out). Providers charge by them. The agent reports them for the whole turn.",
  cached: "Tokens that the provider already had from an earlier call. They are cheaper.",
  written: "Tokens that were stored in the provider’s cache for later calls.",
  reasoning: "Tokens of the reasoning. They are included in the tokens out.",
  cost: "The cost of the tokens, in the currency of the gateway’s price list.",
  model: "The model that the agent reports.",
  start: "Since the start of the turn, and the time of day by the gateway’s clock.",
  arguments: "How long the model wrote the tool’s arguments, before the tool could run.",
  lasted: "From the first to the last event of the span.",
  events: "The entries of the log, and the size of their texts.",
  gap: "The longest time without an event.",
  stored: "From the arrival of an event to the disk: the median, and the delay that 99 % of the events stay below.",
  displayed: "From the disk to the screen of this tab: the median, and the delay that 99 % of the events stay below.",
  coalesced: "A slow reader gets fewer, larger pieces: the number of events, and of the pieces in which they arrived.",
  estimated: "The agent reports no tokens, so they are estimated from the size of the text.",
  attributes: "The ids of the span, and its figures by the names of OpenTelemetry, as in the JSON of the trace.",
} as const;
