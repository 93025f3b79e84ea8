// Long runs of tool calls are folded into one row, which keeps what still runs or waits visible.

import type { Part } from "@leat/client";

/** From this number of tool calls in a row, the finished ones are folded. */
export const minTools = 7;

/** A run of parts of one message: the indexes of its first part and after its last, and the number of its tool calls. */
export interface Run { from: number; to: number; tools: number; failed: number }

/** Returns the runs of tool calls that are long enough to be folded. Reasoning between two calls belongs to their run. */
export function runs(parts: readonly Part[]): Run[] {
  const longRuns: Run[] = [];
  let run: Run | undefined;
  parts.forEach((p, i) => {
    if (p.kind === "tool") {
      run ??= { from: i, to: i, tools: 0, failed: 0 };
      run.to = i + 1;
      run.tools++;
      if (p.state === "failed") run.failed++;
      if (run.tools === minTools) longRuns.push(run);
    } else if (p.kind !== "reasoning") {
      run = undefined;
    }
  });
  return longRuns;
}

/** Reports whether a part of a folded run is visible nevertheless. */
export const stays = (p: Part, isGrowing: boolean, isOpened: boolean): boolean => isOpened || (isGrowing && !p.ended);
