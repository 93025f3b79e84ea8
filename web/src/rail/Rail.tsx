// The rail: the list of conversations in groups, their archive, and the buttons below.

import { type KeyboardEvent, type RefObject, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";

import type { Session } from "../gateway";
import { ariaKeys, spelled } from "../keys";
import { type Layer, layer } from "../layers";
import { list } from "../list";
import { activity } from "../live/feed";
import { open as goTo, openActivity, openOverview, route } from "../route";
import { SignOut } from "../SignOut";
import { useStore } from "../store";
import { theme, toggleTheme } from "../theme";
import { useNow } from "../ui/Clock";
import { Icon } from "../ui/Icon";
import { useEscape } from "../ui/over";
import { find, groupByDate, isArchived } from "./grouping";
import { Row } from "./Row";
import { SelectableRow, SelectionBar } from "./Selection";

interface RailProps {
  current: string;
  session: Session;
  opened: boolean; // the rail covers a narrow page
  open: () => void;
  close: () => void;
}

export function Rail({ current, session, opened, open, close }: RailProps) {
  const { conversations, loaded, error } = useStore(list);
  const [query, seek] = useState("");
  const [isArchiveShown, setArchiveShown] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string>>(); // undefined: no selection
  const [selectionStart, setSelectionStart] = useState(""); // the entry from whose menu the selection began
  const today = new Date(useNow()).toDateString();
  const archive = useMemo(() => conversations.filter(isArchived), [conversations]);
  if (isArchiveShown && archive.length === 0) setArchiveShown(false);
  const groups = useMemo(() => {
    if (isArchiveShown) return [{ name: "Archive", entries: find(archive, query) }].filter((g) => g.entries.length > 0);
    const inList = groupByDate(find(conversations, query), new Date(today));
    const inArchive = query ? find(archive, query) : [];
    return inArchive.length > 0 ? [...inList, { name: "Archive", entries: inArchive }] : inList;
  }, [conversations, archive, isArchiveShown, query, today]);
  const entries = groups.flatMap((g) => g.entries);
  const select = useCallback((id: string) => {
    setSelectionStart(id);
    setSelected(new Set([id]));
  }, []);
  const toggle = (id: string) => setSelected((ids) => {
    const next = new Set(ids);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const { view } = useStore(route);
  const hasFailures = (useStore(activity)?.failures ?? 0) > 0 && view !== "activity";
  const dark = useStore(theme) === "dark";
  const rail = useRef<HTMLElement>(null);
  useSheet(rail, opened);
  useEscape(opened, close);
  const news = conversations.some((c) => (c.unread || c.waiting) && c.id !== current) || hasFailures;
  // Opening a layer closes the list, so that the layer covers only the page.
  const openLayer = (l: Layer) => {
    close();
    layer.set(l);
  };
  return (
    <nav ref={rail} className="rail" aria-label="Conversations" onKeyDown={(e) => {
      if (!opened || e.key !== "Escape" || e.defaultPrevented) return;
      e.preventDefault();
      close();
    }}>
      <header>
        <button type="button" className="quiet only-medium rail-opener" aria-expanded={opened} aria-label={news ? "Conversations, some unread" : "Conversations"} title="Conversations" onClick={opened ? close : open}>
          <Icon name="menu" />{news && <span className="unread" />}
        </button>
        <strong>Leat</strong>
        <button type="button" className="quiet" aria-label={dark ? "Light theme" : "Dark theme"} title={dark ? "Light theme" : "Dark theme"} onClick={toggleTheme}>
          <Icon name={dark ? "sun" : "moon"} />
        </button>
        <button type="button" className="quiet only-narrow" aria-label="Close" data-first onClick={close}><Icon name="close" /></button>
      </header>
      <button type="button" className="new" aria-keyshortcuts={ariaKeys("new")} title={`New conversation (${spelled("new")})`} onClick={() => { goTo(""); close(); }}><Icon name="plus" /><span className="label">New conversation</span></button>
      <label className="seek"><Icon name="search" /><span className="unseen">Find a conversation</span>
        <input type="search" placeholder="Find" value={query} onChange={(e) => seek(e.target.value)} />
      </label>
      {isArchiveShown && !selected && (
        <button type="button" className="quiet wide back" onClick={() => setArchiveShown(false)}><Icon name="back" /><span className="label">All conversations</span></button>
      )}
      {selected && <SelectionBar entries={entries.filter((c) => !c.owner)} selected={selected} current={current} change={setSelected} />}
      <div className="list" onKeyDown={arrows}>
        {groups.map((g) => (
          <section key={g.name} aria-label={g.name}>
            <h2>{g.name}</h2>
            <ul>
              {g.entries.map((c) => (selected
                ? <SelectableRow key={c.id} entry={c} current={c.id === current} isSelected={selected.has(c.id)} toggle={toggle} first={c.id === selectionStart} />
                : <Row key={c.id} entry={c} current={c.id === current} close={close} select={select} />))}
            </ul>
          </section>
        ))}
        {loaded && entries.length === 0 && <p className="muted">{query ? `No results for “${query}”` : "No conversations yet."}</p>}
        {!isArchiveShown && !query && !selected && archive.length > 0 && (
          <button type="button" className="quiet wide" onClick={() => setArchiveShown(true)}><Icon name="archive" /><span className="label">Archive</span><span className="count">{archive.length}</span></button>
        )}
      </div>
      {!loaded && error && <p className="muted">{error}</p>}
      {(session.admin || !session.tokenNeeded) && (
        <button type="button" className="quiet wide" title="Overview" aria-current={view === "overview" ? "page" : undefined} onClick={() => { openOverview(); close(); }}><Icon name="gauge" /><span className="label">Overview</span></button>
      )}
      {(session.admin || !session.tokenNeeded) && (
        <button type="button" className="quiet wide" title="Activity" aria-label={hasFailures ? "Activity, something failed" : undefined} aria-current={view === "activity" ? "page" : undefined} onClick={() => { openActivity(); close(); }}>
          <Icon name="terminal" /><span className="label">Activity</span>{hasFailures && <span className="unread" />}
        </button>
      )}
      <button type="button" className="quiet wide" aria-keyshortcuts={ariaKeys("palette")} title={`Search and commands (${spelled("palette")})`} onClick={() => openLayer("palette")}><Icon name="search" /><span className="label">Search and commands</span></button>
      <button type="button" className="quiet wide" title="Settings" onClick={() => openLayer("settings")}><Icon name="settings" /><span className="label">Settings</span></button>
      <button type="button" className="quiet wide" title="Keyboard shortcuts (?)" onClick={() => openLayer("keys")}><Icon name="help" /><span className="label">Keyboard shortcuts</span></button>
      {session.tokenNeeded && <SignOut />}
    </nav>
  );
}

// useSheet makes the rail modal on a narrow page: the page below is inert, and closing returns the focus.
function useSheet(rail: RefObject<HTMLElement | null>, isOpen: boolean): void {
  const opener = useRef<Element>(undefined);
  useLayoutEffect(() => {
    if (!isOpen) return;
    const below = document.querySelector("main");
    opener.current = document.activeElement ?? document.body;
    if (below) below.inert = true;
    rail.current?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      if (below) below.inert = false;
    };
  }, [rail, isOpen]);
  // This must run before a layer opened from the list stores the focused element.
  useLayoutEffect(() => {
    const from = opener.current;
    if (isOpen || !from) return;
    opener.current = undefined;
    const at = document.activeElement;
    if (!at || at === document.body || rail.current?.contains(at)) (isVisible(from) ? from : [...document.querySelectorAll(".rail-opener")].find(isVisible))?.focus();
  }, [rail, isOpen]);
}

const isVisible = (e: Element | undefined | null): e is HTMLElement => e instanceof HTMLElement && e !== document.body && e.getClientRects().length > 0;

function arrows(event: KeyboardEvent<HTMLElement>) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp" || event.altKey || (event.target as HTMLElement).tagName === "INPUT") return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  links[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  event.preventDefault();
}
