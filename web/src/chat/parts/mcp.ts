// The host's side of MCP Apps: JSON-RPC messages between an app in a frame and the page.

import type { Json } from "./result";

export const protocolVersion = "2026-01-26";

type Values = Record<string, unknown>;

/** What a message of an app means for the page. Requests of the kinds link, message and tool need the person's consent. */
export type Meaning =
  | { kind: "answer"; reply: Values }
  | { kind: "initialized" }
  | { kind: "resized"; height: unknown }
  | { kind: "link"; id: Json; url: string }
  | { kind: "message"; id: Json; text: string }
  | { kind: "tool"; id: Json; name: string; input: string }
  | { kind: "ignored" };

export const result = (id: Json, value: Values): Values => ({ jsonrpc: "2.0", id, result: value });
export const failure = (id: Json, code: number, message: string): Values => ({ jsonrpc: "2.0", id, error: { code, message } });
export const notification = (method: string, params: Values): Values => ({ jsonrpc: "2.0", method, params });

/** The maximum length of a text that an app may ask to send. Characters. */
const longest = 10_000;

const object = (v: unknown): Values => (typeof v === "object" && v !== null ? v as Values : {});

export function meaning(m: Values, theme: string): Meaning {
  if (m.jsonrpc !== "2.0" || typeof m.method !== "string") return { kind: "ignored" };
  const params = object(m.params);
  const { id } = m;
  if (typeof id !== "string" && typeof id !== "number") {
    if (m.method === "ui/notifications/initialized") return { kind: "initialized" };
    return m.method === "ui/notifications/size-changed" ? { kind: "resized", height: params.height } : { kind: "ignored" };
  }
  switch (m.method) {
    case "ui/initialize":
      return { kind: "answer", reply: result(id, {
        protocolVersion, hostInfo: { name: "Leat", version: "1" }, hostCapabilities: { openLinks: {}, serverTools: {}, message: { text: {} } },
        hostContext: { theme, displayMode: "inline", availableDisplayModes: ["inline"], platform: "web" },
      }) };
    case "ping":
      return { kind: "answer", reply: result(id, {}) };
    case "ui/request-display-mode":
      return { kind: "answer", reply: result(id, { mode: "inline" }) };
    case "ui/open-link":
      return typeof params.url === "string" && /^https?:\/\//i.test(params.url) && params.url.length <= 2000 ? { kind: "link", id, url: params.url } : invalid(id, "an address with http or https is required");
    case "ui/message": {
      const text = (Array.isArray(params.content) ? params.content : [params.content]).map((c) => object(c).text).filter((t) => typeof t === "string").join("\n").trim();
      return text && text.length <= longest ? { kind: "message", id, text } : invalid(id, "a text is required");
    }
    case "tools/call": {
      const input = JSON.stringify(params.arguments ?? {});
      return typeof params.name === "string" && params.name && params.name.length <= 200 && input.length <= longest ? { kind: "tool", id, name: params.name, input } : invalid(id, "the name of a tool is required");
    }
  }
  return { kind: "answer", reply: failure(id, -32601, "not supported by this host") };
}

const invalid = (id: Json, message: string): Meaning => ({ kind: "answer", reply: failure(id, -32602, message) });
