import { Store } from "./store";

/** Which view is shown: that of a conversation ("" is a new one), with a turn that is looked into ("" is none), or the overview. */
export type Route = { view: "chat"; id: string; turn: string } | { view: "overview" };

function parseRoute(): Route {
  const hash = location.hash.slice(1);
  if (hash === "/overview") return { view: "overview" };
  try {
    const [path, query] = hash.split("?");
    return { view: "chat", id: decodeURIComponent(/^\/c\/(.+)$/.exec(path!)?.[1] ?? ""), turn: new URLSearchParams(query).get("turn") ?? "" };
  } catch {
    return { view: "chat", id: "", turn: "" };
  }
}

export const route = new Store<Route>(parseRoute());

addEventListener("hashchange", () => route.set(parseRoute()));

/** Shows a conversation, or with "" a new one. */
export function open(id: string, method: "push" | "replace" = "push"): void {
  go(id ? `#/c/${encodeURIComponent(id)}` : "#/", method);
}

/** The address of a conversation, and of a turn in it that is looked into. */
export const openTurn = (id: string, turn = ""): string => `#/c/${encodeURIComponent(id)}${turn && `?turn=${encodeURIComponent(turn)}`}`;

export function openOverview(): void {
  go("#/overview", "push");
}

function go(hash: string, method: "push" | "replace"): void {
  if (location.hash !== hash) history[method === "push" ? "pushState" : "replaceState"](null, "", hash);
  route.set(parseRoute());
}
