import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "./leat.ts";

await serve(async (turn, { callback, text, signal }) => {
  const source = "plugin";
  await callback({ text: "Looking up", source });
  await callback({ text: "…", source, merge: "append" });
  await callback({ text: "Found it.", source, merge: "replace" });
  for (const word of `You said: ${turn.message.text}`.split(" ")) {
    if (signal.aborted) return;
    await text(word + " ");
    await sleep(50);
  }
});
