// A plugin that accepts messages in its running turns: it answers until a test ends the turn, and repeats the messages. "tool" runs
// a tool until then.

import { createInterface } from "node:readline";

const write = (o) => process.stdout.write(JSON.stringify(o) + "\n");
const turns = new Map(); // id: end

createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.type === "hello") write({ type: "ready", protocol: 1, steer: true });
  if (m.type === "cancel") turns.get(m.turn)?.();
  if (m.type === "steer") {
    write({ type: "steered", turn: m.turn, message: m.message.id, taken: true });
    const text = m.message.text ?? "";
    if (text.startsWith("end")) turns.get(m.turn)?.(text);
    else write({ type: "text", turn: m.turn, text: ` You said ${text}. ` });
  }
  if (m.type !== "turn") return;
  const { turn } = m;
  const text = m.message.text ?? "";
  const tool = text.startsWith("tool");
  if (tool) {
    write({ type: "message.start", turn, message: "m", role: "assistant" });
    write({ type: "part.start", turn, message: "m", part: "t", kind: "tool", name: "digger", call: "c" });
  } else {
    write({ type: "text", turn, text: `Begun: ${text}. History of ${(m.history ?? []).filter((h) => h.role === "user").map((h) => h.text).join(", ")}. ` });
  }
  if (text.startsWith("once")) {
    write({ type: "turn.end", turn, outcome: "completed" });
    return;
  }
  turns.set(turn, (steer) => {
    turns.delete(turn);
    if (tool) {
      write({ type: "part.update", turn, message: "m", part: "t", state: "done" });
      write({ type: "part.end", turn, message: "m", part: "t" });
      write({ type: "message.end", turn, message: "m" });
    } else if (steer) {
      write({ type: "text", turn, text: steer });
    }
    write({ type: "turn.end", turn, outcome: "completed" });
  });
}).on("close", () => process.exit(0));
