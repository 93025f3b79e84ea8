// The command palette: a list of conversations, agents and actions, filtered by typing.

import { type KeyboardEvent, useDeferredValue, useId, useMemo, useState } from "react";

import { choose } from "../chat/chosen";
import { type Action, actions, spelled } from "../keys";
import { list } from "../list";
import { open } from "../route";
import { useStore } from "../store";
import { ago } from "../time";
import { Sheet } from "../ui/Sheet";
import "./palette.css";

/** The maximum number of entries in a group, so that the list renders quickly with many conversations. */
const maxMatches = 50;

export default function Palette({ close }: { close: () => void }) {
  const available = useStore(actions);
  const { conversations, agents } = useStore(list);
  const [text, setText] = useState("");
  const query = useDeferredValue(text);
  const [at, setAt] = useState(0);
  const id = useId();
  const allActions = useMemo<Action[]>(() => [
    ...available.filter((a) => !a.hidden),
    ...agents.map((a) => ({ group: "New conversation with", name: a.name, hint: a.default ? "default" : a.kind, run: () => { choose("", a.default ? "" : a.name); open(""); } })),
    ...conversations.map((c) => ({ group: "Conversations", name: c.title || "New conversation", hint: ago(c.updatedAt), run: () => open(c.id) })),
  ], [available, agents, conversations]);
  const matches = useMemo(() => match(allActions, query), [allActions, query]);
  const selection = Math.min(at, matches.length - 1);
  const run = (a: Action | undefined) => {
    if (!a) return;
    close();
    // The action runs after the focus was returned, because it may move the focus.
    setTimeout(a.run);
  };
  const keys = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing || e.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[e.key];
    if (step !== undefined) setAt(Math.abs(step) === 1 ? (selection + step + matches.length) % Math.max(1, matches.length) : Math.max(0, Math.min(matches.length - 1, selection + step)));
    else if (e.key === "Enter") {
      // The rendered list may belong to an earlier text.
      const current = query === text ? matches : match(allActions, text);
      run(current[Math.min(at, current.length - 1)]);
    }
    else return;
    e.preventDefault();
  };
  return (
    <Sheet name="Search and commands" className="palette" close={close}>
      <input data-first type="text" role="combobox" aria-label="Search and commands" aria-expanded="true" aria-controls={`${id}-list`} aria-autocomplete="list"
        aria-activedescendant={matches.length > 0 ? `${id}-${selection}` : undefined} autoComplete="off" spellCheck={false} placeholder="Search conversations, agents and commands"
        value={text} onChange={(e) => { setText(e.target.value); setAt(0); }} onKeyDown={keys} />
      <div id={`${id}-list`} role="listbox" aria-label="Results" className="found">
        {grouped(matches).map(([group, entries]) => (
          <div key={group} role="group" aria-label={group}>
            <div className="group" aria-hidden="true">{group}</div>
            {entries.map(([a, i]) => (
              <div key={i} id={`${id}-${i}`} role="option" aria-selected={i === selection} ref={i === selection ? (e) => e?.scrollIntoView({ block: "nearest" }) : undefined} onClick={() => run(a)} onMouseMove={() => setAt(i)}>
                <span className="name">{a.name}</span>{a.hint && <span className="muted">{a.hint}</span>}{a.key && <kbd>{spelled(a.key)}</kbd>}
              </div>
            ))}
          </div>
        ))}
      </div>
      <p className="muted" role="status">{matches.length === 0 ? `No results for “${query}”` : ""}</p>
    </Sheet>
  );
}

// match returns the entries that contain every word, first those with a word that begins with the first search word.
function match(candidates: readonly Action[], text: string): Action[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (a: Action) => (words[0] && ` ${a.name.toLowerCase()}`.includes(` ${words[0]}`) ? 0 : 1);
  const matched = candidates.filter((a) => words.every((w) => `${a.group} ${a.name}`.toLowerCase().includes(w)));
  const counts = new Map<string, number>();
  return [...matched].sort((a, b) => (words.length > 0 ? rank(a) - rank(b) : 0)).filter((a) => {
    const n = (counts.get(a.group) ?? 0) + 1;
    counts.set(a.group, n);
    return n <= maxMatches;
  }).sort((a, b) => order(matched, a.group) - order(matched, b.group));
}

const order = (candidates: readonly Action[], group: string): number => candidates.findIndex((a) => a.group === group);

function grouped(matches: readonly Action[]): [string, [Action, number][]][] {
  const groups = new Map<string, [Action, number][]>();
  matches.forEach((a, i) => groups.set(a.group, [...(groups.get(a.group) ?? []), [a, i]]));
  return [...groups];
}
