// A plugin whose answers have a course, for the tests that look inside them. Where it is given a file, it lives as long as that is there.

import { existsSync } from "node:fs";

import { serve } from "./plugin.mjs";

const alive = process.argv[2];
const look = () => {
  if (alive && !existsSync(alive)) process.exit(3);
};
look();
if (alive) setInterval(look, 50);

serve({
  // steps DIR: words, and when DIR/tool is there a tool, and when DIR/end is there the end.
  async steps(it) {
    it.start("m", "w", "text");
    for (const word of ["One ", "two ", "three."]) {
      it.add("m", "w", word);
      await new Promise((r) => setTimeout(r, 20)); // so that each comes for itself
    }
    it.close("m", "w");
    await it.gate("tool");
    it.tool("m", "t", "bash", { input: { command: "ls" }, output: "file 1\nfile 2\n", stderr: "warning\n" });
    await it.gate("end");
    it.text("m", "x", "There are **2** files.");
    it.done("m");
    it.end({ usage: { model: "timed", input: 10, output: 40 } });
  },
  // many N: N words.
  async many(it) {
    it.start("m", "w", "text");
    for (let i = 1; i <= Number(it.rest); i++) it.add("m", "w", `w${i} `);
    it.close("m", "w");
    it.done("m");
    it.end();
  },
});
