import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Gateway } from "./gateway.js";
import { root } from "./root.js";

const packageDir = join(root, "clients/ts");
const folder = mkdtempSync(join(tmpdir(), "leat-package-"));
const readme = readFileSync(join(packageDir, "README.md"), "utf8");

let gateway: Gateway;
before(async () => {
  gateway = await Gateway.start();
  // A separate project with the package as npm packs it, and the peer dependencies of the adapters.
  const [{ filename }] = JSON.parse(run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], packageDir)) as [{ filename: string }];
  writeFileSync(join(folder, "package.json"), '{"type":"module","private":true}');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--legacy-peer-deps", "--ignore-scripts", join(folder, filename)], folder);
});
after(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true });
});

function run(program: string, args: string[], cwd: string): string {
  return execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

test("the package installs without dependencies, and imports", () => {
  assert.deepEqual(readdirSync(join(folder, "node_modules")).filter((n) => !n.startsWith(".")), ["@leat"]);
  const output = run(process.execPath, ["-e", 'import("@leat/client").then((m) => console.log(Object.keys(m).sort().join(" ")))'], folder);
  assert.equal(output, "Client LeatError LiveEvents Transcript crc32c independent turnText visibleText\n");
  run(process.execPath, ["-e", 'import("@leat/client/ai")'], folder); // it needs the types alone
  const files = readdirSync(join(folder, "node_modules/@leat/client"));
  assert.deepEqual(files.sort(), ["LICENSE", "README.md", "dist", "package.json"]);
});

test("the snippets of the README compile, run, and print the documented output", () => {
  const modules = join(folder, "node_modules");
  for (const name of readdirSync(join(packageDir, "node_modules"))) {
    if (!name.startsWith(".") && name !== "@leat") symlinkSync(join(packageDir, "node_modules", name), join(modules, name));
  }
  const snippets = [...readme.matchAll(/```(tsx?)\n([^]*?)```\n(?:\n```text\n([^]*?)```\n)?/g)];
  assert.equal(snippets.length, 6);
  mkdirSync(join(folder, "src"));
  for (const [i, [, ext, code]] of snippets.entries()) writeFileSync(join(folder, `src/s${i}.${ext}`), code!.replaceAll("http://127.0.0.1:31337", gateway.url));
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({
    compilerOptions: { target: "ES2022", module: "NodeNext", lib: ["ES2023", "DOM", "DOM.Iterable"], types: [], jsx: "react-jsx", strict: true, skipLibCheck: true, rootDir: "src", outDir: "out" },
    include: ["src"],
  }));
  run(process.execPath, [join(packageDir, "node_modules/typescript/bin/tsc"), "-p", "."], folder);
  let printed = 0;
  for (const [i, [, ext, , want]] of snippets.entries()) {
    if (ext !== "ts") continue;
    assert.equal(run(process.execPath, ["--experimental-websocket", `out/s${i}.js`], folder), want);
    printed++;
  }
  assert.equal(printed, 4);

  // The page of the React sample, as a user sees it.
  const sample = snippets.findIndex(([, ext, code]) => ext === "tsx" && code!.includes("createRoot"));
  writeFileSync(join(folder, "out/page.js"), reactPage.replace("DOM", JSON.stringify(join(packageDir, "build/test/dom.js"))).replace("SAMPLE", `./s${sample}.js`));
  const output = run(process.execPath, ["--experimental-websocket", "out/page.js"], folder);
  assert.match(output, /^connected\n12 \* 7\n.*12 \* 7 = 84/s);
});

// Asks the React sample a question, and prints the paragraphs of the page when the turn has ended.
const reactPage = `
const { place, leavePage } = await import(DOM);
place().id = "root";
await import("SAMPLE");
const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const paragraphs = () => [...document.querySelectorAll("p")].map((p) => p.textContent);
await until(() => paragraphs()[0] === "connected");
const input = document.querySelector("input");
Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input), "value").set.call(input, "12 * 7");
input.dispatchEvent(new window.Event("input", { bubbles: true }));
await until(() => input.value === "12 * 7");
document.querySelector("form").dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true }));
await until(() => paragraphs().length === 3 && /= 84/.test(paragraphs()[2]) && !document.querySelector("button"));
console.log(paragraphs().join("\\n"));
await leavePage();
process.exit(0);
`;
