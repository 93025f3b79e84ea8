import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, test } from "vitest";

import { Blocks } from "./Block";
import { Growing } from "./growing";
import { closeBlock, closeInline, heldTime } from "./heal";

const isLive = (text: string, time = 0, growing = new Growing()) => renderToStaticMarkup(<Blocks tokens={growing.parse(text, true, time)} depth={0} definitions={0} live />).replace(/ (?:dir|title|tabindex|aria-label|role|target|rel|start)="[^"]*"/g, "");

test.each([
  ["some **bold", "some **bold**"],
  ["some **bold ", "some **bold** "],
  ["some **bold*", "some **bold**"],
  ["some **bold**", "some **bold**"],
  ["some **", "some "],
  ["*em **both", "*em **both***"],
  ["***all", "***all***"],
  ["_em", "_em_"],
  ["snake_case", "snake_case"],
  ["2 * 3", "2 * 3"],
  ["~~gone", "~~gone~~"],
  ["about ~5", "about ~5"],
  ["`code", "`code`"],
  ["``a ` b", "``a ` b``"],
  ["``code`", "``code``"],
  ["a `", "a "],
  ["`**no`", "`**no`"],
  ["\\**em", "\\**em*"],
  ["[words](https://exam", "[words](leat:on-its-way)"],
  ["**[words](https://exam", "**[words](leat:on-its-way)**"],
  ["![a picture](https://exam", "[a picture](leat:on-its-way)"],
  ["[words](see below for", "[words](see below for"],
  ["[words](https://x.org/a_(b)) *c", "[words](https://x.org/a_(b)) *c*"],
  ["the sum \\(a_1", "the sum \\(a_1\\)"],
  ["the sum $$a_1", "the sum $$a_1$$"],
])("%j is closed as %j", (text, want) => expect(closeInline(text)).toBe(want));

test.each([
  ["| a | b |\n|", "|-|-"],
  ["| a | b |\n|-", "|-|-"],
  ["| a | b |\n|--|", "|--|-"],
  ["| a | b |\n|--|:", "|--|:-"],
  ["| a | b |\n|--|--|", "|--|--|"],
  ["| a | b |\n|--|--|\n|", "|"],
  ["so:\n$$\nx = 1", "x = 1\n$$"],
  ["so:\n$$\nx = 1\n$", "$$"],
  ["\\[ x", " x\n\\]"],
])("the block %j gets a last line %j", (text, want) => expect((text + closeBlock(text)).endsWith(want)).toBe(true));

describe("what may become syntax is held back", () => {
  test.each([
    ["a ![alt", "<p>a </p>"], ["a [words", "<p>a </p>"], ["a &am", "<p>a </p>"], ["a\n\n1", "<p>a</p>"], ["a\n\n1.", "<p>a</p>"], ["a\n-", "<p>a</p>"], ["a\n==", "<p>a</p>"],
    ["a\n\n| head", "<p>a</p>"], ["a\n\n``", "<p>a</p>"], ["a\n\n[ref]:", "<p>a</p>"], ["a\n\n#", "<p>a</p>"],
  ])("%j", (text, want) => expect(isLive(text)).toBe(want));

  test("for a moment", () => {
    const growing = new Growing();
    expect(isLive("a ![alt", 1000, growing)).toBe("<p>a </p>");
    expect(growing.shows).toBe(1000 + heldTime);
    expect(isLive("a ![alt", 1000 + heldTime, growing)).toBe("<p>a ![alt</p>");
    expect(isLive("a ![alt is", 1001 + heldTime, growing)).toBe("<p>a ![alt is</p>");
    expect(growing.shows).toBe(0);
  });

  test("up to a length", () => expect(isLive(`a [${"w".repeat(40)}`)).toContain("w".repeat(40)));
  test("not where nothing grows", () => expect(renderToStaticMarkup(<Blocks tokens={new Growing().parse("a ![alt", false)} depth={0} definitions={0} live={false} />)).toContain("![alt"));
  test("not in code", () => expect(isLive("```\na\n- ")).toContain("a\n- "));
});

test("a table stands from the beginning of its second line", () => expect(isLive("| a | b |\n|-")).toContain('<th scope="col">b</th>'));
test("the beginning of the line that ends code is not shown", () => {
  const growing = new Growing();
  isLive("```\na", 0, growing);
  expect(isLive("```\na\n``", 0, growing)).toContain("<code>a</code>");
});
test("what is open is closed only while it grows", () => expect(renderToStaticMarkup(<Blocks tokens={new Growing().parse("a **b", false)} depth={0} definitions={0} live={false} />)).toBe('<p dir="auto">a **b</p>'));
