import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The built files are embedded into the gateway and may lie below any path, so all addresses are relative.
export default defineConfig({
  base: "./",
  plugins: [react(), {
    // Mermaid runs in a sandboxed frame, which can't load modules: it is a separate script, which the frame's document names.
    name: "mermaid",
    generateBundle() {
      this.emitFile({ type: "asset", name: "mermaid.js", source: readFileSync(fileURLToPath(new URL("node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js", import.meta.url))) });
    },
  }],
  resolve: {
    alias: {
      "react-dom/client": "preact/compat/client",
      "react-dom/server": "preact/compat/server", // of tests
      "react-dom": "preact/compat",
      "react/jsx-runtime": "preact/jsx-runtime",
      "react/jsx-dev-runtime": "preact/jsx-runtime", // of tests
      react: fileURLToPath(new URL("src/react.ts", import.meta.url)),
      "@leat/client": fileURLToPath(new URL("../clients/ts/src/index.ts", import.meta.url)),
    },
  },
  build: {
    target: "es2022",
    outDir: "dist",
    assetsDir: "ui",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rolldownOptions: {
      output: { entryFileNames: "ui/[name]-[hash].js", chunkFileNames: "ui/[name]-[hash].js", assetFileNames: "ui/[name]-[hash][extname]" },
    },
  },
  server: { proxy: { "/api": { target: "http://127.0.0.1:31337", ws: true } } },
});
