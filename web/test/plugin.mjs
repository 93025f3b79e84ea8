// A plugin of scripts, for tests: a message's first word names the script that answers it.

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
    const [word, ...rest] = (m.message.text ?? "").split(" ");
    const own = (turn) => (o) => write({ turn, ...(turn !== m.turn && { for: m.turn }), ...o });
    const it = {
      turn: m.turn, rest: rest.join(" "), going: () => !t.cancelled, emit: own(m.turn), inner: own,
      answer: () => new Promise((resolve) => (t.answered = resolve)),
      /** Waits until the test has made a file, so that what it looks at stands still meanwhile. */
      async gate(name) {
        while (!existsSync(`${rest.join(" ")}/${name}`) && !t.cancelled) await sleep(10);
      },
      ...maker(own(m.turn)),
    };
    const script = scripts[word];
    (script ? script(it) : Promise.resolve(it.text("m", "x", `no script ${word}`)).then(() => it.end()))
      .catch((err) => it.emit({ type: "turn.end", outcome: "failed", error: { message: String(err) } }))
      .finally(() => turns.delete(m.turn));
  }).on("close", () => process.exit(0));
}

/** Short words for events of one turn. */
export function maker(emit) {
  const started = new Set();
  const message = (id, role = "assistant", more = {}) => {
    if (!started.has(id)) emit({ type: "message.start", message: id, role, ...more });
    started.add(id);
  };
  return {
    message,
    start: (m, part, kind, more = {}) => (message(m), emit({ type: "part.start", message: m, part, kind, ...more })),
    add: (m, part, text, field) => emit({ type: "part.append", message: m, part, text, ...(field && { field }) }),
    set: (m, part, more) => emit({ type: "part.update", message: m, part, ...more }),
    replace: (m, part, text, more = {}) => emit({ type: "part.replace", message: m, part, text, ...more }),
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
    media(m, part, media, more = {}) {
      this.start(m, part, "media", { media, ...more });
      this.close(m, part);
    },
    end: (more = {}) => emit({ type: "turn.end", outcome: "completed", ...more }),
  };
}
