import type { Part } from "@leat/client";

import { Markdown } from "../../markdown/Markdown";
import { about } from "../../time";
import { Clock } from "../../ui/Clock";
import { Fold, type Hold } from "./Fold";
import { Mark } from "./Mark";

// The conversations in which the reader has expanded a reasoning part. New reasoning is shown expanded there while it streams.
const openConversations = new Set<string>();

/** The agent's reasoning, collapsed, with its duration. */
export function Reasoning({ part: p, live, conversation, hold }: { part: Part; live: boolean; conversation: string; hold: Hold }) {
  if (!p.text && !live) return null;
  const took = p.at !== undefined && p.endAt !== undefined ? about(p.endAt - p.at) : "";
  return (
    <Fold className="reasoning" hold={hold} open={live && openConversations.has(conversation)} told={(open) => (open ? openConversations.add(conversation) : openConversations.delete(conversation))}
      summary={live ? <span className="line"><Mark of="running" named={false} /> Reasoning {p.at !== undefined && <Clock since={p.at} changed={p} />}</span> : <span>Reasoned{took && ` for ${took}`}</span>}>
      {() => (p.text ? <Markdown text={p.text} live={live} /> : <p className="muted">Nothing yet.</p>)}
    </Fold>
  );
}
