import type { Message } from "@leat/client";
import { expect, test } from "vitest";

import { hits } from "./search";

const m = (text: string, role: Message["role"] = "assistant"): Message => ({ id: "m", role, parts: [{ id: "p", kind: "text", text }] });

test("what is seen is found, not how it is written", () => {
  expect(hits(m("One **bold** word, `one` more:\n\none [link](https://one.example)"), "ONE")).toHaveLength(3);
  expect(hits(m("a **bold** word"), "bold word")).toEqual([{ message: "m", nth: 0 }]);
  expect(hits(m("two\nlines"), " two  lines ")).toHaveLength(1);
  expect(hits(m("**as it was written**", "user"), "**as")).toHaveLength(1);
  expect(hits(m("anything"), "  ")).toEqual([]);
});

test("what is folded is found once a part", () => {
  const tool: Message = { id: "t", role: "assistant", parts: [{ id: "1", kind: "tool", name: "bash", input: "ls ls", output: "ls" }, { id: "2", kind: "reasoning", text: "ls, I think" }] };
  expect(hits(tool, "ls")).toEqual([{ message: "t", nth: -1, folded: "the tool bash" }, { message: "t", nth: -1, folded: "the reasoning" }]);
});
