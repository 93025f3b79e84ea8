// @vitest-environment jsdom
// A text that is read as it grows comes to what it comes to when it is read whole, little is read again, and little that was shown
// goes away. Documents and the places where they are cut are random; a failure names its seed.

import type { Token } from "marked";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, test } from "vitest";

import { Blocks } from "./Block";
import { Growing } from "./growing";
import { counts, type Footnote, lex } from "./lex";

const markup = (tokens: Token[]): string => {
  const notes = tokens.filter((t) => t.type === "footnote") as unknown as Footnote[];
  return renderToStaticMarkup(<><Blocks tokens={tokens} depth={0} definitions={0} live={false} />{notes.map((n, i) => <li key={i}>{n.label}<Blocks tokens={n.tokens} depth={1} definitions={0} live={false} /></li>)}</>);
};
// A test must see what is different, not two kilobytes of markup.
const renderedText = (tokens: Token[]): string[] => markup(tokens).replace(/\s+/g, " ").replace(/ (?=<\/)/g, "").replace(/(<(?:p|h\d|ul|ol|li|pre|table|tr|figure|blockquote|hr)[ >/])/g, "\n$1").split("\n");
const letters = (tokens: Token[]): number => markup(tokens).replace(/<[^>]*>/g, "").replace(/&\w+;/g, "").match(/[\p{L}\p{N}]/gu)?.length ?? 0;

// A line break may count to what is before it or after.
const kinds = (tokens: Token[]): string[] => tokens.filter((t) => t.type !== "space").map((t) => `${t.type} ${t.raw.trimEnd()}`);

/** Numbers that look random, and are the same for the same seed. */
function random(randomSeed: number): (n: number) => number {
  let a = randomSeed;
  return (n) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const words = ["one", "two", "three", "naïve", "日本", "x", "*em*", "**strong**", "~~gone~~", "~5", "`code`", "``a ` b``", "[link](https://example.com/a_b)", "[ref]", "[words][Ref]", "![pic](https://example.com/p.png)",
  "[^1]", "[^note]", "&amp;", "a_b_c", "2 * 3", "$x_1$", "$5 and $6", "\\(a\\)", "<b>", "https://example.com", "**open", "`open", "[open](", "!", "\\*", "\n", "  \n", "|", "#", "- "];
const noise = ["\n", "\n\n", " ", "    ", "- ", "* ", "1. ", "1", "> ", "#", "# ", "```", "~~~", "`", "*", "**", "_", "[", "]", "(", ")", "|", "---", "===", "| a | b |\n", "|---|---|\n", "[^1]: ", "[ref]: ", "$$", "\\[", "\\]", "<div>", "<!--", "-->", "\t", "x", "word", ":", "&", "\r\n"];

function document(randomSeed: number): string {
  const r = random(randomSeed);
  const pick = <T,>(samples: readonly T[]): T => samples[r(samples.length)]!;
  const line = (n = 1 + r(8)) => Array.from({ length: n }, () => pick(words)).join(" ");
  const sample = (): string => {
    switch (r(16)) {
      case 0: return `${"#".repeat(1 + r(4))} ${line(2)}\n`;
      case 1: return `${pick(["```", "```js", "~~~", "````md", "```mermaid"])}\n${Array.from({ length: r(6) }, () => pick(["code", "", "  indented", "# no title", "- no list", "| a |", "``"])).join("\n")}\n${pick(["```", "~~~", "````", "```\n\n", ""])}\n`;
      case 2: return `${Array.from({ length: 1 + r(7) }, (_, i) => `${pick(["- ", "- ", "* ", `${i + 1}. `, "- [ ] ", "- [x] "])}${line(3).replaceAll("\n", " ")}${pick(["\n", "\n", "\n\n", "\n  - nested\n", "\n\n  more\n", "\n      code\n"])}`).join("")}\n`;
      case 3: return `| a | b |\n|${pick(["---", ":-:", "-"])}|${pick(["--:", "---"])}|\n${Array.from({ length: r(8) }, () => `| ${line(2).replace(/[\n|]/g, "")} | \`c\` |\n`).join("")}${pick(["\n", ""])}`;
      case 4: return `> ${line(3)}\n> ${line(2)}\n${pick(["", "> > deeper\n", "lazy\n", "> - item\n"])}\n`;
      case 5: return `[${pick(["ref", "Ref", "other", "naïve"])}]: https://example.com/${r(9)}${pick(["", ' "title"', " 'more'"])}\n${pick(["", "\n"])}`;
      case 6: return `[^${pick(["1", "note"])}]: ${line(4).replaceAll("\n", " ")}\n${pick(["", "    and more\n", "\n    later\n"])}\n`;
      case 7: return `$$\nx_1 = ${r(9)}\n$$\n`;
      case 8: return `\\[ y = ${r(9)} \\]\n\n`;
      case 9: return pick(["---\n", "***\n\n", "<div>\nhtml\n</div>\n\n", "    indented\n\n", "Title\n===\n", "<!-- hidden -->\n"]);
      case 10: return Array.from({ length: 1 + r(12) }, () => pick(noise)).join("");
      default: return `${line(3 + r(20))}\n${pick(["\n", "\n", ""])}`;
    }
  };
  return Array.from({ length: 1 + r(9) }, sample).join("");
}

