// The details of a span: its times, tokens, input, output, what was removed, and its attributes.

import type { Usage } from "@leat/client";
import { type ReactNode, useMemo } from "react";

import { Lines } from "../chat/parts/Lines";
import { line, lines } from "../chat/parts/marks";
import { Output } from "../chat/parts/rich";
import { Input } from "../chat/parts/Tool";
import { amount } from "../chat/UsageLabel";
import { brief } from "../time";
import { CopyButton } from "../ui/Copy";
import { Hint } from "../ui/Hint";
import { attributesOf, spanJSON } from "./export";
import { kindWords, stateWords, terms } from "./glossary";
import { KindIcon } from "./KindIcon";
import type { Span } from "./spans";
import { durationOf } from "./TraceTree";

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const numeral = (n: number): string => n.toLocaleString("en");

interface DetailsProps { span: Span; begin: number; time: number }

export function SpanDetails({ span: s, begin, time }: DetailsProps) {
  const kind = kindWords[s.kind];
  const attributes = useMemo(() => Object.entries(attributesOf(s)), [s]);
  const isActive = s.end === undefined;
  return (
    <>
      <header role="none">
        <KindIcon kind={s.kind} />
        <h3><bdi>{s.name}</bdi></h3>
        <span className="chip"><Hint text={kind.text}>{kind.name}</Hint></span>
        <span className="chip" data-state={s.state}>{stateWords[s.state]}</span>
        <CopyButton what="span as JSON" text={() => JSON.stringify(spanJSON(s), null, 2)} />
      </header>
      <dl className="facts">
        <Fact name="Start" text={terms.start}>+{brief(s.start - begin)} <span className="muted">{timeOfDay.format(s.start)}</span></Fact>
        <Fact name="Duration" text={s.kind === "turn" ? terms.duration : terms.lasted}>{brief(durationOf(s, time))}{isActive && " so far"}</Fact>
        {s.first !== undefined && (s.kind === "turn" || s.kind === "step") && <Fact name="First token" text={terms.first}>{brief(s.first - s.start)}</Fact>}
        {s.first !== undefined && s.kind === "tool" && <Fact name="Arguments" text={terms.arguments}>{brief(s.first - s.start)}</Fact>}
        {s.model && <Fact name="Model" text={terms.model}>{line(s.model, 80)}</Fact>}
        {s.usage && <Tokens usage={s.usage} />}
        {s.facts.by && <Fact name={s.kind === "question" ? "Answered by" : "Stopped by"} text="The user who did it.">{line(s.facts.by, 80)}</Fact>}
      </dl>
      {s.error && <p className="error" role="note">{s.error.code && <code>{line(s.error.code, 80)}</code>} {lines(s.error.message)}</p>}
      {s.input && (s.kind === "tool" ? <Input text={s.input} live={isActive && s.output === undefined} /> : <Lines name={s.kind === "turn" ? "Question" : "Input"} text={s.input} from="start" />)}
      {s.output && (s.kind === "tool" && !isActive ? <Output text={s.output} /> : <Lines name="Output" text={s.output} from={isActive ? "end" : "start"} />)}
      {s.stderr && <Lines name="Errors" text={s.stderr} bad />}
      {s.moments.length > 0 && <Moments span={s} begin={begin} />}
      <details className="attributes">
        <summary>Attributes</summary>
        <p className="muted">{terms.attributes}</p>
        <dl>{attributes.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{lines(typeof v === "string" ? v : JSON.stringify(v))}</dd></div>)}</dl>
      </details>
    </>
  );
}

export function Fact({ name, text, children }: { name: string; text: string; children: ReactNode }) {
  return <div><dt><Hint text={text}>{name}</Hint></dt><dd>{children}</dd></div>;
}

function Tokens({ usage: u }: { usage: Usage }) {
  return (
    <>
      {(u.input !== undefined || u.output !== undefined) && <Fact name="Tokens" text={terms.tokens}>{numeral(u.input ?? 0)} in, {numeral(u.output ?? 0)} out</Fact>}
      {!!u.cache_read && <Fact name="Cached" text={terms.cached}>{numeral(u.cache_read)}</Fact>}
      {!!u.cache_write && <Fact name="Written to cache" text={terms.written}>{numeral(u.cache_write)}</Fact>}
      {!!u.reasoning && <Fact name="Reasoning" text={terms.reasoning}>{numeral(u.reasoning)}</Fact>}
      {!!u.cost && <Fact name="Cost" text={terms.cost}>{amount(u.cost)}</Fact>}
    </>
  );
}

function Moments({ span: s, begin }: { span: Span; begin: number }) {
  const statuses = s.moments.filter((m) => m.kind === "status");
  const removals = s.moments.filter((m) => m.kind === "removed");
  return (
    <>
      {statuses.length > 0 && <ol className="moments" aria-label="Course">{statuses.map((m, i) => <li key={i}><span className="muted">+{brief(m.at - begin)}</span> <span>{line(m.text)}</span></li>)}</ol>}
      {removals.map((m, i) => <Lines key={i} name={`Taken back after ${brief(m.at - begin)}`} text={m.text} from="start" />)}
    </>
  );
}
