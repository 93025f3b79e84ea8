import assert from "node:assert/strict";
import { test } from "node:test";

import type { Message, Part } from "@leat/client";
import { Client } from "@leat/client";
import { createElement } from "react";
import { renderToString } from "react-dom/server";

import { Composer, LeatProvider, Messages, type PartProps, Parts, Thread, useThread } from "../src/index.js";

const message = (...parts: Omit<Part, "id">[]): Message => ({ id: "m", role: "assistant", parts: parts.map((p, i) => ({ id: `p${i}`, ...p })) });
const render = (...parts: Omit<Part, "id">[]) => renderToString(<Parts message={message(...parts)} />);

test("each kind of part has a plain default", () => {
  assert.match(render({ kind: "text", text: "<b>one</b>" }), /data-part="text".*&lt;b&gt;one/);
  assert.match(render({ kind: "reasoning", text: "because", ended: true }), /<details><summary>Reasoning<\/summary>.*because/);
  assert.match(render({ kind: "status", text: "Looking" }), /role="status">Looking/);
  const tool = render({ kind: "tool", name: "rm", state: "failed", input: "{}", output: "out", stderr: "err", error: { message: "no" } });
  for (const text of ['data-state="failed"', "rm<!-- -->: <!-- -->failed", "{}", "out", "err", 'role="alert">no']) assert.ok(tool.includes(text), tool);
  assert.match(render({ kind: "data", data: { a: 1 } }), /&quot;a&quot;: 1/);
  assert.match(render({ kind: "new" as Part["kind"], data: "x" }), /data-part="new"><pre>x/);
  assert.equal(render({ kind: "text", text: "" }), "");
});

test("media are pictures or links, but never of an address that runs code", () => {
  assert.match(render({ kind: "media", media: { url: "/files/a", mime: "image/png", alt: "a cat" } }), /<img src="\/files\/a" alt="a cat"/);
  assert.match(render({ kind: "media", media: { url: "https://a.example/b", name: "b.pdf" } }), /<a href="https:\/\/a\.example\/b"[^>]*>b\.pdf/);
  for (const url of ["javascript:alert(1)", "data:text/html,x", undefined]) {
    const html = render({ kind: "media", media: { ...(url && { url }), name: "b.pdf", mime: "image/png" } });
    assert.match(html, /<p>b\.pdf<\/p>/);
    assert.doesNotMatch(html, /javascript|data:text|<img|<a /);
  }
});

test("an application replaces the component of a kind", () => {
  const Shout = ({ part }: PartProps) => <em>{part.text!.toUpperCase()}</em>;
  const html = renderToString(<Parts message={message({ kind: "text", text: "a" }, { kind: "reasoning", text: "b" })} components={{ text: Shout }} />);
  assert.match(html, /<em>A<\/em>.*<details>/);
});

test("on a server a thread is empty, and a component outside of one throws", () => {
  const client = new Client({ url: "http://127.0.0.1:9", storage: null });
  const page = renderToString(<LeatProvider client={client}><Thread id="t"><Messages className="log" /><Composer placeholder="Ask" /></Thread></LeatProvider>);
  client.close();
  assert.match(page, /<section role="log" aria-label="Messages" class="log"><\/section>/);
  assert.match(page, /<textarea aria-label="Message" placeholder="Ask"/);
  assert.throws(() => renderToString(createElement(() => useThread().phase)), /inside a Thread/);
  assert.throws(() => renderToString(<Thread id="t">{null}</Thread>), /inside a LeatProvider/);
});
