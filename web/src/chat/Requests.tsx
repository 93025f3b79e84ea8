// The requests of turns to the user: approvals and questions. The first answer from any device counts.

import type { Conversation, Json, Message, Request, Turn } from "@leat/client";
import { type FormEvent, useLayoutEffect, useRef, useState } from "react";

import { subject } from "../gateway";
import { Clock } from "../ui/Clock";
import { isMine, noteMine } from "./answers";
import { choices, did } from "./choices";
import { Boundary } from "./parts/Boundary";
import { Fields } from "./parts/Fields";
import { formed, type Value } from "./parts/forming";
import { Lines } from "./parts/Lines";
import { Mark } from "./parts/Mark";
import { line, lines } from "./parts/marks";

export function Requests({ conversation, turns, messages }: { conversation: Conversation; turns: readonly Turn[]; messages: readonly Message[] }) {
  const open = turns.flatMap((t) => (t.state === "ended" ? [] : (t.requests ?? []).map((request) => ({ turn: t, request }))));
  return <>{open.map(({ turn, request }) => (
    <Boundary key={`${turn.id} ${request.id}`} of={request} broken={(message) => <p className="bad">Couldn’t show a question from the agent: {line(message)}</p>}>
      <Ask conversation={conversation} turn={turn} request={request} args={argumentsOf(request, turn, messages)} />
    </Boundary>
  ))}</>;
}

/** Returns what the request is about: the details that the agent gives, or else the tool's arguments. */
function argumentsOf(r: Request, t: Turn, messages: readonly Message[]): Json | Value | undefined {
  if (r.data !== undefined && r.data !== null) return r.data;
  if (!r.part) return undefined;
  const input = messages.findLast((m) => m.turn === t.id && m.parts.some((p) => p.id === r.part))?.parts.find((p) => p.id === r.part)?.input;
  return input ? (formed(input).value ?? input) : undefined;
}

interface AskProps { conversation: Conversation; turn: Turn; request: Request; args: Json | Value | undefined }

function Ask({ conversation, turn, request: r, args }: AskProps) {
  const [error, setError] = useState("");
  const [decision, setSent] = useState("");
  const card = useRef<HTMLElement>(null);
  // Moves the focus on when the request with the focus is removed.
  useLayoutEffect(() => {
    const c = card.current;
    return () => {
      if (c?.contains(document.activeElement)) document.querySelector<HTMLElement>(".log")?.focus({ preventScroll: true });
    };
  }, []);
  const answer = async (a: { decision?: string; text?: string }) => {
    if (decision) return; // disabling the button would lose the focus
    setSent(a.decision ?? a.text ?? "");
    setError("");
    noteMine(turn.id, r.id, true);
    try {
      await conversation.answer(turn.id, r.id, a);
    } catch (err) {
      setSent("");
      noteMine(turn.id, r.id, false);
      const { reason, message } = err as { reason?: string; message: string };
      setError(reason === "already_ended" ? "This was already answered, or the turn has ended." : lines(message));
    }
  };
  const approval = r.kind === "approval";
  const agentName = line(turn.agent || "The agent", 80);
  const tool = r.tool ? line(r.tool, 80) : "";
  const options = choices(r);
  return (
    <section ref={card} className="ask" tabIndex={-1} aria-label={approval ? (tool ? `${agentName} wants to run ${tool}` : `${agentName} asks for approval`) : `${agentName} asks`} data-request={r.id} aria-busy={!!decision || undefined}>
      <header>
        <Mark of="waiting" named={false} />
        <strong><bdi>{agentName}</bdi> {approval ? tool ? <>wants to run <code><bdi>{tool}</bdi></code></> : "asks for approval" : <>asks{tool && <> for <code><bdi>{tool}</bdi></code></>}</>}</strong>
        {r.at !== undefined && <span className="took"><Clock since={r.at} /></span>}
      </header>
      {r.prompt && (r.prompt.length > 600 || r.prompt.split("\n", 13).length > 12 ? <Lines name="Question" text={r.prompt} from="start" /> : <p className="prompt" dir="auto">{lines(r.prompt)}</p>)}
      {args !== undefined && <Fields value={args} />}
      {options.length > 0 && (
        <div className="answers">
          {options.map((c) => (
            <button key={c.decision} type="button" aria-disabled={!!decision || undefined} className={c.tone === "allow" ? "primary" : undefined} onClick={() => void answer({ decision: c.decision })}>{c.label}</button>
          ))}
        </div>
      )}
      {r.kind === "input" && (
        <form onSubmit={(e: FormEvent<HTMLFormElement>) => { e.preventDefault(); void answer({ text: new FormData(e.currentTarget).get("text") as string }); }}>
          <input name="text" aria-label={options.length > 0 ? "Other answer" : "Your answer"} placeholder={options.length > 0 ? "Or type your own answer" : "Your answer"} autoComplete="off" required readOnly={!!decision} /><button aria-disabled={!!decision || undefined}>Answer</button>
        </form>
      )}
      {error && <p className="bad" role="alert">{error}</p>}
    </section>
  );
}

/** The requests of a turn that were answered, and by whom. */
export function Answers({ turn }: { turn: Turn }) {
  return <>{turn.answered?.map((a) => {
    const summary = did(a, a.decision ?? "");
    return (
      <p key={`${a.id} ${a.at}`} className="answered" data-decision={line(a.decision ?? "", 60)}>
        <Mark of={summary.startsWith("denied") ? "denied" : "done"} named={false} />
        <span>{a.prompt && <>{line(a.prompt, 200)} </>}{isMine(turn.id, a.id) || a.by && a.by === subject() ? `You ${summary}` : `${summary.charAt(0).toUpperCase()}${summary.slice(1)}${a.by ? ` by ${line(a.by, 60)}` : ""}`}{a.text && `: ${line(a.text, 200)}`}</span>
      </p>
    );
  })}</>;
}
