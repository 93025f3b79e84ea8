// Runs plugins made of scripts: the first word of a message selects the script.

import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

export function serve(scripts) {
  const turns = new Map();
  const write = (o) => process.stdout.write(JSON.stringify(o) + "\n");
  createInterface({ input: process.stdin }).on("line", (line) => {
    const m = JSON.parse(line);
    if (m.type === "hello") write({ type: "ready", protocol: 1 });
    if (m.type === "cancel" && turns.has(m.turn)) turns.get(m.turn).cancelled = true;
    if (m.type === "answer") turns.get(m.turn)?.answered?.(m.answer);
    if (m.type === "error") process.stderr.write(`refused: ${line}\n`);
    if (m.type !== "turn") return;
    const t = {};
    turns.set(m.turn, t);
    const [word, ...args] = (m.message.text ?? "").split(" ");
    const writerOf = (turn) => (o) => write({ turn, ...(turn !== m.turn && { for: m.turn }), ...o });
    const api = {
      turn: m.turn, rest: args.join(" "), going: () => !t.cancelled, emit: writerOf(m.turn), inner: writerOf,
      answer: () => new Promise((resolve) => (t.answered = resolve)),
      /** Waits until the test creates a file, so that the page is stable while it is checked. */
      async gate(name) {
        while (!existsSync(`${args.join(" ")}/${name}`) && !t.cancelled) await sleep(10);
      },
      ...maker(writerOf(m.turn)),
    };
    const script = scripts[word];
    (script ? script(api) : Promise.resolve(api.text("m", "x", `no script ${word}`)).then(() => api.end()))
      .catch((err) => api.emit({ type: "turn.end", outcome: "failed", error: { message: String(err) } }))
      .finally(() => turns.delete(m.turn));
  }).on("close", () => process.exit(0));
}

/** Shorthands for the events of one turn. */
export function maker(emit) {
  const messages = new Set();
  const message = (id, role = "assistant", fields = {}) => {
    if (!messages.has(id)) emit({ type: "message.start", message: id, role, ...fields });
    messages.add(id);
  };
  return {
    message,
    start: (m, part, kind, fields = {}) => (message(m), emit({ type: "part.start", message: m, part, kind, ...fields })),
    add: (m, part, text, field) => emit({ type: "part.append", message: m, part, text, ...(field && { field }) }),
    set: (m, part, fields) => emit({ type: "part.update", message: m, part, ...fields }),
    replace: (m, part, text, fields = {}) => emit({ type: "part.replace", message: m, part, text, ...fields }),
    close: (m, part) => emit({ type: "part.end", message: m, part }),
    done: (m) => emit({ type: "message.end", message: m }),
    text(m, part, text, kind = "text") {
      this.start(m, part, kind);
      this.add(m, part, text);
      this.close(m, part);
    },
    tool(m, part, name, { input, output, stderr, state = "done", error, title, data } = {}) {
      this.start(m, part, "tool", { name, call: part });
      if (input !== undefined) this.add(m, part, typeof input === "string" ? input : JSON.stringify(input), "input");
      if (output) this.add(m, part, output, "output");
      if (stderr) this.add(m, part, stderr, "stderr");
      this.set(m, part, { state, ...(error && { error: { message: error } }), ...(title && { title }), ...(data && { data }) });
      this.close(m, part);
    },
    media(m, part, media, fields = {}) {
      this.start(m, part, "media", { media, ...fields });
      this.close(m, part);
    },
    end: (fields = {}) => emit({ type: "turn.end", outcome: "completed", ...fields }),
  };
}
