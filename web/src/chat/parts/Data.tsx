import type { Part } from "@leat/client";

import { Fold, type Hold } from "./Fold";
import { Lines } from "./Lines";
import { line } from "./marks";

/** A data part, or a part of a kind that this version of the page doesn't know. */
export function Data({ part: p, hold }: { part: Part; hold: Hold }) {
  const isData = p.kind === "data";
  if (isData && p.data === undefined) return null;
  const text = JSON.stringify(isData ? p.data : p, null, 2);
  const name = p.title ?? p.name;
  return (
    <Fold className="data" hold={hold} summary={<><span>{isData ? "Data" : `Part of kind ${line(p.kind, 40)}`}</span>{name && <code className="name"><bdi>{line(name, 80)}</bdi></code>}</>}>
      {() => <Lines name="JSON" text={text} from="start" />}
    </Fold>
  );
}

/** A part that couldn't be rendered, as JSON. */
export function Raw({ part: p, why, hold }: { part: Part; why: string; hold: Hold }) {
  return (
    <div className="broken">
      <p className="bad">This part can’t be shown.</p>
      <Fold className="data" hold={hold} summary={<span>Show raw</span>}>
        {() => <><p className="muted">{line(why)}</p><Lines name="JSON" text={JSON.stringify(p, null, 2)} from="start" /></>}
      </Fold>
    </div>
  );
}
