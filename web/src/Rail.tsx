// The rail: the list of conversations, newest first, with search, rename and delete.

import { type KeyboardEvent, memo, type RefObject, useLayoutEffect, useMemo, useRef, useState } from "react";

import { draft } from "./chat/draft";
import { type Session, theClient } from "./gateway";
import { ariaKeys, spelled } from "./keys";
import { type Layer, layer } from "./layers";
import { list, type Entry, refresh } from "./list";
import { open as goTo, openOverview, route } from "./route";
import { SignOut } from "./SignOut";
import { useStore } from "./store";
import { theme, toggleTheme } from "./theme";
import { ago } from "./time";
import { focusOnMount } from "./ui/focus";
import { Icon } from "./ui/Icon";
import { useEscape } from "./ui/over";

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
  const matches = useMemo(() => find(conversations, query), [conversations, query]);
  const { view } = useStore(route);
  const dark = useStore(theme) === "dark";
  const rail = useRef<HTMLElement>(null);
  useSheet(rail, opened);
  useEscape(opened, close);
  const news = conversations.some((c) => c.unread && c.id !== current);
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
      <ul className="list" onKeyDown={arrows}>
        {matches.map((c) => <Entry key={c.id} entry={c} current={c.id === current} close={close} />)}
      </ul>
      {loaded && matches.length === 0 && <p className="muted">{query ? `No results for “${query}”` : "No conversations yet."}</p>}
      {!loaded && error && <p className="muted">{error}</p>}
      {(session.admin || !session.tokenNeeded) && (
        <button type="button" className="quiet wide" title="Overview" aria-current={view === "overview" ? "page" : undefined} onClick={() => { openOverview(); close(); }}><Icon name="gauge" /><span className="label">Overview</span></button>
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

function find(entries: readonly Entry[], query: string): readonly Entry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? entries : entries.filter((c) => words.every((w) => c.title.toLowerCase().includes(w)));
}

function arrows(event: KeyboardEvent<HTMLUListElement>) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp" || (event.target as HTMLElement).tagName === "INPUT") return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  links[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  event.preventDefault();
}

const Entry = memo(function Entry({ entry, current, close }: { entry: Entry; current: boolean; close: () => void }) {
  const [mode, setDoing] = useState<"" | "rename" | "delete">("");
  const [error, setError] = useState("");
  const item = useRef<HTMLLIElement>(null);
  const menu = useRef<HTMLButtonElement>(null);
  const conversation = () => theClient().conversation(entry.id);
  const restoreFocus = useRef(false);
  const finish = (err?: unknown) => {
    setError(err instanceof Error ? err.message : "");
    restoreFocus.current = true;
    setDoing("");
    void refresh();
  };
  // Closing the menu focuses the button that opened it.
  useLayoutEffect(() => {
    if (mode || !restoreFocus.current) return;
    restoreFocus.current = false;
    if (document.activeElement !== document.body) return;
    menu.current?.closest("li")?.querySelector("a")?.focus(); // the buttons exist only in the focused entry
    menu.current?.focus();
  }, [mode]);
  const isOwner = !entry.owner;
  if (mode === "rename") {
    return (
      <li>
        <form className="rename" onSubmit={(e) => {
          e.preventDefault();
          const title = (new FormData(e.currentTarget).get("title") as string).trim();
          if (title && title !== entry.title) void conversation().update({ title }).then(() => finish(), finish);
          else finish();
        }}>
          <input name="title" aria-label="Title" defaultValue={entry.title} ref={focusOnMount} onFocus={(e) => e.target.select()} onKeyDown={(e) => { if (e.key === "Escape") { e.preventDefault(); finish(); } }} onBlur={(e) => e.currentTarget.form?.requestSubmit()} />
        </form>
      </li>
    );
  }
  if (mode === "delete") {
    return (
      <li ref={item} className="sure" role="group" aria-label={`Delete ${entry.title}?`} onKeyDown={(e) => { if (e.key === "Escape") { e.preventDefault(); finish(); } }}>
        <span>Delete this conversation?</span>
        <button type="button" ref={focusOnMount} onClick={() => finish()}>Cancel</button>
        <button type="button" className="danger" onClick={() => {
          const next = neighbour(item.current);
          void conversation().delete().then(() => {
            draft.forget(entry.id);
            if (current) goTo("", "replace"); // the composer then has the focus
            else next?.focus();
            void refresh();
          }, finish);
        }}>Delete</button>
      </li>
    );
  }
  return (
    <li>
      <a href={`#/c/${encodeURIComponent(entry.id)}`} aria-current={current ? "page" : undefined} title={entry.title} onClick={(e) => {
        if (e.metaKey || e.ctrlKey || e.shiftKey) return;
        e.preventDefault();
        goTo(entry.id);
        close();
      }}>
        <span className="title">{entry.title || "New conversation"}</span>
        {entry.unread && !current && <span className="unread" role="img" aria-label="Unread" />}
        <time dateTime={entry.updatedAt}>{ago(entry.updatedAt)}</time>
      </a>
      {error && <p role="alert" className="bad">{error}</p>}
      {isOwner && (
        <span className="acts">
          <button ref={menu} type="button" className="quiet" aria-label={`Rename ${entry.title}`} title="Rename" onClick={() => setDoing("rename")}><Icon name="pencil" /></button>
          <button type="button" className="quiet" aria-label={`Delete ${entry.title}`} title="Delete" onClick={() => setDoing("delete")}><Icon name="trash" /></button>
        </span>
      )}
    </li>
  );
});

/**
 * Returns the element to focus after an entry is deleted: the next entry, else the previous one, else the link to a new
 * conversation.
 */
function neighbour(item: HTMLElement | null): HTMLElement | null {
  const other = item?.nextElementSibling ?? item?.previousElementSibling;
  return other?.querySelector("a") ?? item?.closest(".rail")?.querySelector(".new") ?? null;
}
