// The agent's emote, by its name, for as long as it lasts.

import { useEffect, useState } from "react";

import { line } from "../chat/parts/marks";
import { say } from "../chat/speaker";
import { call } from "../gateway";
import { Icon } from "../ui/Icon";
import { activity } from "./feed";
import type { Emote } from "./state";

/** The shortest time for which a label is shown, in milliseconds: less can't be read. */
const minDuration = 2_000;

interface Entry { id: string; name?: string; description?: string }

let catalogue: Promise<readonly Entry[]> | undefined;

// loadCatalogue returns the catalogue. After a failure it is loaded again for the next emote.
const loadCatalogue = () => (catalogue ??= call<{ emotes?: Entry[] }>("api/emotes").then((r) => r.emotes ?? [], () => {
  catalogue = undefined;
  return []; // the id is shown instead of the name
}));

const hide = (number: number) => activity.change((a) => (a?.emote?.number === number ? { ...a, emote: undefined } : a));

export function EmoteLabel({ emote: { number, emoteId, duration, isLoop }, agent }: { emote: Emote; agent: string }) {
  const [entry, setEntry] = useState<Entry>();
  useEffect(() => {
    let isOver = false;
    void loadCatalogue().then((entries) => {
      const match = entries.find((e) => e.id === emoteId) ?? { id: emoteId };
      say(`${line(agent)}: ${line(match.name || match.id)}`);
      if (!isOver) setEntry(match);
    });
    return () => { isOver = true; };
  }, [emoteId, agent]);
  useEffect(() => {
    if (isLoop) return; // until the next one
    const timer = setTimeout(() => hide(number), Math.max(minDuration, duration));
    return () => clearTimeout(timer);
  }, [number, duration, isLoop]);
  return (
    <aside className="emote" aria-label="Emote" data-emote={line(emoteId)}>
      <Icon name="face" />
      <span>{agent && <span className="muted">{line(agent, 40)} · </span>}<strong>{line(entry?.name || emoteId, 60)}</strong></span>
      {isLoop && <button type="button" className="quiet" aria-label="Hide emote" title="Hide" onClick={() => hide(number)}><Icon name="close" /></button>}
    </aside>
  );
}
