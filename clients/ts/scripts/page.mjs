// Brings the fold that a Go test holds against package transcript (server/ui) up to date with the client's source. With --check it
// only says whether it is.
import { readFileSync, writeFileSync } from "node:fs";

const page = new URL("../../../internal/server/ui/testdata/transcript.js", import.meta.url);
const want = "// Code generated from clients/ts/src/transcript.ts by npm run page. DO NOT EDIT.\n\n" +
  readFileSync(new URL("../dist/transcript.js", import.meta.url), "utf8");

if (!process.argv.includes("--check")) {
  writeFileSync(page, want);
} else if (readFileSync(page, "utf8") !== want) {
  console.error("internal/server/ui/testdata/transcript.js is not what src/transcript.ts compiles to; run: npm run page");
  process.exit(1);
}
