// The progress of fine-tuning. The training service decides what a payload contains; phase, progress and message are usual.

import { amount, type Fields, fieldsOf, short, text } from "./fields";

export interface Step { event: string; at: number; phase: string; message: string }

export interface Training {
  /** The run; events without one belong together. */
  id: string;
  phase: string; message: string;
  /** From 0 to 1; undefined if it isn't reported. */
  progress?: number;
  state: "running" | "done" | "failed";
  at: number;
  /** The newest first. */
  steps: readonly Step[];
  /** It has changed since the page was opened, so that a failure is news. */
  isNew: boolean;
}

/** The numbers of runs and of steps of each that are kept. The gateway replays at most 120 signals. */
export const maxTrainings = 10;
export const maxSteps = 50;

const finished = /^(?:complete|completed|done|finished|succeeded)$/i;
const failure = /^(?:error|failed|failure)$/i;

export function onTraining(trainings: readonly Training[], f: Fields, startTime: number): readonly Training[] {
  const payload = fieldsOf(f["payload"]);
  const event = text(f["eventId"]);
  const at = amount(f["ts"]);
  if (!payload || !event || at === undefined) return trainings;
  const id = short(f["runId"]) || short(payload["runId"]);
  const before = trainings.find((t) => t.id === id);
  if (before?.steps.some((s) => s.event === event)) return trainings;
  const phase = short(payload["phase"]) || short(payload["status"]);
  const message = short(payload["message"]) || (phase || "progress" in payload ? "" : short(JSON.stringify(payload["value"] ?? payload)));
  const progress = fraction(payload["progress"]) ?? (finished.test(phase) ? 1 : before?.progress);
  const training: Training = {
    id, phase: phase || before?.phase || "", message, at, ...(progress !== undefined && { progress }),
    state: finished.test(phase) ? "done" : failure.test(phase) ? "failed" : "running",
    steps: [{ event, at, phase, message }, ...(before?.steps ?? [])].slice(0, maxSteps), isNew: at >= startTime,
  };
  return [training, ...trainings.filter((t) => t !== before)].slice(0, maxTrainings);
}

// fraction returns a progress as a fraction. Some services report percentages.
function fraction(v: unknown): number | undefined {
  const n = amount(v);
  return n === undefined || n > 100 ? undefined : n > 1 ? n / 100 : n;
}
