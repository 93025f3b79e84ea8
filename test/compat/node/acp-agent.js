// An agent on the official SDK, which checks each message against the protocol's schema. It does what the prompt says.
import { agent, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { Readable, Writable } from "node:stream";
import { randomUUID } from "node:crypto";

const sessions = new Map();
const app = agent({ name: "leat-compat" })
  .onRequest(methods.agent.initialize, (ctx) => ({
    protocolVersion: ctx.params.protocolVersion,
    agentCapabilities: { loadSession: false, promptCapabilities: { image: true } },
  }))
  .onRequest(methods.agent.session.new, (ctx) => {
    const sessionId = randomUUID();
    sessions.set(sessionId, { cwd: ctx.params.cwd, stop: () => {} });
    return { sessionId };
  })
  .onNotification(methods.agent.session.cancel, (ctx) => sessions.get(ctx.params.sessionId)?.stop())
  .onRequest(methods.agent.session.prompt, async (ctx) => {
    const { sessionId, prompt } = ctx.params;
    const update = (u) => ctx.client.notify(methods.client.session.update, { sessionId, update: u });
    const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    const word = prompt.at(-1).text ?? prompt.map((b) => b.type).join(" ");
    if (word === "ask") {
      await update({ sessionUpdate: "tool_call", toolCallId: "c", title: "rm", kind: "execute", status: "pending" });
      const res = await ctx.client.request(methods.client.session.requestPermission, {
        sessionId, toolCall: { toolCallId: "c", title: "rm" },
        options: [{ optionId: "yes", name: "Allow", kind: "allow_once" }, { optionId: "no", name: "Reject", kind: "reject_once" }],
      });
      await update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" });
      await say(JSON.stringify(res.outcome));
    } else if (word === "wait") {
      await say("Waiting.");
      await new Promise((resolve) => { sessions.get(sessionId).stop = resolve; });
      return { stopReason: "cancelled" };
    } else {
      await say("You said: " + word);
    }
    return { stopReason: "end_turn" };
  });

app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
