// The current activity of a running turn, as words and a clock, so that a turn without output doesn't look dead.

import type { Message, Turn } from "@leat/client";

import { useStore } from "../store";
import { elapsed } from "../time";
import { useNow } from "../ui/Clock";
import { outages } from "./Connection";
import { Mark } from "./parts/Mark";
import { link, turnStatus } from "./turnStatus";

export function Activity({ turn, message }: { turn: Turn; message?: Message }) {
  const status = turnStatus(turn, message, useStore(link), useNow(), outages);
  return (
    <p className="alive">
      <Mark of={status.mark} named={false} /> {status.text}
      {status.age !== undefined && <> · <time className="clock">{elapsed(status.age)}</time></>}
    </p>
  );
}
