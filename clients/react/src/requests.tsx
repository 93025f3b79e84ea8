// The questions that turns wait on: approvals of tools, and questions of the agent.

import type { Request } from "@leat/client";
import { type ComponentPropsWithoutRef, useId, useState } from "react";

import { useThread } from "./context.js";

/** Renders the open questions of the thread with their answers. It renders nothing if there are none. */
export function Requests(props: Omit<ComponentPropsWithoutRef<"form">, "children" | "onSubmit">) {
  return useThread().turns.flatMap((turn) => (turn.state === "ended" ? [] : (turn.requests ?? [])).map((r) => (
    <RequestForm key={`${turn.id} ${r.id}`} turn={turn.id} request={r} {...props} />
  )));
}

function RequestForm({ turn, request, ...props }: { turn: string; request: Request }) {
  const { conversation } = useThread();
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const [isSent, setIsSent] = useState(false);
  const promptId = useId();
  const answer = (a: { decision?: string; text?: string }) => {
    setIsSent(true);
    setError("");
    conversation.answer(turn, request.id, a).catch((err: unknown) => {
      setIsSent(false);
      setError(err instanceof Error ? err.message : String(err));
    });
  };
  const options = request.options ?? (request.kind === "approval" ? ["approve", "deny"] : []);
  return (
    <form aria-labelledby={promptId} data-request={request.kind} {...props} onSubmit={(e) => {
      e.preventDefault();
      answer({ text });
    }}>
      <p id={promptId}>{request.prompt ?? (request.tool ? `May ${request.tool} run?` : "The agent has a question.")}</p>
      {options.map((o) => <button key={o} type="button" disabled={isSent} onClick={() => answer({ decision: o })}>{o}</button>)}
      {request.kind === "input" && options.length === 0 && (
        <>
          <input aria-labelledby={promptId} value={text} onChange={(e) => setText(e.target.value)} />
          <button type="submit" disabled={isSent || text.trim() === ""}>Answer</button>
        </>
      )}
      {error && <p role="alert">{error}</p>}
    </form>
  );
}
