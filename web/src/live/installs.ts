// The installations of plugins. The gateway runs one at a time.

import { type Fields, short, text } from "./fields";

export interface Install {
  id: number;
  /** Empty until it is known. */
  plugin: string;
  phase: string; message: string;
  /** "unknown": the connection was lost, and its end with it. */
  state: "running" | "done" | "failed" | "unknown";
  since: number; until?: number;
}

/** The number of installations that are kept. */
export const maxInstalls = 20;

export function onInstall(installs: readonly Install[], f: Fields, time: number): readonly Install[] {
  const phase = short(f["phase"]);
  if (!phase) return installs;
  const plugin = short(f["pluginName"]);
  const state = phase === "complete" ? "done" : phase === "error" ? "failed" : "running";
  const latest = installs[0];
  // An installation gets its name when it is known. "resolving" is always its first phase.
  const continues = latest && isOpen(latest) && phase !== "resolving" && (!plugin || !latest.plugin || plugin === latest.plugin || text(f["pluginName"]) === latest.plugin);
  const base: Install = continues ? latest : { id: (latest?.id ?? 0) + 1, plugin, phase, message: "", state, since: time };
  const { until: _, ...open } = base;
  const install: Install = { ...open, plugin: plugin || base.plugin, phase, message: short(f["message"]), state, ...(state !== "running" && { until: time }) };
  const earlier = continues ? installs.slice(1) : unknownInstalls(installs);
  return [install, ...earlier].slice(0, maxInstalls);
}

const isOpen = (i: Install): boolean => i.state === "running" || i.state === "unknown";

/** Marks running installations after events may have been lost. */
export function unknownInstalls(installs: readonly Install[]): readonly Install[] {
  return installs.some((i) => i.state === "running") ? installs.map((i) => (i.state === "running" ? { ...i, state: "unknown" as const } : i)) : installs;
}
