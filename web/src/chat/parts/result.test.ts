import { expect, test } from "vitest";

import { mayBeApp, resultOf } from "./result";

test.each([
  ["<!DOCTYPE html><title>Clock</title>", "app"], ["<p>not a document</p>", "text"], ['{"a":[1]}', "json"], ["[not json", "text"], ["", "text"],
  ["diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "diff"], ["--- a\nno diff", "text"], ["name,age\nAnn,3\n\"B, C\",4\n", "table"], ["a\tb\n1\t2\n3\t4", "table"],
  ["Well, this is prose.\nIt has commas, many, but not everywhere.\nThen it ends.", "text"], ["one,two\n", "text"], ["data:image/png;base64,AAAA", "pictures"], ["data:image/svg+xml;base64,AAAA", "text"],
])("%s is %s", (text, kind) => expect(resultOf(text).kind).toBe(kind));

test("the content of an MCP tool", () => {
  const app = JSON.stringify({ content: [{ type: "text", text: "see" }, { type: "resource", resource: { uri: "ui://clock/main", mimeType: "text/html;profile=mcp-app", text: "<p>12:00</p>" } }] });
  expect(mayBeApp(app)).toBe(true);
  expect(resultOf(app)).toMatchObject({ kind: "app", html: "<p>12:00</p>", title: "ui://clock/main" });
  expect(resultOf(JSON.stringify([{ type: "resource", resource: { uri: "ui://x", blob: btoa("<b>x</b>") } }]))).toMatchObject({ kind: "app", html: "<b>x</b>" });
  expect(resultOf(JSON.stringify({ content: [{ type: "image", mimeType: "image/png", data: "AAAA" }, { type: "text", text: "a dot" }] }))).toEqual({ kind: "pictures", pictures: ["data:image/png;base64,AAAA"], text: "a dot" });
  expect(resultOf(JSON.stringify({ content: [{ type: "image", mimeType: "image/svg+xml", data: "AAAA" }] })).kind).toBe("json");
  expect(resultOf(JSON.stringify([{ type: "resource", resource: { uri: "https://x.example", mimeType: "text/plain", text: "x" } }])).kind).toBe("json");
});

test("quoted fields contain separators, quotes and line breaks", () => {
  expect(resultOf('a,b\n"1,""2""","3\n4"\n5,6')).toEqual({ kind: "table", rows: [["a", "b"], ['1,"2"', "3\n4"], ["5", "6"]] });
});
