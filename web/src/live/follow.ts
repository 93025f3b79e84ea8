// Folds live events into the activity, and announces what has changed.

import { say } from "../chat/speaker";
import { activity, passTo } from "./feed";
import { news } from "./news";
import { type Activity, apply, type Input, emptyActivity } from "./state";

/** Events are folded in batches after this time, in milliseconds: a command may print 50 times a second. */
const delay = 100;

/** A batch is folded at once when it has this many events: in a hidden page timers wait up to a minute. */
const maxBatch = 50;

/** Follows the events until the returned function is called. */
export function follow(isOperator: boolean): () => void {
  const startTime = Date.now();
  let batch: { input: Input; at: number }[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const fold = () => {
    clearTimeout(timer);
    timer = undefined;
    const before = activity.get() ?? emptyActivity;
    const after = batch.reduce<Activity>((a, { input, at }) => apply(a, input, at, startTime), before);
    batch = [];
    for (const text of news(before, after, isOperator)) say(text);
    activity.set(after);
  };
  const leave = passTo((input) => {
    batch.push({ input, at: Date.now() });
    if (batch.length >= maxBatch) fold();
    else timer ??= setTimeout(fold, delay);
  });
  fold();
  return () => {
    clearTimeout(timer);
    leave();
  };
}
