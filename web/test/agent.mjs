// A plugin for the dashboard's tests. The first word of a message selects what it does.

import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const write = (o) => process.stdout.write(JSON.stringify(o) + "\n");
const turns = new Map(); // id: { cancelled, answered }
const tries = new Map(); // attempts of flaky, by word
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

/** Returns a text with every kind of Markdown, repeated n times. */
export function prose(n = 1) {
  const section = (i) => [
    `## Section ${i}`, "", `Some *prose* with **bold**, \`code\` and a [link](https://example.com/${i}), long enough to wrap on a narrow screen and then some.`, "",
    "1. first thing", "2. second thing with `code`", "   - nested", "3. third", "", "| a | b |", "|---|--:|", `| row ${i} | 1 |`, "| more | 22 |", "",
    "```go", "func main() {", `\tfmt.Println("hello", ${i})`, "}", "```", "", "> quoted words", "",
  ].join("\n");
  return Array.from({ length: n }, (_, i) => section(i + 1)).join("\n");
}

const scripts = {
  // echo WORDS: one word every 40 ms.
  async echo({ turn, say, rest, going }) {
    for (const w of rest.split(/(?<= )/)) {
      if (!going()) return;
      say(w);
      await sleep(40);
    }
    write({ type: "turn.end", turn, outcome: "completed", usage: { input: 10, output: 20, model: "test" } });
  },
  // long N: N times the prose, in pieces of 24 characters every 20 ms. 4000 lasts until it is stopped, even on a slow machine.
  async long({ turn, say, rest, going }) {
    for (const piece of prose(Number(rest) || 3).match(/[\s\S]{1,24}/g)) {
      if (!going()) return;
      say(piece);
      await sleep(20);
    }
    write({ type: "turn.end", turn, outcome: "completed" });
  },
  // read FOLDER: twice the prose, when the test has created FOLDER/go.
  async read({ turn, say, rest, going }) {
    while (!existsSync(`${rest}/go`) && going()) await sleep(10);
    await scripts.long({ turn, say, rest: "2", going });
  },
  // flood N: N characters of prose at 200 tokens a second.
  async flood({ turn, say, rest, going }) {
    const text = prose(400).slice(0, Number(rest) || 16000);
    const begin = performance.now();
    for (let at = 0; at < text.length;) {
      if (!going()) return;
      const to = Math.min(text.length, Math.ceil((performance.now() - begin) / 5) * 4);
      if (to > at) say(text.slice(at, to));
      at = Math.max(at, to);
      await sleep(5);
    }
    write({ type: "turn.end", turn, outcome: "completed" });
  },
  // fail: some text, then a failure.
  async fail({ turn, say }) {
    say("I begin, but ");
    await sleep(50);
    write({ type: "turn.end", turn, outcome: "failed", error: { code: "overloaded", message: "The model is overloaded.", retryable: true } });
  },
  // flaky WORD: fails at the first attempt for the word, and then answers with the number of attempts.
  async flaky({ turn, say, rest }) {
    tries.set(rest, (tries.get(rest) ?? 0) + 1);
    if (tries.get(rest) === 1) return scripts.fail({ turn, say });
    say(`This is try ${tries.get(rest)}.`);
    write({ type: "turn.end", turn, outcome: "completed" });
  },
  // tool: a tool with growing output and stderr, a failed tool, and text.
  async tool({ turn, say, going }) {
    write({ type: "message.start", turn, message: "m", role: "assistant" });
    write({ type: "part.start", turn, message: "m", part: "r", kind: "reasoning" });
    write({ type: "part.append", turn, message: "m", part: "r", text: "I should look at the files first." });
    write({ type: "part.end", turn, message: "m", part: "r" });
    write({ type: "part.start", turn, message: "m", part: "t1", kind: "tool", name: "bash", call: "c1" });
    for (const piece of ['{"comm', 'and":"ls', ' -l"}']) {
      write({ type: "part.append", turn, message: "m", part: "t1", field: "input", text: piece });
      await sleep(60);
    }
    for (let i = 1; i <= 20 && going(); i++) {
      write({ type: "part.append", turn, message: "m", part: "t1", field: "output", text: `file ${i}\n` });
      await sleep(40);
    }
    write({ type: "part.append", turn, message: "m", part: "t1", field: "stderr", text: "ls: a warning\n" });
    write({ type: "part.update", turn, message: "m", part: "t1", state: "done" });
    write({ type: "part.end", turn, message: "m", part: "t1" });
    write({ type: "part.start", turn, message: "m", part: "t2", kind: "tool", name: "read", call: "c2" });
    write({ type: "part.update", turn, message: "m", part: "t2", state: "failed", error: { message: "no such file" } });
    write({ type: "part.end", turn, message: "m", part: "t2" });
    write({ type: "part.start", turn, message: "m", part: "x", kind: "text" });
    write({ type: "part.append", turn, message: "m", part: "x", text: "There are 20 files." });
    write({ type: "part.end", turn, message: "m", part: "x" });
    write({ type: "message.end", turn, message: "m" });
    write({ type: "turn.end", turn, outcome: "completed" });
    void say;
  },
  // status: statuses that replace each other, then the answer.
  async status({ turn, going }) {
    for (const text of ["Looking up track…", "Searching for track…", "Setting up playback…", "Now playing: **Song**"]) {
      if (!going()) return;
      write({ type: "callback", turn, text, source: "action" });
      await sleep(150);
    }
    write({ type: "turn.end", turn, outcome: "completed" });
  },
  // ask: requests an approval, and answers with the decision.
  async ask({ turn, say, answer }) {
    say("Wait. ");
    write({ type: "turn.wait", turn, request: { id: `q-${turn}`, kind: "approval", tool: "rm", prompt: "May I delete the file?", data: { path: "/tmp/x" } } });
    const a = await answer();
    say(a.decision === "approve" ? "Deleted." : "Kept.");
    write({ type: "turn.end", turn, outcome: "completed" });
  },
  // files: names the files of the message, and returns the first.
  async files({ turn, say, message }) {
    const parts = (message.parts ?? []).filter((p) => p.media);
    say(parts.map((p) => `${p.media.name} ${p.media.mime} ${p.media.size}`).join("; "));
    if (parts[0]) {
      write({ type: "message.start", turn, message: "f", role: "assistant" });
      write({ type: "part.start", turn, message: "f", part: "p", kind: "media", media: { url: parts[0].media.url, mime: parts[0].media.mime, name: `back-${parts[0].media.name}` } });
      write({ type: "part.end", turn, message: "f", part: "p" });
      write({ type: "message.end", turn, message: "f" });
    }
    write({ type: "turn.end", turn, outcome: "completed" });
  },
  // hostile: content that must do no harm.
  async hostile({ turn, say }) {
    for (const line of hostile) {
      say(`${line}\n\n`);
      await sleep(10);
    }
    write({ type: "turn.end", turn, outcome: "completed" });
  },
};

