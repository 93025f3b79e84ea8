// A tool call: its arguments, output and duration in one row, with details on demand.

import type { Outcome, Part } from "@leat/client";
import { lazy, useRef } from "react";

import { lasted, size } from "../../time";
import { Clock } from "../../ui/Clock";
import { CopyButton } from "../../ui/Copy";
import { LazyPart } from "../../ui/LazyPart";
import { argument, halves } from "./argument";
import { Fields } from "./Fields";
import { Fold, type Hold } from "./Fold";
import { Forming } from "./forming";
import { Lines } from "./Lines";
import { Mark, type Status } from "./Mark";
import { line, lines } from "./marks";
import { mayBeApp } from "./result";

const Output = lazy(() => import("./rich").then((m) => ({ default: m.Output })));
const App = lazy(() => import("./rich").then((m) => ({ default: m.App })));

/** Longer arguments are shown as plain text, because parsing them again after each change would block the page. */
const maxRead = 200_000;

interface ToolProps { part: Part; conversation: string; live: boolean; waiting: boolean; cut: Outcome | undefined; tell?: ((part: string, open: boolean) => void) | undefined; hold: Hold }

export function Tool({ part: p, conversation, live, waiting, cut, tell, hold }: ToolProps) {
  const state = statusOf(p, live, waiting, cut);
  const name = line(p.name || "tool", 80);
  const main = line(p.title ?? argument(p.input) ?? "");
  const isRunning = state === "running" || state === "waiting";
  const call = (
    <Fold className="tool" hold={hold} told={(open) => tell?.(p.id, open)} title={main && `${name}: ${main}`} summary={
      <>
        <Mark of={state} />
        <code className="name"><bdi>{name}</bdi></code>
        {main && main !== name && <Abbreviated text={main} />}
        <span className="took">{isRunning ? p.at !== undefined && <Clock since={p.at} changed={p} /> : took(p)}</span>
      </>
    }>
      {() => <Inside part={p} state={state} live={live} cut={cut} />}
    </Fold>
  );
  if (live || !p.output || !mayBeApp(p.output)) return call;
  return <>{call}<LazyPart of={p.output}><App name={name} input={p.input ?? ""} output={p.output} conversation={conversation} /></LazyPart></>;
}

/** A text that is shortened in the middle if it doesn't fit. */
function Abbreviated({ text }: { text: string }) {
  const { head, tail } = halves(text);
  if (!tail) return <span className="main"><bdi className="head">{head}</bdi></span>;
  return <span className="main"><span className="unseen">{text}</span><bdi className="head" aria-hidden="true">{head}</bdi><bdi className="tail" aria-hidden="true">{tail}</bdi></span>;
}

function Inside({ part: p, state, live, cut }: { part: Part; state: Status; live: boolean; cut: Outcome | undefined }) {
  const code = numberOf(p, "exitCode", "exit_code");
  const storedBytes = numberOf(p, "storedBytes");
  const empty = !p.input && !p.output && !p.stderr && !p.error;
  return (
    <>
      {p.input && <Input text={p.input} live={live} />}
      {p.output && (live ? <Lines name="Output" text={p.output} /> : <LazyPart of={p.output} fallback={<Lines name="Output" text={p.output} />}><Output text={p.output} /></LazyPart>)}
      {storedBytes !== undefined && <p className="muted">The agent’s server stored only {size(storedBytes)} of this output.</p>}
      {p.stderr && <Lines name="Errors" text={p.stderr} bad />}
      {code !== undefined && <p className={code === 0 ? "muted" : "bad"}>Exit code {code}</p>}
      {state === "stopped" ? <p className="muted">{endOf(p) ?? ends[cut ?? "failed"]}</p> : p.error && <p className="bad">{lines(p.error.message)}</p>}
      {state === "denied" && !p.error && <p className="muted">Not allowed.</p>}
      {empty && state !== "denied" && state !== "stopped" && <p className="muted">{live ? "Nothing yet." : "No output"}</p>}
    </>
  );
}

/** The arguments of a tool, field by field if they are JSON. */
export function Input({ text, live }: { text: string; live: boolean }) {
  const forming = useRef<Forming>(null);
  const { value, state } = text.length > maxRead ? { value: undefined, state: live ? "growing" as const : "whole" as const } : (forming.current ??= new Forming()).parse(text);
  const hasFields = value !== undefined && (typeof value !== "object" || value === null || Object.keys(value).length > 0 || state === "whole");
  if (!hasFields) {
    return (
      <>
        <Lines name="Input" text={text} from={live ? "end" : "start"} />
        {!live && state !== "whole" && <p className="warn">These arguments aren’t valid JSON; they are shown as received.</p>}
      </>
    );
  }
  return (
    <div className="field">
      <header role="none"><span>Input</span><CopyButton text={text} what="input" /></header>
      <Fields value={value} live={live} />
      {!live && state !== "whole" && <p className="warn">These arguments are {state === "growing" ? "incomplete" : "not valid JSON"}; copy them to get them as received.</p>}
    </div>
  );
}

function statusOf(p: Part, isLive: boolean, isWaiting: boolean, outcome: Outcome | undefined): Status {
  if (isWaiting && isLive) return "waiting";
  if (p.state === "denied") return "denied";
  if (p.state === "failed") return endOf(p) ? "stopped" : "failed";
  if (outcome) return "stopped";
  return isLive && p.state !== "done" ? "running" : "done";
}

const ends: Record<Outcome, string> = {
  cancelled: "Stopped before it finished.", interrupted: "Interrupted before it finished.",
  completed: "The answer ended before it finished.", failed: "The answer ended before it finished.",
};

/** Describes the end of a tool that was running when its turn ended. */
const endOf = (p: Part): string | undefined => (p.error?.message.startsWith("the turn ended") ? ends[p.error.code as Outcome] : undefined);

const took = (p: Part): string => (p.at !== undefined && p.endAt !== undefined ? lasted(p.endAt - p.at) : "");

/** Returns a number in a tool's data by the first name that exists. */
function numberOf(p: Part, ...names: string[]): number | undefined {
  const d = p.data;
  if (typeof d !== "object" || d === null || Array.isArray(d)) return undefined;
  const n = names.map((name) => d[name]).find((v) => v !== undefined);
  return typeof n === "number" ? n : undefined;
}
