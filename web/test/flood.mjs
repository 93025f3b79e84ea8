// A plugin with much output, for the tests of speed and memory: a long answer at 200 tokens a second, and many answers as fast as
// possible.

import { createInterface } from "node:readline";

const write = (o) => process.stdout.write(JSON.stringify(o) + "\n");
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const repeat = (n, item) => Array.from({ length: n }, (_, i) => item(i)).join("");

/** The sections of the long answer: the text that is sent at once, and the text that is sent at a model's pace. */
export const sections = [
  ["prose", repeat(90, (i) => `Paragraph ${i} with *some* prose, **bold** words, \`code\` and a [link](https://example.com/${i}), long enough to wrap and then some[^1].\n\n`)],
  ["table", `| name | value | note |\n|---|--:|:-:|\n${repeat(440, (i) => `| row ${i} | ${i * 7} | **bold** and \`code\` |\n`)}\n`],
  ["list", `${repeat(320, (i) => `${i + 1}. item ${i} with **some** words and \`code\`\n`)}\n`],
  ["fence", `\`\`\`js\n${repeat(2700, (i) => `const x${i} = "a line of code"; // ${i}\n`)}\`\`\`\n\n`],
  ["footnotes", `${repeat(40, (i) => `See the note[^${i}] and [that page][late].\n\n`)}[late]: https://example.com/late\n\n${repeat(40, (i) => `[^${i}]: Note ${i} says this.\n`)}\n`],
];
const output = repeat(16_000, (i) => `${i}: a line of what a tool writes, sixty-odd characters long it is\n`);

/** The output of a fast model in half a minute. */
export const longAnswer = `${sections.slice(0, 3).map(([, t]) => `${t.slice(0, 7000)}\n\n`).join("")}\`\`\`go\nfunc main() {}\n\`\`\`\n\n${sections[0][1].slice(0, 3000)}`;

/** The number of characters of each section that are sent at 200 tokens a second (four characters each). */
const paced = 2000;

// Sends a text at 200 tokens a second by the clock. On a busy machine the pieces are larger.
async function pace(text, say, isRunning) {
  const begin = performance.now();
  for (let at = 0; at < text.length && isRunning(); await sleep(5)) {
    const to = Math.min(text.length, Math.ceil((performance.now() - begin) / 5) * 4);
    if (to > at) say(text.slice(at, to));
    at = to;
  }
}

const scripts = {
  async answer({ turn, going }) {
    write({ type: "message.start", turn, message: "m", role: "assistant" });
    write({ type: "part.start", turn, message: "m", part: "t", kind: "tool", name: "bash", call: "c" });
    const appendOutput = (text) => write({ type: "part.append", turn, message: "m", part: "t", field: "output", text });
    for (let at = 0; at < output.length - paced; at += 32_000) {
      appendOutput(output.slice(at, Math.min(at + 32_000, output.length - paced)));
      await sleep(20);
    }
    await pace(output.slice(-paced), appendOutput, going);
    write({ type: "part.update", turn, message: "m", part: "t", state: "done" });
    write({ type: "part.end", turn, message: "m", part: "t" });
    write({ type: "part.start", turn, message: "m", part: "x", kind: "text" });
    const say = (text) => write({ type: "part.append", turn, message: "m", part: "x", text });
    for (const [, text] of sections) {
      for (let at = 0; at < text.length - paced; at += 4000) {
        say(text.slice(at, Math.min(at + 4000, text.length - paced)));
        await sleep(20);
      }
      await pace(text.slice(-paced), say, going);
    }
    write({ type: "part.end", turn, message: "m", part: "x" });
    write({ type: "message.end", turn, message: "m" });
  },
  // much: an answer as fast as possible.
  async much({ turn, going }) {
    write({ type: "message.start", turn, message: "m", role: "assistant" });
    write({ type: "part.start", turn, message: "m", part: "x", kind: "text" });
    for (let at = 0; at < longAnswer.length && going(); at += 800) {
      write({ type: "part.append", turn, message: "m", part: "x", text: longAnswer.slice(at, at + 800) });
      await sleep(5);
    }
    write({ type: "part.end", turn, message: "m", part: "x" });
    write({ type: "message.end", turn, message: "m" });
  },
};

if (process.argv[1]?.endsWith("flood.mjs")) {
  const turns = new Map();
  createInterface({ input: process.stdin }).on("line", (line) => {
    const m = JSON.parse(line);
    if (m.type === "hello") write({ type: "ready", protocol: 1 });
    if (m.type === "cancel") turns.delete(m.turn);
    if (m.type !== "turn") return;
    turns.set(m.turn, true);
    const run = scripts[(m.message.text ?? "").split(" ")[0]] ?? scripts.much;
    run({ turn: m.turn, going: () => turns.has(m.turn) }).then(() => write({ type: "turn.end", turn: m.turn, outcome: "completed" }));
  }).on("close", () => process.exit(0));
}
