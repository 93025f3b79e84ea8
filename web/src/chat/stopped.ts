// Which turns were stopped in this browser: the log says that somebody did, not who.

import { kept } from "../store";

const most = 200;

const here = kept<string[]>("stopped", [], (v): v is string[] => Array.isArray(v) && v.every((id) => typeof id === "string"));

export function noteStopped(turns: readonly string[]): void {
  here.change((all) => [...all.filter((id) => !turns.includes(id)), ...turns].slice(-most));
}

export const stoppedHere = (turn: string): boolean => here.get().includes(turn);