export const hostile = [
  "<script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 2\">", "[click](javascript:window.hacked=3)", "![x](javascript:window.hacked=4)",
  "<svg onload=\"window.hacked = 5\"><script>window.hacked = 6</script></svg>", "<iframe srcdoc=\"<script>parent.hacked = 7</script>\"></iframe>",
  "[data](data:text/html,<script>window.hacked=8</script>)", "![remote](https://tracker.example/pixel.png)", "<style>body { display: none }</style>",
  "<form action=https://evil.example><input name=a><button>Go</button></form>", "[a](vbscript:x) [b](file:///etc/passwd) [c](//evil.example/x)",
  "evil\u202Egpj.exe and `\u202Egpj.exe`", "<a href=\"https://example.com\" onclick=\"window.hacked = 9\">link</a>", "&lt;script&gt;window.hacked = 10&lt;/script&gt;",
  "[ref]: javascript:window.hacked=11", "[ref]", `${"> ".repeat(60)}deep`, `${"- ".repeat(40)}deep`, `| ${"c | ".repeat(200)}\n| ${"- | ".repeat(200)}\n| ${"x | ".repeat(200)}`,
  "<math><mtext></mtext><script>window.hacked = 12</script></math>", "<details open ontoggle=\"window.hacked = 13\">x</details>", "```html\n<script>window.hacked = 14</script>",
];

if (process.argv[1]?.endsWith("agent.mjs")) {
  createInterface({ input: process.stdin }).on("line", (line) => {
    const m = JSON.parse(line);
    if (m.type === "hello") write({ type: "ready", protocol: 1 });
    if (m.type === "cancel" && turns.has(m.turn)) turns.get(m.turn).cancelled = true;
    if (m.type === "answer") turns.get(m.turn)?.answered?.(m.answer);
    if (m.type !== "turn") return;
    const t = {};
    turns.set(m.turn, t);
    const text = m.message.text ?? "";
    const [word, ...args] = text.split(" ");
    const run = scripts[word] ?? scripts.echo;
    const say = (s) => write({ type: "text", turn: m.turn, text: s });
    const answer = () => new Promise((resolve) => (t.answered = resolve));
    run({ turn: m.turn, say, rest: scripts[word] ? args.join(" ") : text, going: () => !t.cancelled, answer, message: m.message })
      .catch((err) => write({ type: "turn.end", turn: m.turn, outcome: "failed", error: { message: String(err) } }))
      .finally(() => turns.delete(m.turn));
  }).on("close", () => process.exit(0));
}
