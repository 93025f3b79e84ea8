// Explains why an answer is incomplete: what happened, and what the user can do.

import type { Turn } from "@leat/client";

import { lasted } from "../time";
import { line, lines } from "./parts/marks";
import { durationOf } from "./turnStatus";

export interface Explanation {
  tone: "bad" | "warn" | "quiet";
  what: string;
  todo: string; // empty if the user can do nothing
  again: boolean; // a retry may help
  cause: string; // the original error text; empty if `what` contains it
}

interface Cause { what: string; todo: string; again?: boolean }

const wait = { todo: "Try again in a minute.", again: true };
const retry = { todo: "Try again.", again: true };
const operator = (task: string): string => `Ask the operator of the gateway to ${task}.`;

const causes: Record<string, Cause> = {
  rate_limited: { what: "The provider’s rate limit was reached.", ...wait },
  overloaded: { what: "The model is overloaded.", ...retry },
  provider_error: { what: "The model’s provider reported an error.", ...retry },
  provider_unreachable: { what: "The model’s provider can’t be reached.", ...retry },
  provider_answer: { what: "The model’s provider sent an invalid response.", ...retry },
  quota: { what: "Provider quota exceeded.", todo: operator("raise the quota or choose another model") },
  key_missing: { what: "The provider’s API key is missing.", todo: operator("configure it") },
  key_refused: { what: "The provider rejected the API key.", todo: operator("renew it") },
  model_unknown: { what: "The provider doesn’t have this model.", todo: operator("choose another one") },
  context_too_long: { what: "The conversation is too long for the model.", todo: "Start a new conversation or shorten the message." },
  request_refused: { what: "The provider rejected the request.", todo: "Try different words or files." },
  response_gone: { what: "The provider lost the answer.", ...retry },
  filtered: { what: "The provider’s filter blocked the answer.", todo: "Try different words." },
  refused: { what: "The model refused to answer.", todo: "Try different words." },
  agent_unreachable: { what: "The agent can’t be reached.", todo: "Try again when it is back.", again: true },
  agent_refused: { what: "The agent refused the gateway’s credentials.", todo: operator("fix the credentials") },
  agent_unknown: { what: "This agent no longer exists.", todo: "Choose another agent." },
  agent_login: { what: "The agent is not signed in.", todo: operator("sign it in") },
  agent_request: { what: "The agent rejected the request.", todo: "Try different words or files." },
  agent_status: { what: "The agent returned an error.", ...retry },
  agent_not_started: { what: "The agent’s program couldn’t be started.", todo: operator("check why") },
  agent_exit: { what: "The agent’s program exited unexpectedly.", ...retry },
  agent_stuck: { what: "The agent isn’t responding.", ...retry },
  agent_closed: { what: "The agent was closed.", ...retry },
  agent_restarts: { what: "The agent restarted and didn’t come back.", ...retry },
  run_lost: { what: "The agent lost this answer.", ...retry },
  silence: { what: "The agent sent nothing for too long.", ...retry },
  turn_limit: { what: "The answer took longer than allowed.", ...retry },
  too_many_runs: { what: "Too many runs of the agent’s other clients were in progress to show this one.", todo: "Open the session in another of its clients to see it.", again: false },
  timeout: { what: "The model took too long.", ...retry },
  lease_expired: { what: "The producer disconnected and didn’t return.", ...retry },
  wait_expired: { what: "Nobody answered the question in time.", ...retry },
  not_answered: { what: "The agent didn’t accept the answer to its question.", ...retry },
  invalid_stream: { what: "The agent sent an unreadable stream.", todo: operator("check the agent") },
  cut_short: { what: "The answer was cut off.", ...retry },
  busy: { what: "The gateway is busy with other large answers.", ...retry },
  agent_busy: { what: "The agent is busy with an earlier message.", ...retry },
  agent_answer: { what: "The agent sent an invalid response.", ...retry },
  too_large: { what: "The answer exceeded the size limit.", todo: "Ask for less at a time." },
  attachment: { what: "A file couldn’t be passed to the agent.", todo: "Send a smaller file or another type." },
  not_started: { what: "The agent didn’t receive the message.", ...retry },
  max_iterations: { what: "The agent reached its step limit.", todo: "Ask it to continue." },
};

