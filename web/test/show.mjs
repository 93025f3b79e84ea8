// A plugin that plays an agent of a team, for the pictures in docs/images.

import { serve } from "./plugin.mjs";

const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

/** Streams a text like a model: a few characters at a time, with a varying pace. */
async function say(turn, message, part, kind, text, pace = 22) {
  turn.start(message, part, kind);
  const pieces = text.match(/[\s\S]{1,5}/g);
  for (const [i, piece] of pieces.entries()) {
    if (!turn.going()) return;
    turn.add(message, part, piece);
    await sleep(pace * (1 + 0.6 * Math.sin(i / 9)));
  }
  turn.close(message, part);
}

async function tool(turn, part, name, input, output, took) {
  turn.start("m", part, "tool", { name, call: part });
  const text = JSON.stringify(input);
  for (const piece of text.match(/[\s\S]{1,8}/g)) {
    turn.add("m", part, piece, "input");
    await sleep(15);
  }
  const lines = output.split(/(?<=\n)/);
  for (const line of lines) {
    await sleep(took / lines.length);
    turn.add("m", part, line, "output");
  }
  turn.set("m", part, { state: "done" });
  turn.close("m", part);
}

const answer = `The backup itself is quick. What takes the time is **the check after it**, which reads every pack again since last week's change:

| step | last week | now |
|---|--:|--:|
| backup | 4 min | 4 min |
| check | 3 min | 96 min |

So it is the \`--read-data\` flag in the unit file. Checking a tenth of the packs each night finds the same faults within ten days:

\`\`\`sh
restic check --read-data-subset=10%
\`\`\`
`;

serve({
  async Why(turn) {
    await say(turn, "m", "r", "reasoning", "The duration jumped on one day, so something changed then. The timer's log and the unit file should show it.");
    await tool(turn, "t1", "bash", { command: "journalctl -u backup --since -8d -o cat | grep took" }, "backup took 4m12s, check took 3m02s\nbackup took 4m09s, check took 2m58s\nbackup took 4m15s, check took 96m40s\n", 2600);
    await tool(turn, "t2", "read", { path: "/etc/systemd/system/backup.service" }, "[Service]\nExecStart=/usr/local/bin/backup\nExecStartPost=restic check --read-data\n", 240);
    await say(turn, "m", "x", "text", answer);
    turn.done("m");
    turn.end({ usage: { model: "large-2", input: 2310, output: 248 } });
  },
  async Remove(turn) {
    await say(turn, "m", "x", "text", "There are 41 snapshots; 12 are older than 30 days. I would keep the last seven of each host.");
    turn.emit({ type: "turn.wait", request: { id: `q-${turn.turn}`, kind: "approval", tool: "bash", prompt: "Remove 12 snapshots for good?", data: { command: "restic forget --keep-within 30d --keep-last 7 --prune", host: "db-1" } } });
    const a = await turn.answer();
    await say(turn, "m", "y", "text", a?.decision === "approve" ? "Done: 12 snapshots are gone, 38 GB are free again." : "Then they stay.");
    turn.done("m");
    turn.end({ usage: { model: "large-2", input: 640, output: 41 } });
  },
  async Summarise(turn) {
    await say(turn, "m", "x", "text", "All hosts were backed up last night. ".repeat(Number(turn.rest) || 2), 30);
    turn.done("m");
    turn.end({ usage: { model: "large-2", input: 210, output: 20 } });
  },
  async Fetch(turn) {
    turn.text("m", "x", "I ask the host. ");
    turn.end({ outcome: "failed", error: { code: "overloaded", message: "The model is overloaded.", retryable: true } });
  },
});
