// Syntax highlighting, loaded when the first block needs it. highlight.js returns markup that consists of spans only; it is parsed
// into elements, because no string becomes HTML on this page.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import type { ReactNode } from "react";

import { plain } from "./lex";

for (const [name, language] of Object.entries({ bash, c, cpp, css, diff, go, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml })) {
  hljs.registerLanguage(name, language);
}

/** Returns the text as highlighted elements; undefined if the language is unknown. */
export function colour(text: string, language: string): ReactNode {
  if (!hljs.getLanguage(language)) return undefined;
  return elements(hljs.highlight(text, { language, ignoreIllegals: true }).value);
}

const tag = /<span class="([^"]*)">|<\/span>/g;
const characters: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };
const text = (s: string): string => plain(s.replace(/&(?:amp|lt|gt|quot|#x27);/g, (c) => characters[c]!));

/** Converts markup that contains only text and spans with classes into elements. */
export function elements(markup: string): ReactNode[] {
  const stack: { className: string; children: ReactNode[] }[] = [{ className: "", children: [] }];
  let at = 0;
  const add = (node: ReactNode) => stack[stack.length - 1]!.children.push(node);
  for (const m of markup.matchAll(tag)) {
    if (m.index > at) add(text(markup.slice(at, m.index)));
    at = m.index + m[0].length;
    if (m[1] !== undefined) stack.push({ className: m[1], children: [] });
    else if (stack.length > 1) {
      const { className, children } = stack.pop()!;
      add(<span key={at} className={className}>{children}</span>);
    }
  }
  if (at < markup.length) add(text(markup.slice(at)));
  while (stack.length > 1) {
    const { className, children } = stack.pop()!;
    add(<span key={at++} className={className}>{children}</span>);
  }
  return stack[0]!.children;
}
