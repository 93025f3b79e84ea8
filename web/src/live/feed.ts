// Receives live events for the parts of the page that show the gateway's activity. Their code is loaded after the first paint; events
// that arrive before are kept for it, because most are sent only once.

import { theLive } from "../gateway";
import { Store } from "../store";
import type { Activity, Input } from "./state";

/** What is known; undefined until the code that folds events is loaded. */
export const activity = new Store<Activity | undefined>(undefined);

const kinds = ["status", "restart-required", "install-progress", "terminal-output", "emote", "heartbeat_event", "training_event", "agent_event", "resync"] as const;

/** The number of events kept until the code is loaded: the replay of 120 signals, and as many live ones. */
const maxEarly = 240;

let buffer: Input[] = [];
let receiver: ((input: Input) => void) | undefined;

function pass(input: Input): void {
  if (receiver) receiver(input);
  else if (buffer.push(input) > maxEarly) buffer.shift();
}

/** Receives events until the returned function is called, which forgets everything. */
export function receive(): () => void {
  const events = theLive();
  const leaves = [...kinds.map((k) => events.on(k, pass)), events.onState((s) => {
    if (s === "connected") pass({ type: "connected" });
  })];
  return () => {
    for (const leave of leaves) leave();
    buffer = [];
    activity.set(undefined);
  };
}

/** Passes all events to a function, the early ones first, until the returned function is called. */
export function passTo(f: (input: Input) => void): () => void {
  receiver = f;
  buffer.splice(0).forEach(f);
  return () => { receiver = undefined; };
}

/** Marks failures as seen. */
export const markSeen = (): void => activity.change((a) => (a && a.failures > 0 ? { ...a, failures: 0 } : a));
