// The rights of a session, in words.

import type { Session } from "../gateway";

/** Describes what a user may do. Each scope includes those before it. */
export function rights({ admin, scopes }: Session): string {
  if (admin) return "Do everything: all conversations, the overview, data and plugins";
  if (!scopes || scopes.includes("agent") || scopes.includes("write")) {
    return `Read, write and share own conversations${scopes?.includes("agent") ? ", and speak as an agent in them" : ""}`;
  }
  return scopes.includes("read") ? "Read own conversations" : "Nothing: the token has no known scope";
}

/** Describes where a session's rights come from. */
export function source({ tokenNeeded, subject, admin }: Session): string {
  if (!tokenNeeded) return "This gateway has no token. Everyone who can connect to it is its operator.";
  if (!subject) return "The API token of this gateway (LEAT_API_TOKEN, or token in its configuration).";
  return `A token that the operator’s identity service made for this user${admin ? ", with the scope admin" : ""}.`;
}
