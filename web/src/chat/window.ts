// A log shows a stretch of its messages: enough around what is read, never thousands. Messages come and go only where they are out
// of sight, so none is seen to move.

/** How many messages are added at a time, and how many are there at most. */
export const step = 40;
export const maxShown = 160;

/** How many characters the messages that are added at a time have at most, if they are more than a few. */
export const heavy = 200_000;
const minMessages = 4;

/** A stretch of messages, by the ids of its first and last one; without a first one it begins step before the end, without a last one it goes to the end. */
export interface Stretch { first?: string | undefined; last?: string | undefined }

type Messages = readonly { readonly id: string; readonly parts?: readonly { readonly text?: string }[] }[];

const weights = new WeakMap<Messages[number], number>();

function weight(m: Messages[number]): number {
  let w = weights.get(m);
  if (w === undefined) weights.set(m, (w = m.parts?.reduce((n, p) => n + (p.text?.length ?? 0), 0) ?? 0));
  return w;
}

// How far to go from a place, by one way or the other: so many messages, or so many characters of them.
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

/** Where a stretch lies now: from, up to and not including to. following: the end is in view. */
export function place(s: Stretch, messages: Messages, following: boolean): { from: number; to: number } {
  const find = (id: string | undefined) => (id === undefined ? -1 : messages.findLastIndex((m) => m.id === id));
  const n = messages.length;
  const last = following ? -1 : find(s.last);
  const to = last < 0 ? n : last + 1;
  // A first one that is not known is older than what is held, or gone.
  const from = s.first === undefined ? reach(to, -1, messages, step, heavy) : Math.min(Math.max(0, find(s.first)), to);
  return following ? { from: Math.max(from, reach(to, -1, messages, maxShown, 4 * heavy)), to } : { from, to: Math.min(to, from + 2 * maxShown) };
}

/** The stretch around the message with that index. */
export function near(i: number, messages: Messages): Stretch {
  const to = Math.min(messages.length, i + step);
  return { first: messages[Math.max(0, i - step)]?.id, last: to < messages.length ? messages[to - 1]?.id : undefined };
}

/** The stretch with more at its beginning; what is too much goes at its end, far below what is read. */
export function earlier(at: { from: number; to: number }, messages: Messages): Stretch {
  const from = reach(at.from, -1, messages, step, heavy);
  const to = Math.min(at.to, reach(from, 1, messages, maxShown, 4 * heavy));
  return { first: messages[from]?.id, last: to < messages.length ? messages[to - 1]?.id : undefined };
}

/** The stretch with more at its end; what is too much goes at its beginning. */
export function showLater(at: { from: number; to: number }, messages: Messages): Stretch {
  const to = reach(at.to, 1, messages, step, heavy);
  const from = Math.max(at.from, reach(to, -1, messages, maxShown, 4 * heavy));
  return { first: messages[from]?.id, last: to < messages.length ? messages[to - 1]?.id : undefined };
}
