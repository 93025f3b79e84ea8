// The protocol of docs/plugins.md, version 1, in as much as an agent needs it. Without dependencies. Types are those of
// the defaults, so that a Node that does not read TypeScript yet (before 22.18) runs it as JavaScript.
import { createInterface } from "node:readline";

const aMessage = { id: "", role: "", text: "" };
const aTurn = { turn: "", conversation: "", key: "", message: aMessage, history: [aMessage] };
const aReply = {
  /** Aborted when the turn is stopped: nobody reads on. */
  signal: new AbortController().signal,
  /** Tells a status, which takes the place of the one before; with merge "append" it extends it. */
  callback: async ({ text = "", source = "plugin", merge = "replace" }) => {},
  /** Says more of the answer. */
  text: async (text = "") => {},
};

function send(line = {}) {
  return new Promise((resolve, reject) => {
    process.stdout.write(JSON.stringify(line) + "\n", (err) => (err ? reject(err) : resolve(undefined)));
  });
}

/** Answers turns, as many at once as come, until the gateway closes the input. */
export async function serve(handle = async (turn = aTurn, reply = aReply) => {}) {
  const running = new Map([["", new AbortController()]]);

  async function answer(ask = aTurn) {
    const { turn } = ask;
    const controller = new AbortController();
    running.set(turn, controller);
    try {
      await handle(ask, {
        signal: controller.signal,
        callback: async ({ text = "", source = "plugin", merge = "replace" }) => {
          await send({ type: "callback", turn, text, source, merge });
        },
        text: async (text = "") => {
          await send({ type: "text", turn, text });
        },
      });
      await send({ type: "turn.end", turn, outcome: controller.signal.aborted ? "cancelled" : "completed" });
    } catch (err) {
      const message = err instanceof Error ? err.message : String(err);
      await send({ type: "turn.end", turn, outcome: "failed", error: { message } });
    } finally {
      running.delete(turn);
    }
  }

  for await (const line of createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    switch (told.type) {
      case "hello":
        await send({ type: "ready", protocol: 1 });
        break;
      case "turn":
        void answer(told);
        break;
      case "cancel":
        running.get(told.turn)?.abort();
        break;
      case "error":
        console.error("refused:", told.message);
    }
  }
}
