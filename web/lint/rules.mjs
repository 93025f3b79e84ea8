// ESLint rules of this project, shared by the page and by the TypeScript client.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

// The list that the linter of the Go code uses too.
const words = new Set(
  readFileSync(new URL("../../internal/tools/lint/words.txt", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .flatMap((line) => line.split(/\s+/))
    .filter(Boolean),
);

// Participles that are also the imperative of their verb: as the name of a method they say what it does.
const verbs = new Set(["cut", "put", "read", "set", "shut", "split"]);

/**
 * Reports declared names that are a bare adverb, participle, pronoun or quantifier: types, components, functions, variables,
 * parameters, and the fields and methods of classes. Keys of interfaces and object literals are exempt, because many of them are
 * part of a wire format or of another library's API. With the option "types", only capitalized names are checked.
 */
const names = {
  meta: { type: "suggestion", schema: [{ enum: ["all", "types"] }], messages: { odd: "{{name}} doesn't say what it is: use a noun or a verb phrase" } },
  create(context) {
    const typesOnly = context.options[0] === "types";
    const check = (node) => {
      if (typesOnly && !/^[A-Z]/.test(node.name)) return;
      if (words.has(node.name.toLowerCase())) context.report({ node, messageId: "odd", data: { name: node.name } });
    };
    const member = ({ key, computed }) => {
      if (!computed && (key.type === "Identifier" || key.type === "PrivateIdentifier")) check(key);
    };
    return {
      PropertyDefinition: member,
      MethodDefinition: (method) => verbs.has(method.key.name) || member(method),
      "Program:exit"() {
        const checked = new Set();
        for (const scope of context.sourceCode.scopeManager.scopes) {
          for (const { defs: [definition] } of scope.variables) {
            if (!definition || definition.name.type !== "Identifier" || checked.has(definition.name)) continue;
            checked.add(definition.name);
            if (!isForeign(definition)) check(definition.name);
          }
        }
      },
    };
  },
};

// A name is foreign if another module chose it: an import without an alias, or a destructured property without one.
function isForeign({ name, type }) {
  const { parent } = name;
  if (type === "ImportBinding") return parent.type === "ImportSpecifier" && parent.imported.name === name.name;
  const property = parent.type === "AssignmentPattern" ? parent.parent : parent;
  return property.type === "Property" && property.shorthand;
}

const importOf = /(?:^|\n)\s*(?:import|export)\b[^;"']*?from\s+["'](\.[^"']+)["']|(?:^|\n)\s*import\s+["'](\.[^"']+)["']/g;

/** The files that a file imports by a relative path, with types: a type that is needed both ways is a circle too. */
const importsOf = (() => {
  const cache = new Map();
  return (file) => {
    if (!cache.has(file)) {
      const imports = [];
      for (const [, from, bare] of readFileSync(file, "utf8").matchAll(importOf)) {
        const path = join(dirname(file), from ?? bare);
        const stem = path.replace(/\.(js|ts|tsx)$/, "");
        const target = [path, `${stem}.ts`, `${stem}.tsx`, `${path}/index.ts`].find((p) => /\.tsx?$/.test(p) && existsSync(p));
        if (target) imports.push(target);
      }
      cache.set(file, imports);
    }
    return cache.get(file);
  };
})();

/** Reports an import that leads back to the file that it is in. */
const circles = {
  meta: { type: "problem", schema: [], messages: { circle: "circular import: {{path}}" } },
  create(context) {
    return {
      Program(node) {
        const start = context.filename;
        const visited = new Set();
        const search = (file, path) => {
          for (const next of importsOf(file)) {
            if (next === start) return [...path, next];
            if (visited.has(next)) continue;
            visited.add(next);
            const circle = search(next, [...path, next]);
            if (circle) return circle;
          }
          return undefined;
        };
        const circle = existsSync(start) && search(start, [start]);
        if (circle) context.report({ node, messageId: "circle", data: { path: circle.map((f) => f.slice(dirname(start).length + 1)).join(" -> ") } });
      },
    };
  },
};

export default { rules: { names, circles } };