const aliases: Record<string, string> = {
  rate_limit: "rate_limited", rate_limit_error: "rate_limited", rate_limit_exceeded: "rate_limited", too_many_requests: "rate_limited", "429": "rate_limited",
  overloaded_error: "overloaded", unavailable: "overloaded", "503": "overloaded", "529": "overloaded", api_error: "provider_error", server_error: "provider_error", internal_server_error: "provider_error", "500": "provider_error",
  insufficient_quota: "quota", billing: "quota", payment_required: "quota",
  authentication_error: "key_refused", permission_error: "key_refused", invalid_api_key: "key_refused", auth: "key_refused", unauthorized: "key_refused", token_refused: "agent_refused", "401": "key_refused", "403": "key_refused",
  not_found_error: "model_unknown", model_not_found: "model_unknown",
  context_length_exceeded: "context_too_long", context_overflow: "context_too_long", invalid_request_error: "request_refused", invalid_request: "request_refused",
  content_filter: "filtered", safety: "filtered", recitation: "filtered", blocklist: "filtered", prohibited_content: "filtered", refusal: "refused",
  timeout_error: "timeout", deadline_exceeded: "timeout", gap: "cut_short", agent_control: "not_answered", file_unavailable: "attachment",
};

/** Returns the explanation of an error code or one of its aliases. */
export const causeOf = (code: string | undefined): Cause | undefined => (code ? causes[aliases[code.toLowerCase()] ?? code.toLowerCase()] : undefined);

// The advice for an unknown cause.
const other = "Try again or rephrase. If it fails again, send the details to the operator of the gateway.";

const limits = /^(?:max_tokens|max_output_tokens|length|token_limit|model_context_window_exceeded)$/;

/** Explains the end of a turn that didn't simply complete. user is the name of the user who stopped it, if known. */
export function explain(t: Turn, hasText: boolean, user = ""): Explanation | undefined {
  const duration = durationOf(t);
  const after = duration !== undefined ? ` after ${lasted(duration)}` : "";
  const saved = hasText ? "The partial answer is saved." : "";
  const join = (...texts: string[]): string => texts.filter(Boolean).join(" ");
  switch (t.outcome) {
    case "completed":
      if (limits.test(t.reason ?? "")) return { tone: "warn", what: "The answer reached the model’s length limit.", todo: "Ask it to continue.", again: false, cause: "" };
      if (["filtered", "refused"].includes(aliases[t.reason?.toLowerCase() ?? ""] ?? "")) return { tone: "warn", ...causeOf(t.reason)!, again: false, cause: "" };
      return hasText ? undefined : { tone: "quiet", what: "The agent sent an empty answer.", todo: "", again: false, cause: "" };
    case "cancelled": {
      const suffix = t.reason && t.reason !== "stopped" && t.reason !== "parent ended" ? ` · ${line(t.reason, 120)}` : "";
      return { tone: "quiet", what: `Stopped${user && ` by ${user}`}${after}${suffix}`, todo: "", again: false, cause: "" };
    }
    case "interrupted": {
      const restart = !t.error || t.reason === "gateway_restart" || t.error.code === "gateway_restart";
      const description = restart ? `Interrupted${after}: the gateway was restarted.` : `Interrupted${after}. ${causeOf(t.error?.code)?.what ?? lines(t.error?.message ?? "")}`;
      return { tone: "warn", what: description, todo: join(saved, hasText ? "Try again for a complete answer." : "Try again."), again: true, cause: restart ? "" : (t.error?.message ?? "") };
    }
    case "failed": {
      const message = t.error?.message ?? t.reason ?? "";
      const cause = causeOf(t.error?.code) ?? causeOf(t.reason);
      const canRetry = t.error?.retryable ?? cause?.again ?? false;
      const description = cause?.what ?? (message ? sentence(message) : "The agent failed.");
      const todo = canRetry && !cause?.again ? retry.todo : cause?.todo ?? other;
      return { tone: "bad", what: description, todo: join(saved, todo), again: canRetry, cause: cause ? message : "" };
    }
  }
  return undefined;
}

// sentence returns the first line of a message as a sentence. The details contain the whole message.
function sentence(message: string): string {
  const firstLine = line(message.split("\n", 1)[0]!.trim(), 300);
  const capitalized = firstLine.charAt(0).toUpperCase() + firstLine.slice(1);
  return /[.!?…:)]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}
