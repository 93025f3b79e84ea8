// A plugin whose answers have several steps, for the inspector's tests. If it gets a file name, it runs as long as the file exists.

import { existsSync } from "node:fs";

import { serve } from "./plugin.mjs";

const statusFile = process.argv[2];
const poll = () => {
  if (statusFile && !existsSync(statusFile)) process.exit(3);
};
poll();
if (statusFile) setInterval(poll, 50);

serve({
  // steps DIR: words, then a tool when DIR/tool exists, then the end when DIR/end exists.
  async steps(turn) {
    turn.start("m", "w", "text");
    for (const word of ["One ", "two ", "three."]) {
      turn.add("m", "w", word);
      await new Promise((r) => setTimeout(r, 20)); // so that each word is an event of its own
    }
    turn.close("m", "w");
    await turn.gate("tool");
    turn.tool("m", "t", "bash", { input: { command: "ls" }, output: "file 1\nfile 2\n", stderr: "warning\n" });
    await turn.gate("end");
    turn.text("m", "x", "There are **2** files.");
    turn.done("m");
    turn.end({ usage: { model: "timed", input: 10, output: 40 } });
  },
  // many N: N words.
  async many(turn) {
    turn.start("m", "w", "text");
    for (let i = 1; i <= Number(turn.rest); i++) turn.add("m", "w", `w${i} `);
    turn.close("m", "w");
    turn.done("m");
    turn.end();
  },
});
