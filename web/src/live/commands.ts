// The commands that agents run on the gateway's machine, with their output.

import { amount, type Fields, short, text } from "./fields";

/** A stretch of the output from one of the two streams. */
export interface Piece { isError: boolean; text: string }

export interface Command {
  id: string;
  /** Undefined if it began before the page was opened. */
  command?: string;
  /** "unknown": the connection was lost, and its end with it. */
  state: "running" | "ended" | "timeout" | "error" | "unknown";
  code?: number; error?: string;
  /** Milliseconds: its limit, when it began here, and when it ended. */
  limit?: number; since: number; until?: number;
  pieces: readonly Piece[];
  /** The beginning of the output was dropped. */
  isCut: boolean;
}

/** The number of commands that are kept. With their output they need at most 2.6 MB (two bytes a character). */
export const maxCommands = 20;

/** The number of characters of output that are kept of each command: about 800 lines, more than anyone scrolls through here. */
export const maxOutput = 65_536;

/** The number of stretches that are kept of each command, because each is an element of the page. */
export const maxPieces = 500;

export function onOutput(commands: readonly Command[], f: Fields, time: number): readonly Command[] {
  const id = text(f["runId"]);
  if (!id) return commands;
  const before = commands.find((c) => c.id === id) ?? { id, state: "running" as const, since: time, pieces: [], isCut: false };
  const after = next(before, f, time);
  if (!after) return commands;
  return [after, ...commands.filter((c) => c.id !== id)].sort((a, b) => b.since - a.since).slice(0, maxCommands);
}

function next(c: Command, f: Fields, time: number): Command | undefined {
  const limit = amount(f["maxDurationMs"]);
  const data = text(f["data"]);
  switch (f["event"]) {
    case "start": return { ...c, command: text(f["command"]) ?? "", state: "running", since: time, ...(limit !== undefined && { limit }) };
    case "stdout":
    case "stderr": return data === undefined ? undefined : { ...c, state: "running", ...append(c, { isError: f["event"] === "stderr", text: data }) };
    case "exit": return { ...c, state: "ended", code: typeof f["code"] === "number" ? f["code"] : 1, until: time };
    case "timeout": return { ...c, state: "timeout", until: time, ...(limit !== undefined && { limit }) };
    case "error": return { ...c, state: "error", error: short(data), until: time };
  }
  return undefined;
}

function append(c: Command, piece: Piece): Pick<Command, "pieces" | "isCut"> {
  const last = c.pieces.at(-1);
  const pieces = last?.isError === piece.isError ? [...c.pieces.slice(0, -1), { ...last, text: last.text + piece.text }] : [...c.pieces, piece];
  let excess = pieces.reduce((n, p) => n + p.text.length, 0) - maxOutput;
  let isCut = c.isCut;
  while (excess > 0 || pieces.length > maxPieces) {
    const oldest = pieces[0]!;
    isCut = true;
    if (pieces.length > maxPieces || oldest.text.length <= excess) {
      pieces.shift();
      excess -= oldest.text.length;
    } else {
      pieces[0] = { ...oldest, text: oldest.text.slice(lineAfter(oldest.text, excess)) };
      excess = 0;
    }
  }
  return { pieces, isCut };
}

// lineAfter returns where the next line begins, so that neither a line nor an escape sequence is cut. A line that is too long is.
function lineAfter(s: string, at: number): number {
  const end = s.indexOf("\n", at - 1);
  return end >= 0 && end < s.length - 1 ? end + 1 : at;
}

/** Marks running commands after events may have been lost. Later output shows that one still runs. */
export function unknownCommands(commands: readonly Command[]): readonly Command[] {
  return commands.some((c) => c.state === "running") ? commands.map((c) => (c.state === "running" ? { ...c, state: "unknown" as const } : c)) : commands;
}
