// Selecting several conversations, to archive or delete them together.

import { useState } from "react";

import { draft } from "../chat/draft";
import { say } from "../chat/speaker";
import { theClient } from "../gateway";
import { type Entry, refresh } from "../list";
import { open as goTo } from "../route";
import { focusOnMount } from "../ui/focus";
import { Icon } from "../ui/Icon";
import { archiving, isArchived } from "./grouping";
import { Title } from "./Row";

interface SelectionProps { entries: readonly Entry[]; selected: ReadonlySet<string>; current: string; change: (selected: ReadonlySet<string> | undefined) => void }

const conversations = (n: number): string => (n === 1 ? "1 conversation" : `${n} conversations`);

/** The bar above the list while conversations are selected. */
export function SelectionBar({ entries, selected, current, change }: SelectionProps) {
  const [isConfirming, setConfirming] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const targets = entries.filter((c) => selected.has(c.id));
  const isArchive = targets.every(isArchived);
  const end = () => {
    change(undefined);
    document.querySelector<HTMLElement>(".rail .new")?.focus();
  };
  // Those that fail stay selected.
  const run = async (action: (c: Entry) => Promise<unknown>, announcement: string) => {
    setBusy(true);
    setConfirming(false);
    const results = await Promise.allSettled(targets.map(action));
    await refresh();
    setBusy(false);
    const failed = targets.filter((_, i) => results[i]!.status === "rejected");
    if (failed.length === 0) {
      say(announcement);
      end();
      return;
    }
    const reason = results.find((r) => r.status === "rejected")!.reason as Error;
    setError(`${conversations(failed.length)} couldn’t be changed: ${reason.message}`);
    change(new Set(failed.map((c) => c.id)));
  };
  const remove = () => run(async (c) => {
    await theClient().conversation(c.id).delete();
    draft.forget(c.id);
    if (c.id === current) goTo("", "replace");
  }, `${conversations(targets.length)} deleted.`);
  const archive = () => run((c) => theClient().conversation(c.id).update({ metadata: archiving(!isArchive) }), `${conversations(targets.length)} ${isArchive ? "moved to the list" : "archived"}.`);
  const isUnusable = targets.length === 0 || isBusy;
  return (
    <div className="selection" role="group" aria-label="Selection" onKeyDown={(e) => {
      if (e.key !== "Escape") return;
      e.preventDefault();
      if (isConfirming) setConfirming(false);
      else end();
    }}>
      {isConfirming ? (
        <div className="sure">
          <span>Delete {conversations(targets.length)}?</span>
          <button type="button" ref={focusOnMount} onClick={() => setConfirming(false)}>Cancel</button>
          <button type="button" className="danger" onClick={() => void remove()}>Delete</button>
        </div>
      ) : (
        <>
          <span className="count" role="status">{targets.length} selected</span>
          <button type="button" className="quiet" aria-label="Select all" title="Select all" onClick={() => change(new Set(entries.map((c) => c.id)))}><Icon name="select" /></button>
          <button type="button" className="quiet" aria-label={isArchive && targets.length > 0 ? "Move out of the archive" : "Archive"} title={isArchive && targets.length > 0 ? "Move out of the archive" : "Archive"} disabled={isUnusable} onClick={() => void archive()}><Icon name="archive" /></button>
          <button type="button" className="quiet" aria-label="Delete" title="Delete" disabled={isUnusable} onClick={() => setConfirming(true)}><Icon name="trash" /></button>
          <button type="button" className="quiet" aria-label="Cancel the selection" title="Cancel" onClick={end}><Icon name="close" /></button>
        </>
      )}
      {error && <p role="alert" className="bad">{error}</p>}
    </div>
  );
}

/** A conversation that can be selected. */
export function SelectableRow({ entry, current, isSelected, toggle, first }: { entry: Entry; current: boolean; isSelected: boolean; toggle: (id: string) => void; first: boolean }) {
  return (
    <li>
      <label className="selectable">
        <input type="checkbox" checked={isSelected} disabled={!!entry.owner} ref={first ? focusOnMount : undefined} onChange={() => toggle(entry.id)} />
        <Title entry={entry} current={current} />
      </label>
    </li>
  );
}
