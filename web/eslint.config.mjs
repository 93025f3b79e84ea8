import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

import leat from "./lint/rules.mjs";

export default tseslint.config(
  { ignores: ["dist/", "vad/dist/", "public/"] },
  { plugins: { leat }, rules: { "leat/names": ["error"], "leat/circles": "error" } },
  {
    files: ["src/**/*.{ts,tsx}"],
    extends: [tseslint.configs.recommendedTypeChecked, hooks.configs.flat["recommended-latest"]],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
  },
  { files: ["**/*.mjs", "vite.config.ts"], extends: [tseslint.configs.recommended] },
  // A destructured property that only leaves itself out of the rest is used.
  { plugins: { "@typescript-eslint": tseslint.plugin }, rules: { "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true, argsIgnorePattern: "^_", varsIgnorePattern: "^_+$" }] } },
);
