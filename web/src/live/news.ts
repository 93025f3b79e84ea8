// What screen readers announce: the changes that others notice without looking for them.

import { line } from "../chat/parts/marks";
import { type Activity, hasFailed } from "./state";
import { commandEnd } from "./words";

/** Returns the announcements for a change. Output and phases in between are not announced. */
export function news(before: Activity, after: Activity, isOperator: boolean): string[] {
  const announcements: string[] = [];
  if (isOperator && after.reasons.length > 0 && after.reasons.join("\n") !== before.reasons.join("\n")) announcements.push(`Restart needed: ${after.reasons.map((r) => line(r)).join(", ")}.`);
  if (isOperator && after.reasons.length === 0 && before.reasons.length > 0) announcements.push("No restart is needed any more.");
  for (const c of after.commands) {
    const was = before.commands.find((o) => o.id === c.id);
    if (c.state !== (was?.state ?? "running") && c.state !== "unknown" && c.state !== "running") announcements.push(`Command ${hasFailed(c) ? "failed" : "ended"}: ${line(c.command ?? "", 80)}, ${commandEnd(c)}.`);
  }
  for (const i of after.installs) {
    if (i.state === before.installs.find((o) => o.id === i.id)?.state) continue;
    if (i.state === "done") announcements.push(`Plugin ${line(i.plugin)} is installed.`);
    if (i.state === "failed") announcements.push(`Plugin ${line(i.plugin)} was not installed: ${line(i.message)}`);
  }
  for (const t of after.trainings) {
    if (!t.isNew || t.state === (before.trainings.find((o) => o.id === t.id)?.state ?? "running") || t.state === "running") continue;
    announcements.push(t.state === "done" ? "Training complete." : `Training failed. ${line(t.message)}`);
  }
  return announcements;
}
