import { expect, test } from "vitest";

// @ts-expect-error It has no types.
import { prose as untypedProse } from "../../test/agent.mjs";
import { joinSentences, sentences } from "./sentences";

const prose = untypedProse as (words: number) => string;

test("Markdown as it is read out", () => {
  expect(sentences("## A *title*\n\nOne **bold** sentence. Two with `code` and a [link](https://x.example)! Three?", true))
    .toEqual(["A title", "One bold sentence.", "Two with code and a link!", "Three?"]);
  expect(sentences("```go\na\nb\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n1. first\n2. second one. And more.\n\n> quoted &amp; said", true))
    .toEqual(["Code block, 2 lines, go.", "Table, 2 columns, 1 row.", "first", "second one.", "And more.", "quoted & said"]);
});

test("a text that grows gives nothing half, and never another beginning", () => {
  const text = prose(2) + "\nAnd then. A last one without an end";
  const expected = sentences(text, true);
  let before: string[] = [];
  for (let n = 0; n <= text.length; n++) {
    const actual = sentences(text.slice(0, n), false);
    expect(actual.slice(0, before.length)).toEqual(before);
    expect(expected.slice(0, actual.length)).toEqual(actual);
    before = actual;
  }
  expect(before).toEqual(expected.slice(0, before.length));
  expect(expected.length - before.length).toBeLessThanOrEqual(1);
});

test("sentences are joined, and long ones cut between words", () => {
  expect(joinSentences(["One.", "Two.", "Three."])).toEqual(["One. Two. Three."]);
  const sentence = Array.from({ length: 200 }, (_, i) => `word${i}`).join(" ");
  const pieces = joinSentences(["Short.", sentence, "Last."]);
  expect(pieces.every((p) => p.length <= 400)).toBe(true);
  expect(pieces.join(" ")).toBe(`Short. ${sentence} Last.`);
  expect(joinSentences(["x".repeat(900)]).join("")).toBe("x".repeat(900));
});
