// Texts about commands.

import { line } from "../chat/parts/marks";
import { about } from "../time";
import type { Command } from "./commands";

/** Describes how a command ended. */
export function commandEnd(c: Command): string {
  switch (c.state) {
    case "running": return "running";
    case "ended": return `exit code ${c.code}`;
    case "timeout": return c.limit === undefined ? "stopped because it ran too long" : `stopped after its limit of ${about(c.limit)}`;
    case "error": return c.error ? line(c.error) : "could not run";
    case "unknown": return "connection lost, end unknown";
  }
}
