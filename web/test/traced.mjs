// A plugin whose answers have every kind of span, for the trace in the inspector.

import { serve } from "./plugin.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

/** Begins a tool whose arguments arrive in two pieces. */
function call(turn, part, name, input) {
  const text = JSON.stringify(input);
  turn.start("m", part, "tool", { name, call: `call-${part}` });
  turn.add("m", part, text.slice(0, 8), "input");
  turn.add("m", part, text.slice(8), "input");
  turn.set("m", part, { state: "running" });
}

function finish(turn, part, output, fields = {}) {
  if (output) turn.add("m", part, output, "output");
  turn.set("m", part, { state: "done", ...fields });
  turn.close("m", part);
}

serve({
  // work DIR: three steps, with parallel tools, a subagent, a status and a question. Each waits until the test creates a file.
  async work(turn) {
    turn.text("m", "r", "The duration jumped on one day. The log of the timer and the unit file should show why.", "reasoning");
    call(turn, "a", "bash", { command: "journalctl -u backup --since -8d" });
    await sleep(30);
    call(turn, "b", "read_file", { path: "/etc/systemd/system/backup.service" });
    await turn.gate("tools");
    finish(turn, "b", "[Service]\nExecStartPost=restic check --read-data\n");
    await sleep(30);
    finish(turn, "a", "backup took 4m12s, check took 3m02s\nbackup took 4m15s, check took 96m40s\n");
    await sleep(30);
    turn.start("m", "s", "status");
    turn.replace("m", "s", "Asking the reader…", { note: "Asking the reader…" });
    const emit = turn.inner(`inner-${turn.turn}`);
    emit({ type: "turn.start", agent: "reader", parent: turn.turn });
    emit({ type: "message.start", message: "n", role: "assistant" });
    emit({ type: "part.start", message: "n", part: "t", kind: "tool", name: "search", call: "s1" });
    emit({ type: "part.append", message: "n", part: "t", field: "input", text: '{"query":"read-data"}' });
    await sleep(30);
    emit({ type: "part.update", message: "n", part: "t", state: "failed", error: { code: "no_index", message: "no index of the manual" } });
    emit({ type: "part.end", message: "n", part: "t" });
    emit({ type: "part.start", message: "n", part: "x", kind: "text" });
    emit({ type: "part.append", message: "n", part: "x", text: "The manual: --read-data reads every pack." });
    emit({ type: "part.end", message: "n", part: "x" });
    emit({ type: "message.end", message: "n" });
    emit({ type: "turn.end", outcome: "completed", usage: { model: "small-1", input: 310, output: 24 } });
    turn.replace("m", "s", "Asked the reader", { note: "Asked the reader" });
    turn.close("m", "s");
    call(turn, "d", "edit", { path: "/etc/systemd/system/backup.service", flag: "--read-data-subset=10%" });
    turn.emit({ type: "turn.wait", request: { id: `q-${turn.turn}`, kind: "approval", tool: "edit", part: "d", prompt: "May I change the unit file?" } });
    const answer = await turn.answer();
    finish(turn, "d", "", answer?.decision === "deny" ? { state: "denied" } : {});
    await turn.gate("end");
    await sleep(30);
    turn.text("m", "x", "The check after the backup reads every pack since last week. **One flag** made it slow.");
    turn.done("m");
    turn.end({ usage: { model: "large-2", input: 2310, output: 248, cache_read: 1900, cost: 0.0312 } });
  },
  // tools N: N tools, each a step.
  async tools(turn) {
    for (let i = 0; i < Number(turn.rest); i++) turn.tool("m", `t${i}`, `tool_${i}`, { input: { n: i }, output: `result ${i}\n` });
    turn.done("m");
    turn.end();
  },
});