const seeds = (n: number, from = 1) => Array.from({ length: n }, (_, i) => from + i);
const cuts = (text: string, r: (n: number) => number, maxCount: number): number[] => {
  const at: number[] = [];
  for (let i = 0; i < text.length; i += 1 + r(maxCount)) at.push(i);
  return at;
};

describe("a growing text", () => {
  test("comes to what it is read whole", () => {
    for (const randomSeed of seeds(Number(import.meta.env["VITE_SEEDS"] ?? 150), Number(import.meta.env["VITE_SEED"] ?? 1))) {
      const text = document(randomSeed);
      const r = random(randomSeed * 7);
      const growing = new Growing();
      for (const prefix of cuts(text, r, 1 + r(30))) growing.parse(text.slice(0, prefix), true, r(2) * 1e6);
      const tokens = growing.parse(text, false);
      const fullText = lex(text).tokens;
      expect(kinds(tokens), `seed ${randomSeed}: ${JSON.stringify(text)}`).toEqual(kinds(fullText));
      expect(renderedText(tokens), `seed ${randomSeed}: ${JSON.stringify(text)}`).toEqual(renderedText(fullText));
    }
  }, 120_000);

  test("takes little back of what it has shown, wherever it is cut and however long it pauses", () => {
    const nasty = [
      "# Title\n\nSome *em*, **strong text**, `code`, ~~gone~~ and [a link](https://example.com/a/long/address/indeed?with=a&query=too).\n\n1. one\n2. two\n   - nested\n\n   more of two\n3. three\n\n- [ ] open\n- [x] done\n\n",
      "| a | b |\n|---|--:|\n| 1 | 2 |\n| `x\\|y` | **z** |\n\nAfter the table.\n\n```go\nfunc main() {\n\n\tprintln(\"# no title\")\n}\n```\n\n> quoted\n> more\n>\n> > deeper\n\n",
      "Setext title\n===\n\nline one  \nline two\n\n---\n\n<div>html</div>\n\n&amp; &lt;tag&gt; &#x41; [ref] and [other][ref]\n\n[ref]: https://example.com/late\n\n",
      "* a\n* b\n\n* c is loose\n\n    indented code\n\ntext with a lone ** and an open `tick\n\n![a picture of something](https://example.com/p.png) and more[^1].\n\n~~~\nfence\n~~~\n\n",
      "A formula $$x_1 + y_2$$ and \\(a_1\\):\n$$\nx_1 = \\frac{a}{b}\n$$\n\n[^1]: The note at the end.\n",
    ].join("");
    for (const pause of [0, 1e6]) {
      const growing = new Growing();
      let maxCount = 0;
      for (let i = 1; i <= nasty.length; i++) {
        const n = letters(growing.parse(nasty.slice(0, i), true, i * pause));
        expect(n, JSON.stringify(nasty.slice(i - 60, i))).toBeGreaterThanOrEqual(maxCount - 24);
        maxCount = Math.max(maxCount, n);
      }
      expect(letters(growing.parse(nasty, false))).toBeGreaterThanOrEqual(maxCount - 24);
    }
  }, 120_000);

  test("that is replaced is parsed again, and the same text gives the same tokens", () => {
    const growing = new Growing();
    const firstTokens = growing.parse("a **b\n\nc\n\nd", true);
    expect(growing.parse("a **b\n\nc\n\nd", true)).toBe(firstTokens);
    expect(kinds(growing.parse("other", true))).toEqual(["paragraph other"]);
    expect(growing.parse("", true)).toEqual([]);
  });
});

