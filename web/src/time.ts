/** Formats the age of a time: 5 min, 3 h, Mon, 12 Mar. */
export function ago(at: string, time = Date.now()): string {
  const date = new Date(at);
  const minutes = (time - date.getTime()) / 60_000;
  if (minutes < 1) return "now";
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  if (minutes < 6 * 24 * 60) return date.toLocaleDateString(undefined, { weekday: "short" });
  return date.toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** Formats the time of day. */
export const clock = (at: number): string => new Date(at).toLocaleTimeString(undefined, { timeStyle: "short" });

// decimal formats a number with a fixed number of digits, in the form of the locale.
const decimal = (n: number, digits: number): string => n.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Formats a duration in milliseconds: <0.1 s, 0.8 s, 12.4 s, 2 min 5 s. */
export function lasted(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  return s < 0.05 ? "<0.1 s" : s < 59.95 ? `${decimal(s, 1)} s` : minutesAndHours(Math.round(s));
}

/** Formats a duration in whole seconds: 8 s, 2 min 5 s. */
export function about(ms: number): string {
  const s = Math.round(Math.max(0, ms) / 1000);
  return s === 0 ? "a moment" : elapsed(s * 1000);
}

/** Formats a duration that isn't over, in whole elapsed seconds. */
export function elapsed(ms: number): string {
  const s = Math.floor(Math.max(0, ms) / 1000);
  return s < 60 ? `${s} s` : minutesAndHours(s);
}

const minutesAndHours = (s: number): string => (s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`);

/** Formats a short duration with three digits at most: 3 ms, 1.24 s. */
export function brief(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : ms < 10_000 ? `${decimal(ms / 1000, 2)} s` : lasted(ms);
}

/** Formats a number of bytes. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB"];
  let n = bytes / 1000;
  let i = 0;
  while (n >= 1000 && i < units.length - 1) [n, i] = [n / 1000, i + 1];
  return `${n < 10 ? decimal(n, 1) : Math.round(n)} ${units[i]}`;
}
