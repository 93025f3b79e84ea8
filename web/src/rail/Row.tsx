// One conversation of the list, with its menu.

import { memo, useLayoutEffect, useRef, useState } from "react";

import { draft } from "../chat/draft";
import { say } from "../chat/speaker";
import { theClient } from "../gateway";
import { type Entry, refresh } from "../list";
import { open as goTo } from "../route";
import { focusOnMount } from "../ui/focus";
import { Icon } from "../ui/Icon";
import { Menu, type MenuGroup } from "../ui/Menu";
import { archiving, isArchived, isPinned, pinning } from "./grouping";

interface RowProps { entry: Entry; current: boolean; close: () => void; select: (id: string) => void }

export const Row = memo(function Row({ entry, current, close, select }: RowProps) {
  const [mode, setMode] = useState<"" | "rename" | "delete">("");
  const [error, setError] = useState("");
  const item = useRef<HTMLLIElement>(null);
  const conversation = () => theClient().conversation(entry.id);
  const restoreFocus = useRef(false);
  const finish = (err?: unknown) => {
    setError(err instanceof Error ? err.message : "");
    restoreFocus.current = true;
    setMode("");
    void refresh();
  };
  // Closing a form focuses the button of the menu from which it was opened.
  useLayoutEffect(() => {
    if (mode || !restoreFocus.current) return;
    restoreFocus.current = false;
    if (document.activeElement !== document.body) return;
    item.current?.querySelector("a")?.focus(); // the button exists only in the focused entry
    item.current?.querySelector<HTMLElement>("[aria-haspopup]")?.focus();
  }, [mode]);
  // mark changes the metadata. The entry may move to another group or leave the list: then the focus follows it, or moves to next.
  const mark = (metadata: ReturnType<typeof pinning>, announcement: string, next?: HTMLElement | null) => {
    setError("");
    conversation().update({ metadata }).then(refresh).then(() => {
      say(announcement);
      if (document.activeElement === document.body || document.activeElement === null) (next?.isConnected ? next : linkOf(entry.id))?.focus();
    }).catch((err: Error) => setError(err.message));
  };
  if (mode === "rename") {
    return (
      <li ref={item}>
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
  const [pinned, archived] = [isPinned(entry), isArchived(entry)];
  const groups: MenuGroup[] = [{
    items: [
      { name: "Rename", icon: "pencil", run: () => setMode("rename") },
      ...(archived ? [] : [{ name: pinned ? "Unpin" : "Pin", icon: "pin" as const, run: () => mark(pinning(!pinned), pinned ? "Unpinned." : "Pinned.") }]),
      { name: archived ? "Move out of the archive" : "Archive", icon: "archive", run: () => mark(archiving(!archived), archived ? "Moved to the list." : "Archived.", neighbour(item.current)) },
      { name: "Select", icon: "select", run: () => select(entry.id) },
    ],
  }, { items: [{ name: "Delete", icon: "trash", danger: true, run: () => setMode("delete") }] }];
  return (
    <li ref={item}>
      <a href={`#/c/${encodeURIComponent(entry.id)}`} aria-current={current ? "page" : undefined} title={entry.title} onClick={(e) => {
        if (e.metaKey || e.ctrlKey || e.shiftKey) return;
        e.preventDefault();
        goTo(entry.id);
        close();
      }}>
        <Title entry={entry} current={current} />
      </a>
      {error && <p role="alert" className="bad">{error}</p>}
      {!entry.owner && <span className="acts"><Menu label={`Options for ${entry.title}`} title="Options" groups={groups}><Icon name="more" /></Menu></span>}
    </li>
  );
});

export function Title({ entry, current }: { entry: Entry; current: boolean }) {
  return (
    <>
      <span className="title">{entry.title || "New conversation"}</span>
      {entry.waiting ? <span className="awaiting" role="img" aria-label="Awaiting approval" title="Awaiting approval" /> : entry.unread && !current && <span className="unread" role="img" aria-label="Unread" />}
    </>
  );
}

const linkOf = (id: string): HTMLElement | null => document.querySelector(`.list a[href="#/c/${CSS.escape(encodeURIComponent(id))}"]`);

/** Returns the link to focus when an entry leaves the list: that of the next entry, else the previous one, else the new conversation. */
function neighbour(item: HTMLElement | null): HTMLElement | null {
  const rows = [...(item?.closest(".list")?.querySelectorAll("li") ?? [])];
  const at = rows.indexOf(item as HTMLLIElement);
  const other = rows[at + 1] ?? rows[at - 1];
  return other?.querySelector("a") ?? item?.closest(".rail")?.querySelector(".new") ?? null;
}
