// The range of messages that the log renders: enough around the reading position, never thousands. Messages are added and removed
// outside the visible area, so that nothing visible moves.

/** The number of messages that are added at a time, and the maximum number. */
export const step = 40;
export const maxShown = 160;

/** The maximum number of characters in messages that are added at a time. A few messages are always added. */
export const heavy = 200_000;
const minMessages = 4;

/**
 * A range of messages by the ids of its first and last message. Without first, it begins step messages before its end; without
 * last, it ends with the log.
 */
export interface Stretch { first?: string | undefined; last?: string | undefined }

type Messages = readonly { readonly id: string; readonly parts?: readonly { readonly text?: string }[] }[];

const weights = new WeakMap<Messages[number], number>();

function weight(m: Messages[number]): number {
  let w = weights.get(m);
  if (w === undefined) weights.set(m, (w = m.parts?.reduce((n, p) => n + (p.text?.length ?? 0), 0) ?? 0));
  return w;
}

// reach returns the index after moving by a number of messages or characters, whichever is reached first.
function reach(from: number, way: 1 | -1, messages: Messages, count: number, characters: number): number {
  let [i, sum] = [from, 0];
  for (; Math.abs(i - from) < count; i += way) {
    const m = messages[way < 0 ? i - 1 : i];
    if (!m) break;
    sum += weight(m);
    if (sum > characters && Math.abs(i - from) >= minMessages) break;
  }
  return i;
}

/** Returns the indexes of a range: from, and to (exclusive). following means that the end is in view. */
export function place(s: Stretch, messages: Messages, following: boolean): { from: number; to: number } {
  const find = (id: string | undefined) => (id === undefined ? -1 : messages.findLastIndex((m) => m.id === id));
  const n = messages.length;
  const last = following ? -1 : find(s.last);
  const to = last < 0 ? n : last + 1;
  // If first isn't found, it is older than the loaded messages, or was deleted.
  const from = s.first === undefined ? reach(to, -1, messages, step, heavy) : Math.min(Math.max(0, find(s.first)), to);
  return following ? { from: Math.max(from, reach(to, -1, messages, maxShown, 4 * heavy)), to } : { from, to: Math.min(to, from + 2 * maxShown) };
}

/** Returns the range around a message. */
export function near(i: number, messages: Messages): Stretch {
  const to = Math.min(messages.length, i + step);
  return { first: messages[Math.max(0, i - step)]?.id, last: to < messages.length ? messages[to - 1]?.id : undefined };
}

/** Extends a range at its beginning. If it gets too long, it is cut at its end, far below the reading position. */
export function earlier(at: { from: number; to: number }, messages: Messages): Stretch {
  const from = reach(at.from, -1, messages, step, heavy);
  const to = Math.min(at.to, reach(from, 1, messages, maxShown, 4 * heavy));
  return { first: messages[from]?.id, last: to < messages.length ? messages[to - 1]?.id : undefined };
}

/** Extends a range at its end. If it gets too long, it is cut at its beginning. */
export function showLater(at: { from: number; to: number }, messages: Messages): Stretch {
  const to = reach(at.to, 1, messages, step, heavy);
  const from = Math.max(at.from, reach(to, -1, messages, maxShown, 4 * heavy));
  return { first: messages[from]?.id, last: to < messages.length ? messages[to - 1]?.id : undefined };
}
