// An agent that asks which colour the user wants, as a plugin of Leat.
import { createInterface } from "node:readline";
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
createInterface({ input: process.stdin }).on("line", (text) => {
  const line = JSON.parse(text);
  if (line.type === "hello") say({ type: "ready", protocol: 1 });
  if (line.type === "turn") say({ type: "turn.wait", turn: line.turn, request: { id: "q", kind: "input", prompt: "Which colour?", options: ["red", "blue"] } });
  if (line.type === "answer") {
    say({ type: "text", turn: line.turn, text: `You chose ${line.answer.decision || line.answer.text}.` });
    say({ type: "turn.end", turn: line.turn, outcome: "completed" });
  }
});
