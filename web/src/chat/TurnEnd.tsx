import type { Turn } from "@leat/client";

import { lasted } from "../time";
import { CopyButton } from "../ui/Copy";
import { explain } from "./failure";
import { Fold, type Hold } from "./parts/Fold";
import { Lines } from "./parts/Lines";
import { Mark } from "./parts/Mark";
import { line } from "./parts/marks";
import { stoppedBy } from "./stopped";
import { durationOf } from "./turnStatus";

interface TurnEndProps {
  turn: Turn;
  said: boolean; // the turn had output
  again?: (() => void) | undefined; // retries the turn; undefined if a retry would remove later messages
  hold: Hold;
}

/** The end of a turn that didn't simply complete: what happened, what is saved, what to do, and the cause on demand. */
export function TurnEnd({ turn: t, said, again, hold }: TurnEndProps) {
  const explanation = explain(t, said, stoppedBy(t));
  if (!explanation) return null;
  const tone = explanation.tone === "quiet" ? "" : explanation.tone;
  return (
    <div className={`turn-end ${tone}`} role="note">
      <p>
        <Mark of={explanation.tone === "bad" ? "failed" : "stopped"} named={false} />
        <span className="told"><span className="what">{explanation.what}</span>{explanation.todo && <span className="todo"> {explanation.todo}</span>}</span>
        {explanation.again && again && <button type="button" onClick={again}>Try again</button>}
      </p>
      {explanation.tone === "bad" && <Fold className="cause" hold={hold} summary={<span>Details</span>}>{() => <Cause turn={t} cause={explanation.cause} />}</Fold>}
    </div>
  );
}

function Cause({ turn: t, cause }: { turn: Turn; cause: string }) {
  const took = durationOf(t);
  const message = cause || t.error?.message || "";
  const rows = [["Code", t.error?.code ?? t.reason], ["Agent", t.agent], ["Model", t.model ?? t.usage?.model], ["Run", t.upstream?.run], ["Duration", took !== undefined && lasted(took)]] as const;
  return (
    <>
      {message && <Lines name="Message" text={message} from="start" />}
      <dl className="fields">
        {rows.map(([name, v]) => v && <div key={name}><dt>{name}</dt><dd><code><bdi>{line(v, 200)}</bdi></code></dd></div>)}
        <div><dt>Turn</dt><dd><code>{t.id}</code> <CopyButton text={t.id} what="turn ID" /></dd></div>
      </dl>
    </>
  );
}
