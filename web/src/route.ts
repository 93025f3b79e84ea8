import { Store } from "./store";

/** The open view: a conversation ("" is a new one) with an inspected turn ("" is none), or the overview, or the activity. */
export type Route = { view: "chat"; id: string; turn: string } | { view: "overview" | "activity" };

function parseRoute(): Route {
  const hash = location.hash.slice(1);
  if (hash === "/overview" || hash === "/activity") return { view: hash === "/overview" ? "overview" : "activity" };
  try {
    const [path, query] = hash.split("?");
    return { view: "chat", id: decodeURIComponent(/^\/c\/(.+)$/.exec(path!)?.[1] ?? ""), turn: new URLSearchParams(query).get("turn") ?? "" };
  } catch {
    return { view: "chat", id: "", turn: "" };
  }
}

export const route = new Store<Route>(parseRoute());

addEventListener("hashchange", () => route.set(parseRoute()));

/** Opens a conversation; "" opens a new one. */
export function open(id: string, method: "push" | "replace" = "push"): void {
  go(id ? `#/c/${encodeURIComponent(id)}` : "#/", method);
}

/** Returns the URL of a conversation, optionally with an inspected turn. */
export const openTurn = (id: string, turn = ""): string => `#/c/${encodeURIComponent(id)}${turn && `?turn=${encodeURIComponent(turn)}`}`;

export function openOverview(): void {
  go("#/overview", "push");
}

export function openActivity(): void {
  go("#/activity", "push");
}

function go(hash: string, method: "push" | "replace"): void {
  if (location.hash !== hash) history[method === "push" ? "pushState" : "replaceState"](null, "", hash);
  route.set(parseRoute());
}