describe("an update", () => {
  // Fed in steps of 28 characters; what is read in the last tenth says whether it grows with the text.
  const last = (text: string): number => {
    const growing = new Growing();
    let maxCount = 0;
    for (let i = 28; i < text.length; i += 28) {
      counts.characters = 0;
      growing.parse(text.slice(0, i), true);
      if (i > text.length * 0.9) maxCount = Math.max(maxCount, counts.characters);
    }
    return maxCount;
  };
  const repeat = (n: number, make: (i: number) => string) => Array.from({ length: n }, (_, i) => make(i)).join("");

  for (const [name, text, limit] of [
    ["of prose", repeat(200, (i) => `Paragraph ${i} with *some* words in it, and a [link](https://example.com).\n\n`), 1000],
    ["of prose with line ends of Windows", repeat(200, (i) => `Paragraph ${i} with *some* words in it, and a [link](https://example.com).\r\n\r\n`), 1000],
    ["of a table of 400 rows", `| a | b | c |\n|---|--:|:-:|\n${repeat(400, (i) => `| row ${i} | **${i * 7}** | \`code\` |\n`)}`, 1000],
    ["of a list of 280 items", repeat(280, (i) => `${i + 1}. item ${i} with **some** words and \`code\`\n`), 1000],
    ["of a loose list", repeat(280, (i) => `- item ${i} with **some** words\n\n`), 1000],
    ["after a list of 280 items", `${repeat(280, (i) => `- item ${i} with **some** words\n`)}\n${"words without a line end ".repeat(40)}`, 4000],
    ["of a fence of 100 KB", `Look:\n\n\`\`\`js\n${repeat(3200, (i) => `const x${i} = "# no title ${i}";\n`)}`, 200],
    ["of text with a footnote", `A note[^1].\n\n[^1]: It says\n\n${repeat(200, (i) => `Paragraph ${i} with *some* words in it[^1].\n\n`)}`, 1000],
    ["of text with tildes and greater-than signs", repeat(300, (i) => `- about ~${i} of 5~6\n- > ${i}\n\nSo 20~25 <b>${i}\n\n`), 1000],
  ] as const) test(name, () => expect(last(text)).toBeLessThan(limit), 60_000);

  test("draws only what changed, and what refers to a late definition", async () => {
    const { createRoot } = await import("react-dom/client");
    const { act } = await import("preact/test-utils");
    const { Markdown } = await import("./Markdown");
    const root = window.document.createElement("div");
    const page = createRoot(root);
    const show = (text: string, isLive = true) => void act(() => page.render(<Markdown text={text} live={isLive} />));
    const before = `See [the page][late] and a note[^n].\n\n${repeat(50, (i) => `Paragraph [${i}].\n\n`)}${repeat(100, (i) => `- item ${i}\n`)}\n| a | b |\n|---|---|\n${repeat(100, (i) => `| ${i} | b |\n`)}\n`;
    show(before);
    const nodes = [...root.querySelectorAll("p, li, tr")];
    counts.blocks = 0;
    show(`${before}Then [more\n\n`);
    expect(counts.blocks).toBeLessThan(10);
    expect(root.querySelector("p a")).toBeNull();
    counts.blocks = 0;
    show(`${before}Then [more\n\n[late]: https://example.com/late\n[^n]: the note\n`);
    expect(counts.blocks).toBeLessThan(80); // what has a bracket is looked at
    expect(root.querySelector("p a")?.getAttribute("href")).toBe("https://example.com/late");
    expect(root.querySelector("sup a")?.textContent).toBe("n");
    expect(root.querySelector(".notes li")?.textContent).toContain("the note");
    const after = new Set(root.querySelectorAll("p, li, tr"));
    expect(nodes.filter((n) => !after.has(n))).toEqual([]);
    counts.blocks = 0;
    show(`${before}Then [more\n\n[late]: https://example.com/late\n[^n]: the note\n`, false);
    expect(counts.blocks).toBeLessThan(10);
    expect([...root.querySelectorAll("p, li, tr")].filter((n) => !after.has(n))).toEqual([]);
    void act(() => page.unmount());
  }, 60_000);
});
