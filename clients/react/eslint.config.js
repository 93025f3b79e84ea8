import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

import leat from "../../web/lint/rules.mjs";

export default tseslint.config(
  { ignores: ["dist/", "build/"] },
  { plugins: { leat }, rules: { "leat/names": "error", "leat/circles": "error" } },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.recommendedTypeChecked, hooks.configs.flat["recommended-latest"]],
    rules: {
      // The runner waits for the promises of its tests.
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", name: ["test", "it", "describe"], package: "node:test" }] }],
    },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
  },
  { files: ["**/*.mjs"], extends: [tseslint.configs.recommended] },
  // A destructured property that only leaves itself out of the rest is used.
  { plugins: { "@typescript-eslint": tseslint.plugin }, rules: { "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true, argsIgnorePattern: "^_", varsIgnorePattern: "^_+$" }] } },
);
