import { expect, test } from "vitest";

import { leadsAway, placeOf, plain, safeImage, safeLink, unescape } from "./safe";

test("character references", () => {
  expect(unescape("a &amp; b &lt;&gt; &#65;&#x42; &hellip; &nothing; &#0; &#xD800; &")).toBe("a & b <> AB … &nothing; &#0; &#xD800; &");
});

test("marks that turn the order of text are shown", () => {
  expect(plain("a\u202Eb\u2066c")).toBe("a⟨U+202E⟩b⟨U+2066⟩c");
});

test("links lead to the web, to mail, and to places here", () => {
  for (const good of ["https://example.com/a?b#c", "http://x", "mailto:a@b.c", "#there", "relative/path", "/rooted"]) expect(safeLink(good)).toBe(good);
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java&#115;cript:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:x"]) {
    expect(safeLink(bad), bad).toBeUndefined();
  }
});

test("links to another host, as a browser reads them", () => {
  for (const away of ["https://x.example", "//x.example/a", "/\\x.example", "\\\\x.example", "/\t/x.example", "https:x.example", "HTTPS://x.example", "http:\\\\x.example"]) expect(leadsAway(away), away).toBe(true);
  for (const page of ["/rooted", "relative", "#there", "mailto:a@b.c", "http://leat.invalid/x", "/a//b", "?q=//x"]) expect(leadsAway(page), page).toBe(false);
});

test("anchors in the page, even with unusual names", () => {
  expect(placeOf("#a%20b")).toBe("a b");
  expect(placeOf("#%")).toBe("%");
  expect(placeOf("#100%-sure")).toBe("100%-sure");
});

test("pictures come from this gateway, or with their bytes", () => {
  const file = "/api/conversations/c/files/0123456789abcdef0123456789abcdef";
  expect(safeImage(file)).toBe(true);
  expect(safeImage("data:image/png;base64,AA==")).toBe(true);
  for (const bad of [`https://other.example${file}`, "https://other.example/p.png", "/api/status", "data:image/svg+xml;base64,AA==", "data:text/html,x", "javascript:x"]) expect(safeImage(bad), bad).toBe(false);
});
