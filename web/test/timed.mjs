// A plugin whose answers have a course, for the tests that look inside them. Where it is given a file, it lives as long as that is there.

import { existsSync } from "node:fs";

import { serve } from "./plugin.mjs";

const statusFile = process.argv[2];
const poll = () => {
  if (statusFile && !existsSync(statusFile)) process.exit(3);
};
poll();
if (statusFile) setInterval(poll, 50);

serve({
  // steps DIR: words, and when DIR/tool is there a tool, and when DIR/end is there the end.
  async steps(turn) {
    turn.start("m", "w", "text");
    for (const word of ["One ", "two ", "three."]) {
      turn.add("m", "w", word);
      await new Promise((r) => setTimeout(r, 20)); // so that each comes for itself
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
