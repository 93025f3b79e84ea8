import type { Turn } from "@leat/client";

import { brief, size } from "../time";
import { Sparkline } from "../ui/Sparkline";
import { terms } from "./glossary";
import { type Rate, rateAt } from "./rate";
import { Fact } from "./SpanDetails";
import type { Figures as TurnFigures } from "./trace";

interface FiguresProps { figures: TurnFigures; rate: Rate; turn: Turn; time: number; offset: number; within: number }

const speed = (v: number) => (v < 10 ? v.toFixed(1) : String(Math.round(v)));

/** The figures of a turn. time is the selected moment, in milliseconds since the turn began. */
export function Figures({ figures: f, rate: r, turn, time, offset, within }: FiguresProps) {
  const isLive = turn.state !== "ended";
  const speedNow = rateAt(r, isLive ? time - r.step : time); // the current step is incomplete
  const merged = f.seen - f.pieces;
  return (
    <>
      <dl className="figures">
        <Fact name="Events" text={terms.events}>{f.events}, {size(f.bytes)}</Fact>
        <Fact name="Largest gap" text={terms.gap}>{brief(f.largestGap)}</Fact>
        <Fact name="Storage delay" text={terms.stored}>{brief(f.commitP50)}, p99 {brief(f.commitP99)}</Fact>
        <Fact name="Display delay" text={terms.displayed}>{f.lagP50 === undefined ? "not seen live" : `${brief(f.lagP50)}, p99 ${brief(f.lagP99!)}`}</Fact>
        <Fact name="Coalesced" text={terms.coalesced}>{f.seen === 0 ? "–" : merged > 0 ? `${f.seen} events to ${f.pieces}` : `none of ${f.seen}`}{f.batches > 0 && `, in ${f.batches} ${f.batches === 1 ? "batch" : "batches"}`}</Fact>
        {!turn.usage && r.tokens > 0 && <Fact name="Tokens" text={terms.estimated}>about {r.tokens} out</Fact>}
      </dl>
      <section className="speed" aria-label="Tokens a second">
        <h3>Tokens a second</h3>
        <p><strong>{speed(speedNow)}</strong> {isLive ? "now" : `at ${brief(time)}`}, {r.median === undefined ? "no" : speed(r.median)} median{r.counted ? "" : ", at 4 bytes a token"}</p>
        <Sparkline values={r.values} at={Math.min(r.values.length - 1, Math.floor(time / r.step))}
          label={`Tokens a second over ${brief(f.total)}: ${r.median === undefined ? "none" : `median ${speed(r.median)}, at most ${speed(Math.max(...r.values))}`}`} />
        <details>
          <summary>View as table</summary>
          <div className="table" tabIndex={0} role="group" aria-label="Tokens a second as a table">
            <table><thead><tr><th scope="col">From</th><th scope="col">Tokens a second</th></tr></thead>
              <tbody>{r.values.map((v, i) => <tr key={i}><td>{i * r.step} ms</td><td>{v.toFixed(1)}</td></tr>)}</tbody></table>
          </div>
        </details>
      </section>
      <p className="muted clocks">Times are the gateway’s. {offset === 0 ? "This tab’s clock agrees" : `This tab’s clock differs by ${brief(Math.abs(offset))}`}{Number.isFinite(within) && `, to within ${brief(Math.ceil(within))}`}.</p>
    </>
  );
}
