import type { Usage } from "@leat/client";

import { line } from "./parts/marks";

const count = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Formats a cost. Its currency is that of the gateway's price list, which the page doesn't know. */
export const amount = (cost: number): string => (cost < 0.0001 ? "<0.0001" : cost.toFixed(cost >= 0.1 ? 2 : cost >= 0.01 ? 3 : 4));

/** The tokens and cost of an answer: a short label, with the details in its title. */
export function UsageLabel({ usage: u, model }: { usage: Usage; model: string | undefined }) {
  const name = line(u.model ?? model ?? "", 60);
  const counts = ([["input", u.input], ["output", u.output], ["reasoning", u.reasoning], ["cache read", u.cache_read], ["cache write", u.cache_write]] as const)
    .filter(([, n]) => n).map(([label, n]) => `${n!.toLocaleString("en")} ${label} tokens`);
  if (u.cost) counts.push(`cost ${u.cost}`);
  const short = [name, u.input || u.output ? `${count.format(u.input ?? 0)} → ${count.format(u.output ?? 0)} tokens` : "", u.cost ? `cost ${amount(u.cost)}` : ""].filter(Boolean).join(" · ");
  return short ? <span className="used" title={counts.join(", ")}>{short}</span> : null;
}
