// A channel without messages, for the tests of the overview. It runs as long as the given file exists.

import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const scan = () => {
  if (!existsSync(process.argv[2])) process.exit(4);
};
scan();
setInterval(scan, 50);
createInterface({ input: process.stdin })
  .on("line", (line) => {
    if (JSON.parse(line).type === "hello") process.stdout.write(`${JSON.stringify({ type: "ready", protocol: 1, kind: "channel" })}\n`);
  })
  .on("close", () => process.exit(0));
