import type { Usage } from "@leat/client";

import { line } from "./parts/marks";

const count = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** What an answer took: short, and whole in its title. */
export function Used({ usage: u, model }: { usage: Usage; model: string | undefined }) {
  const name = line(u.model ?? model ?? "", 60);
  const all = ([["read", u.input], ["written", u.output], ["of it reasoning", u.reasoning], ["read from the cache", u.cache_read], ["put into the cache", u.cache_write]] as const)
    .filter(([, n]) => n).map(([what, n]) => `${n!.toLocaleString("en")} tokens ${what}`);
  if (u.cost) all.push(`cost ${u.cost}`);
  const short = [name, u.input || u.output ? `${count.format(u.input ?? 0)} → ${count.format(u.output ?? 0)} tokens` : ""].filter(Boolean).join(" · ");
  return short ? <span className="used" title={all.join(", ")}>{short}</span> : null;
}
