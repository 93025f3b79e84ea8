// What each thing that Markdown has looks like.

import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import { Markdown } from "./Markdown";
import { maxBlock } from "./lex";

const renderMarkdown = (text: string) => renderToStaticMarkup(<Markdown text={text} live={false} />);

test.each([
  ["a task list", "- [ ] open\n- [x] done", ['aria-label="to do" class="unticked"></span>open', 'aria-label="done" class="ticked"></span>done']],
  ["a loose task list", "- [ ] open\n\n- [x] done", ['<p dir="auto">open</p>', '<p dir="auto">done</p>']],
  ["a deletion, and what is about", "~~gone~~ ~5 of 6~7", ["<del>gone</del> ~5 of 6~7"]],
  ["nested quotes", "> a\n> > b", ["<blockquote><p dir=\"auto\">a</p><blockquote><p dir=\"auto\">b</p></blockquote></blockquote>"]],
  ["a footnote", "Said[^a].\n\n[^a]: The **note**.\n\n    More.", ['<a href="#note-a" data-ref="a" role="doc-noteref" aria-label="Note a">a</a>', 'class="notes"', "The <strong>note</strong>.", ">More.</p>", 'data-to="a" role="doc-backlink"']],
  ["footnotes in a row", "a[^1] b[^2]\n[^1]: one\n[^2]: two", ['data-ref="1"', 'data-ref="2"', ">one</p>", ">two</p>"]],
  ["a reference to no footnote", "the class [^abc]", ["the class [^abc]"]],
  ["a reference before its definition", "[page] and [words][Page]\n\n[page]: https://example.com/p 'Title'", ['<a href="https://example.com/p" title="Title"', ">words</a>"]],
  ["alignment", "| a | b |\n|:-:|--:|\n| 1 | 2 |", ['data-align="center">1<', 'data-align="right">2<', 'role="group"']],
  ["code with its language", "```go\nx := 1\n```", ["<figcaption><span>go</span>", 'aria-label="Wrap lines"', 'aria-label="Copy code"', "<code>x := 1</code>"]],
  ["a diagram", "```mermaid\ngraph TD\n```", ["<span>diagram · mermaid</span>", "graph TD"]],
  ["a formula", "So:\n$$\nx_1 = *y*\n$$\n\n\\[ a_1 + b_1 \\]", ['class="formula-block"', ">x_1 = *y*</code>", ">a_1 + b_1</code>"]],
  ["formulas among words", "$x_1$ and \\(y_1\\) and $$z_1$$", ['class="math">x_1</code>', ">y_1</code>", ">z_1</code>"]],
  ["prices, which aren't formulas", "It costs $5 to US$ 7, or between 5$ and 10$, or $20 per seat and 30$ more, or $5 and $10.", ["<p dir=\"auto\">It costs $5 to US$ 7, or between 5$ and 10$, or $20 per seat and 30$ more, or $5 and $10.</p>"]],
  ["formulas that begin with a number", "$2x + 1$ and $3 \\cdot 4$, $10 \\text{ km}$, $3xy^2$, $5$ and $2 \\sin x$", [">2x + 1</code>", ">3 \\cdot 4</code>", ">10 \\text{ km}</code>", ">3xy^2</code>", ">5</code>", ">2 \\sin x</code>"]],
  ["money", "It costs $5 and $10, or US$20, $5–$10, $1,000/$ 2, $5 или 10$ or $10k/month against 20$.", ["It costs $5 and $10, or US$20, $5–$10, $1,000/$ 2, $5 или 10$ or $10k/month against 20$."]],
  ["directions", "- \u05e9\u05dc\u05d5\u05dd\n\n> \u0645\u0631\u062d\u0628\u0627", ['<ul dir="rtl">', '<blockquote dir="rtl"><p dir="auto">']],
  ["marks that turn the order of text", "`a\u202Eb` [x](https://e.com/\u202Ey)\n\n```\u202Ejs\nc\u202E\n```", ["a⟨U+202E⟩b", 'title="https://e.com/⟨U+202E⟩y"', "<span>⟨U+202E⟩js</span>", "c⟨U+202E⟩"]],
  ["a link that only looks as if it stayed here", "[x](/\\x.example)", ['target="_blank" rel="noopener noreferrer">x</a>']],
  ["HTML as text", "<b onclick=x>hi</b>\n\n<div>\n", ["&lt;b onclick=x", "&lt;/b", "&lt;div"]],
  ["headings that skip no level", "## a\n\n#### b\n\n### c\n\n## d\n\n# e", ["<h3 dir=\"auto\">a</h3>", "<h4 dir=\"auto\">b</h4>", "<h4 dir=\"auto\">c</h4>", "<h3 dir=\"auto\">d</h3>", "<h3 dir=\"auto\">e</h3>"]],
  ["a heading in a quote", "> # a", ["<p dir=\"auto\" class=\"heading\">a</p>"]],
  ["a heading without text, which is left out", "a\n\n##\n\n> #\n\nb", ["<p dir=\"auto\">a</p><blockquote></blockquote><p dir=\"auto\">b</p>"]],
  ["headings below one without text", "#\n\n## a\n\n### b", ["<h3 dir=\"auto\">a</h3><h4 dir=\"auto\">b</h4>"]],
  ["code that has not begun", "```go\n", ['<pre tabindex="0" role="group" aria-label="Code, go"><code></code></pre>']],
  ["a setext heading", "Title\n===", ["<h3 dir=\"auto\">Title</h3>"]],
])("%s", (_, text, want) => {
  for (const w of want) expect(renderMarkdown(text)).toContain(w);
});

test("what is too long is plain", () => {
  expect(renderMarkdown(`**a** ${"word ".repeat(maxBlock / 5)}`)).toContain('<pre class="plain">**a** word');
});

test("what nests too deep is plain, and takes no time", () => {
  for (const mark of ["> ", "- ", "1. ", "[", "*", "**a ", "`", "[^a]: ", "$$", "![", "<", "~~", "| "]) {
    const begin = performance.now();
    const html = renderMarkdown(`${mark.repeat(20_000 / mark.length)}deep`);
    expect(html).toContain("deep");
    expect(html.match(/<blockquote|<[uo]l/g)?.length ?? 0).toBeLessThanOrEqual(21);
    expect(performance.now() - begin, mark).toBeLessThan(20_000);
  }
}, 120_000);

test("code in pieces has each of its lines", () => {
  const text = Array.from({ length: 2000 }, (_, i) => (i % 7 ? `line ${i}` : "")).join("\n");
  const html = renderMarkdown(`\`\`\`\n${text}\n\`\`\``);
  const pieces = [...html.matchAll(/<span class="piece">([^<]*)<\/span>/g)].map((m) => m[1]);
  expect(pieces.length).toBeGreaterThan(2);
  expect(pieces.join("\n")).toBe(text);
  for (const p of pieces.slice(0, -1)) expect(p!.endsWith("\n")).toBe(false);
});
