import { expect, test } from "vitest";

import { meaning } from "./mcp";

const request = (method: string, params?: unknown) => meaning({ jsonrpc: "2.0", id: 1, method, params }, "dark");

test("requests that change nothing are answered", () => {
  expect(request("ui/initialize")).toMatchObject({ kind: "answer", reply: { id: 1, result: { hostContext: { theme: "dark" } } } });
  expect(request("ping")).toEqual({ kind: "answer", reply: { jsonrpc: "2.0", id: 1, result: {} } });
  expect(request("resources/read", { uri: "file:///etc/passwd" })).toMatchObject({ kind: "answer", reply: { error: { code: -32601 } } });
});

test("what leaves the frame needs consent", () => {
  expect(request("tools/call", { name: "rm", arguments: { path: "/" } })).toEqual({ kind: "tool", id: 1, name: "rm", input: '{"path":"/"}' });
  expect(request("ui/message", { role: "user", content: [{ type: "text", text: "go on" }] })).toEqual({ kind: "message", id: 1, text: "go on" });
  expect(request("ui/open-link", { url: "https://example.com/" })).toEqual({ kind: "link", id: 1, url: "https://example.com/" });
  for (const url of ["javascript:alert(1)", "data:text/html,x", "file:///x", 5]) expect(request("ui/open-link", { url })).toMatchObject({ kind: "answer", reply: { error: { code: -32602 } } });
  expect(request("ui/message", { content: [{ type: "text", text: "x".repeat(10_001) }] })).toMatchObject({ kind: "answer", reply: { error: {} } });
});

test("notifications, and messages outside of the protocol", () => {
  expect(meaning({ jsonrpc: "2.0", method: "ui/notifications/size-changed", params: { height: 7 } }, "light")).toEqual({ kind: "resized", height: 7 });
  expect(meaning({ jsonrpc: "2.0", method: "ui/notifications/initialized" }, "light")).toEqual({ kind: "initialized" });
  for (const m of [{}, { jsonrpc: "1.0", id: 1, method: "ping" }, { jsonrpc: "2.0", id: {}, method: "tools/call", params: { name: "x" } }]) expect(meaning(m, "light")).toEqual({ kind: "ignored" });
});
