// The order of the list: pinned conversations, then groups by date. Archived conversations are in a separate list.

import type { Metadata, Summary } from "@leat/client";

export interface Group { name: string; entries: readonly Summary[] }

/** The marks of a conversation are its owner's: they are in its metadata, so that they follow the owner to other devices. */
const hasMark = (c: Summary, mark: "pinned" | "archived"): boolean => !c.owner && c.metadata?.[mark] === true;
export const isPinned = (c: Summary): boolean => hasMark(c, "pinned");
export const isArchived = (c: Summary): boolean => hasMark(c, "archived");

/** Returns the change of metadata that sets or removes a mark. An archived conversation is not pinned. */
export const pinning = (on: boolean): Metadata => ({ pinned: on || null });
export const archiving = (on: boolean): Metadata => ({ archived: on || null, ...(on && { pinned: null }) });

/** Groups conversations, which are sorted by their last use. Those of the archive are left out. */
export function groupByDate(entries: readonly Summary[], time: Date): Group[] {
  const groups = new Map<string, Summary[]>();
  const add = (name: string, c: Summary) => groups.get(name)?.push(c) ?? groups.set(name, [c]);
  for (const c of entries) if (isPinned(c) && !isArchived(c)) add("Pinned", c);
  for (const c of entries) if (!isPinned(c) && !isArchived(c)) add(period(new Date(c.updatedAt), time), c);
  return [...groups].map(([name, list]) => ({ name, entries: list }));
}

/** Returns the conversations in the order of the list. */
export const inOrder = (entries: readonly Summary[]): Summary[] => groupByDate(entries, new Date()).flatMap((g) => g.entries);

// period names the time of a date, relative to today, by days of the local calendar.
function period(date: Date, time: Date): string {
  const days = Math.round((midnight(time) - midnight(date)) / 86_400_000); // rounded, because days of a clock change are longer or shorter
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days <= 7) return "Previous 7 days";
  if (days <= 30) return "Previous 30 days";
  return date.toLocaleDateString(undefined, { month: "long", ...(date.getFullYear() !== time.getFullYear() && { year: "numeric" }) });
}

const midnight = (d: Date): number => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();

/** Returns the conversations whose titles contain every word of a query. */
export function find(entries: readonly Summary[], query: string): readonly Summary[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? entries : entries.filter((c) => words.every((w) => c.title.toLowerCase().includes(w)));
}
