// The status of the connection in words, for the screen and for screen readers. Pure functions of facts.

import type { ConnectionState } from "@leat/client";

export interface Facts {
  state: ConnectionState;
  /** The time of the next attempt; 0 during an attempt. */
  retryAt: number;
  /** The browser reports a network. */
  online: boolean;
  /** The number of unacknowledged messages. */
  waiting: number;
  /** The gateway has announced a restart and isn't back yet. */
  restarting: boolean;
  /** The number of events that the shown conversation still lacks. */
  behind: number;
  /** The time of the last data from the gateway. */
  heard: number;
}

export type Kind = "live" | "behind" | "silent" | "connecting" | "reconnecting" | "offline" | "restarting" | "forbidden" | "out";

/** outbox is about the unacknowledged messages. It may be left out where there is no room: they show it themselves. */
export interface Words { kind: Kind; text: string; outbox: string; tryNow: boolean }

/** The client pings a gateway after 17 s of silence. After this time the ping has failed. */
const silence = 18_000;
/** How long an announced restart explains a lost connection, in milliseconds. */
const restartLimit = 60_000;
/** Interruptions shorter than shownAfter are not shown, and those shorter than saidAfter are not announced. Milliseconds. */
const shownAfter = 700;
const saidAfter = 2000;

const count = (n: number, singular: string, plural = `${singular}s`): string => `${n} ${n === 1 ? singular : plural}`;

export function words(f: Facts, time: number): Words {
  if (f.state === "unauthorized" || f.state === "closed") return { kind: "out", text: "Signed out", outbox: "", tryNow: false };
  if (f.state === "forbidden") return { kind: "forbidden", text: "Address not allowed by the gateway", outbox: "", tryNow: false };
  if (f.state === "connected") {
    if (f.restarting) return { kind: "restarting", text: "Gateway restarting", outbox: "", tryNow: false };
    if (f.heard > 0 && time - f.heard > silence) return { kind: "silent", text: `No data for ${Math.floor((time - f.heard) / 1000)} s`, outbox: "", tryNow: false };
    if (f.behind > 0) return { kind: "behind", text: `Behind by ${count(f.behind, "event")} · catching up`, outbox: "", tryNow: false };
    return { kind: "live", text: "Live", outbox: "", tryNow: false };
  }
  const outbox = f.waiting > 0 ? count(f.waiting, "message waiting", "messages waiting") : "";
  const tryNow = f.retryAt > time;
  if (!f.online) return { kind: "offline", text: "Offline", outbox, tryNow };
  if (f.restarting) return { kind: "restarting", text: "Gateway restarting", outbox, tryNow };
  if (f.state === "idle" || f.state === "connecting") return { kind: "connecting", text: "Connecting", outbox, tryNow: false };
  const delay = tryNow ? ` in ${Math.ceil((f.retryAt - time) / 1000)} s` : "";
  return { kind: "reconnecting", text: `Reconnecting${delay}`, outbox, tryNow };
}

/** The shown status, and the announcement for screen readers, which contains no countdown. */
export interface Announced { kind: Kind; since: number; shown: Words; said: string }

export const announce = (w: Words, time: number): Announced => ({ kind: w.kind, since: time, shown: w, said: "" });

/** Returns the next status. A short interruption changes nothing. */
export function tell(before: Announced, w: Words, time: number): Announced {
  const since = w.kind === before.kind ? before.since : time;
  const duration = time - since;
  const calm = before.shown.kind === "live" && w.kind !== "live" && duration < shownAfter;
  const visible = calm ? before.shown : w.text === before.shown.text && w.outbox === before.shown.outbox && w.kind === before.shown.kind && w.tryNow === before.shown.tryNow ? before.shown : w;
  // "Connected." is announced only after a problem was announced.
  const announcement = duration < saidAfter || (w.kind === "live" && !before.said) ? before.said : sayings[w.kind];
  if (w.kind === before.kind && visible === before.shown && announcement === before.said) return before;
  return { kind: w.kind, since, shown: visible, said: announcement };
}

const sayings: Record<Kind, string> = {
  live: "Connected.", behind: "Catching up.", silent: "The gateway isn’t responding.", connecting: "Connecting.", reconnecting: "Connection lost. Reconnecting.",
  offline: "Offline. Messages are sent when you are back online.", restarting: "The gateway is restarting.",
  forbidden: "The gateway doesn’t allow this page’s address.", out: "Signed out.",
};

/** The state of a restart: whether live events have announced it, and when the last connection was closed for it. */
export interface Restart { told: boolean; at: number }

export type RestartNews = { status: string } | { live: ConnectionState } | { state: ConnectionState; reason: string | undefined };

export function restart(r: Restart, news: RestartNews, time: number): Restart {
  if ("status" in news) return { told: news.status === "restarting", at: news.status === "restarting" ? time : 0 };
  if ("live" in news) return news.live === "connected" || !r.told ? r : { told: false, at: time };
  if (news.reason === "restarting") return { ...r, at: time };
  return news.state === "connected" ? { ...r, at: 0 } : r;
}

/** A gateway that restarts may keep its connections for long, until its answers have ended. After it has closed them, it should be back soon. */
export const restarting = (r: Restart, time: number, isConnected: boolean): boolean => r.told || (r.at > 0 && (isConnected || time - r.at < restartLimit));
