// Makes the speech detector in dist: the script of its frame, the WebAssembly and the model, from the packages in the lockfile.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { build } from "esbuild";

/** The version of the messages between the page and the frame. internal/voice/vad has the same. */
const version = 1;

const require = createRequire(import.meta.url);
const folder = join(import.meta.dirname, "dist");
const runtime = dirname(require.resolve("onnxruntime-web/wasm"));
const models = dirname(require.resolve("@ricky0123/vad-web"));

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
await build({ absWorkingDir: import.meta.dirname, entryPoints: ["frame.mjs"], outfile: join(folder, "detector.js"), bundle: true, minify: true, format: "iife", target: "es2022" });
copyFileSync(join(runtime, "ort-wasm-simd-threaded.wasm"), join(folder, "runtime.wasm"));
copyFileSync(join(models, "silero_vad_v6.onnx"), join(folder, "model.onnx"));
copyFileSync(join(import.meta.dirname, "LICENSES.md"), join(folder, "LICENSES.md"));
const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
writeFileSync(join(folder, "manifest.json"), JSON.stringify({ version, packages: dependencies }, undefined, 2) + "\n");
