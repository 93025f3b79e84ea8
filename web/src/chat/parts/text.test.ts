import { expect, test } from "vitest";

import { argument, halves } from "./argument";
import { countLines, stretch } from "./Lines";
import { line, lines, terminal } from "./marks";

test("what turns or hides text is shown as a mark", () => {
  expect(line("evil\u202egpj.exe")).toBe("evil⟨U+202E⟩gpj.exe");
  expect(line("a\u0000b\u200bc\ufeffd\u{e0041}")).toBe("a⟨U+0000⟩b⟨U+200B⟩c⟨U+FEFF⟩d⟨U+E0041⟩");
  expect(line("two\n  lines\tand\u2028more")).toBe("two lines and more");
  expect(line("x".repeat(1000))).toHaveLength(401);
  expect(line(`x${"👍".repeat(300)}`)).toBe(`x${"👍".repeat(199)}…`);
  expect(line("👨‍👩‍👧 مرحبا")).toBe("👨‍👩‍👧 مرحبا"); // joiners are letters
  expect(line(`Z${"\u0336".repeat(50)}x é ị́`)).toBe(`Z${"\u0336".repeat(4)}x é ị́`);
  expect(lines("a\n\tb\u202e")).toBe("a\n\tb⟨U+202E⟩");
});

test("what was written for a terminal", () => {
  expect(terminal("\u001b[1;31mred\u001b[0m \u001b]8;;https://x.example\u0007link\u001b]8;;\u0007")).toBe("red link");
  expect(terminal("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
  expect(terminal("bell\u0007")).toBe("bell⟨U+0007⟩");
});

test.each([
  ['{"cwd":"/","command":"ls -l"}', "ls -l"], ['{"x":1,"path":"/a', "/a"], ['{"command":["git","log"]}', "git log"], ['{"a":{"b":1},"c":"said"}', "said"], ['{"a":1}', undefined], ["", undefined], ["not json", undefined], ['"text"', "text"],
])("the main argument of %s is %s", (input, want) => expect(argument(input)).toBe(want));

test("both ends of an argument are kept", () => {
  const { head, tail } = halves(`/a/${"long/".repeat(500)}name.txt`);
  expect(head.startsWith("/a/long")).toBe(true);
  expect(tail.endsWith("name.txt")).toBe(true);
  expect(halves("👍".repeat(30))).toEqual({ head: "👍".repeat(20), tail: "👍".repeat(10) });
  expect(halves("make all")).toEqual({ head: "make all", tail: "" });
});

test("so much of a long text", () => {
  const text = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`).join("\n") + "\n";
  expect(countLines(text)).toBe(30);
  expect(stretch(text, { lines: 2, length: 1000 }, "end")).toEqual({ piece: "line 29\nline 30", whole: false });
  expect(stretch(text, { lines: 2, length: 1000 }, "start")).toEqual({ piece: "line 1\nline 2", whole: false });
  expect(stretch("\n\nx", { lines: 5, length: 1000 }, "end")).toEqual({ piece: "\n\nx", whole: true });
  expect(stretch("\n\nx", { lines: 2, length: 1000 }, "end")).toEqual({ piece: "\nx", whole: false });
  expect(stretch("a\nb", { lines: 2, length: 1000 }, "start")).toEqual({ piece: "a\nb", whole: true });
  expect(stretch("x".repeat(50), { lines: 2, length: 10 }, "end")).toEqual({ piece: "x".repeat(10), whole: false });
  expect(stretch("👍👍", { lines: 2, length: 3 }, "end").piece).toBe("👍");
  expect(stretch("", { lines: 2, length: 3 }, "end")).toEqual({ piece: "", whole: true });
});
