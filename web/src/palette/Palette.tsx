// Goes anywhere and does anything: a list that is narrowed by typing.

import { type KeyboardEvent, useDeferredValue, useId, useMemo, useState } from "react";

import { choose } from "../chat/chosen";
import { type Action, actions, spelled } from "../keys";
import { list } from "../list";
import { open } from "../route";
import { useStore } from "../store";
import { ago } from "../time";
import { Sheet } from "../ui/Sheet";
import "./palette.css";

/** How many entries of a group are shown, so that the list is drawn at once however many conversations there are. */
const most = 50;

export default function Palette({ close }: { close: () => void }) {
  const now = useStore(actions);
  const { conversations, agents } = useStore(list);
  const [text, setText] = useState("");
  const sought = useDeferredValue(text);
  const [at, setAt] = useState(0);
  const id = useId();
  const all = useMemo<Action[]>(() => [
    ...now.filter((a) => !a.hidden),
    ...agents.map((a) => ({ group: "New conversation with", name: a.name, hint: a.default ? "default" : a.kind, run: () => { choose("", a.default ? "" : a.name); open(""); } })),
    ...conversations.map((c) => ({ group: "Conversations", name: c.title || "New conversation", hint: ago(c.updatedAt), run: () => open(c.id) })),
  ], [now, agents, conversations]);
  const shown = useMemo(() => match(all, sought), [all, sought]);
  const chosen = Math.min(at, shown.length - 1);
  const run = (a: Action | undefined) => {
    if (!a) return;
    close();
    // The focus is back where it was before what is done may move it.
    setTimeout(a.run);
  };
  const keys = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing || e.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[e.key];
    if (step !== undefined) setAt(Math.abs(step) === 1 ? (chosen + step + shown.length) % Math.max(1, shown.length) : Math.max(0, Math.min(shown.length - 1, chosen + step)));
    else if (e.key === "Enter") {
      // The list on the screen may still be that of an earlier text.
      const current = sought === text ? shown : match(all, text);
      run(current[Math.min(at, current.length - 1)]);
    }
    else return;
    e.preventDefault();
  };
  return (
    <Sheet name="Search and commands" className="palette" close={close}>
      <input data-first type="text" role="combobox" aria-label="Search and commands" aria-expanded="true" aria-controls={`${id}-list`} aria-autocomplete="list"
        aria-activedescendant={shown.length > 0 ? `${id}-${chosen}` : undefined} autoComplete="off" spellCheck={false} placeholder="Search conversations, agents and commands"
        value={text} onChange={(e) => { setText(e.target.value); setAt(0); }} onKeyDown={keys} />
      <div id={`${id}-list`} role="listbox" aria-label="Results" className="found">
        {grouped(shown).map(([group, entries]) => (
          <div key={group} role="group" aria-label={group}>
            <div className="group" aria-hidden="true">{group}</div>
            {entries.map(([a, i]) => (
              <div key={i} id={`${id}-${i}`} role="option" aria-selected={i === chosen} ref={i === chosen ? (e) => e?.scrollIntoView({ block: "nearest" }) : undefined} onClick={() => run(a)} onMouseMove={() => setAt(i)}>
                <span className="name">{a.name}</span>{a.hint && <span className="muted">{a.hint}</span>}{a.key && <kbd>{spelled(a.key)}</kbd>}
              </div>
            ))}
          </div>
        ))}
      </div>
      <p className="muted" role="status">{shown.length === 0 ? `No results for “${sought}”` : ""}</p>
    </Sheet>
  );
}

// Every word has to be there; entries of which a word begins with the first one come first.
function match(all: readonly Action[], text: string): Action[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (a: Action) => (words[0] && ` ${a.name.toLowerCase()}`.includes(` ${words[0]}`) ? 0 : 1);
  const found = all.filter((a) => words.every((w) => `${a.group} ${a.name}`.toLowerCase().includes(w)));
  const counts = new Map<string, number>();
  return [...found].sort((a, b) => (words.length > 0 ? rank(a) - rank(b) : 0)).filter((a) => {
    const n = (counts.get(a.group) ?? 0) + 1;
    counts.set(a.group, n);
    return n <= most;
  }).sort((a, b) => order(found, a.group) - order(found, b.group));
}

const order = (all: readonly Action[], group: string): number => all.findIndex((a) => a.group === group);

function grouped(shown: readonly Action[]): [string, [Action, number][]][] {
  const out = new Map<string, [Action, number][]>();
  shown.forEach((a, i) => out.set(a.group, [...(out.get(a.group) ?? []), [a, i]]));
  return [...out];
}
