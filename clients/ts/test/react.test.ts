import { leavePage, place } from "./dom.js";

import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";

import { AssistantRuntimeProvider, type AssistantRuntime, ThreadPrimitive, MessagePrimitive } from "@assistant-ui/react";
import { createElement, memo, StrictMode, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";

import { toThreadMessages, useLeatRuntime } from "../src/assistant-ui.js";
import { Client, visibleText, type Message } from "../src/index.js";
import { useConnection, useConversation, type UseConversation } from "../src/react.js";
import { Gateway } from "./gateway.js";
import { append, begin, part, Script, update } from "./script.js";
import { MemoryStorage } from "./storage.js";

let gateway: Gateway;
before(async () => void (gateway = await Gateway.start()));
after(async () => {
  await gateway.stop();
  await leavePage();
});

function render(t: TestContext, element: ReactNode): HTMLElement {
  const at = place();
  const root = createRoot(at);
  root.render(createElement(StrictMode, null, element));
  t.after(() => root.unmount());
  return at;
}

async function waitUntil(holds: () => boolean): Promise<void> {
  for (const limit = Date.now() + 60_000; !holds();) {
    assert.ok(Date.now() < limit, "the condition didn't become true");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("useConversation renders a conversation, and only its changed messages", async (t) => {
  const client = new Client({ url: gateway.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const id = await gateway.create();
  let current: UseConversation | undefined;
  const draws = new Map<string, number>();
  const Line = memo(function Line({ message }: { message: Message }) {
    draws.set(message.id, (draws.get(message.id) ?? 0) + 1);
    return createElement("p", { className: message.role }, visibleText(message));
  });
  function Chat() {
    current = useConversation(client, id);
    return createElement("section", null, useConnection(client), current.messages.map((m) => createElement(Line, { key: m.id, message: m })));
  }
  assert.match(renderToString(createElement(Chat)), /idle/);

  const at = render(t, createElement(Chat));
  await waitUntil(() => current?.phase === "live");
  assert.match(at.textContent, /connected/);
  await current!.conversation.send("12 * 7");
  await waitUntil(() => current!.turns.length === 1 && !current!.busy);
  await waitUntil(() => /12 \* 7 = 84/.test(at.querySelector("p.assistant")?.textContent ?? ""));
  assert.equal(at.querySelector("p.user")!.textContent, "12 * 7");
  const before = new Map(draws);
  await current!.conversation.inject({ text: "a note" });
  await waitUntil(() => current!.messages.length === 3);
  for (const [message, n] of before) assert.equal(draws.get(message), n, "a message that has not changed is drawn again");
});

test("assistant-ui shows a conversation and sends its commands", async (t) => {
  const client = new Client({ url: gateway.url, storage: new MemoryStorage() });
  t.after(() => client.close());
  const c = await client.create();
  let runtime: AssistantRuntime | undefined;
  const Text = () => createElement("div", null, createElement(MessagePrimitive.Parts));
  function Chat() {
    runtime = useLeatRuntime(client, c.id);
    return createElement(AssistantRuntimeProvider, { runtime, children: createElement(ThreadPrimitive.Messages, { components: { Message: Text } }) });
  }
  const at = render(t, createElement(Chat));
  const thread = () => runtime!.thread.getState();
  await waitUntil(() => runtime !== undefined && !thread().isLoading);
  runtime!.thread.append({ role: "user", content: [{ type: "text", text: "12 * 7" }] });
  await waitUntil(() => thread().messages[1]?.status?.type === "complete" && !thread().isRunning);
  await waitUntil(() => /12 \* 7 = 84/.test(at.textContent)); // the page is drawn after the state
  const [question, answer] = thread().messages;
  assert.equal(question!.role, "user");
  assert.deepEqual(answer!.status, { type: "complete", reason: "stop" });
  const tool = answer!.content.find((p) => p.type === "tool-call");
  assert.deepEqual([tool?.toolName, tool?.args, tool?.result], ["calculator", { expression: "12 * 7" }, "12 × 7 = 84\n"]);

  // A new answer, an edit.
  runtime!.thread.startRun({ parentId: question!.id });
  await waitUntil(() => thread().messages.length === 2 && thread().messages[1]!.id !== answer!.id && !thread().isRunning);
  runtime!.thread.append({ role: "user", content: [{ type: "text", text: "3 + 3" }], parentId: null, sourceId: question!.id });
  await waitUntil(() => thread().messages.length === 2 && !thread().isRunning && /3 \+ 3 = 6/.test(at.textContent));

  // A tool that needs approval, and a stop.
  const script = new Script();
  // A stop may end the producer's connection at any moment.
  const push = gateway.pushLines(c.id, "leat", script).catch(() => ({ outcome: "cancelled" }));
  script.say(...begin, part("p1", "tool", { name: "rm", call: "c1", state: "running" }), append("p1", '{"path":"/x"}', "input"),
    { type: "turn.wait", turn: "t", request: { id: "r1", kind: "approval", part: "p1", prompt: "May I?" } });
  await waitUntil(() => thread().messages.at(-1)?.status?.type === "requires-action");
  const toolCall = thread().messages.at(-1)!.content.find((p) => p.type === "tool-call");
  assert.equal(toolCall?.approval?.prompt, "May I?");
  void runtime!.thread.getMessageById(thread().messages.at(-1)!.id).getMessagePartByToolCallId("c1").respondToToolApproval({ approved: false });
  await waitUntil(() => c.state.turns.at(-1)!.requests === undefined);
  script.say(update("p1", { state: "denied" }), part("p2", "text"), append("p2", "as you like"));
  await waitUntil(() => /as you like/.test(at.textContent));
  runtime!.thread.cancelRun();
  await waitUntil(() => !thread().isRunning);
  assert.deepEqual(thread().messages.at(-1)!.status, { type: "incomplete", reason: "cancelled" });
  script.end();
  assert.equal((await push).outcome, "cancelled");
  assert.equal(c.state.turns.at(-1)!.outcome, "cancelled");
});

test("assistant-ui shows pending messages and failed turns", (t) => {
  const client = new Client({ url: "http://127.0.0.1:1", storage: new MemoryStorage() });
  t.after(() => client.close());
  const c = client.conversation("c");
  void c.send({ id: "u1", parts: [{ kind: "text", text: "look" }, { kind: "media", media: { url: "data:image/png;base64,", mime: "image/png" } }] });
  const [optimistic] = toThreadMessages(c.state);
  assert.deepEqual([optimistic?.id, optimistic?.role, optimistic?.metadata?.isOptimistic, optimistic?.metadata?.custom], ["u1", "user", true, { pending: true }]);
  assert.deepEqual(optimistic?.content, [{ type: "text", text: "look" }, { type: "image", image: "data:image/png;base64," }]);
  const [failed] = toThreadMessages({
    messages: [{ id: "m", role: "assistant", turn: "t", ended: true, parts: [{ id: "p", kind: "text", text: "Hel" }] }],
    turns: [{ id: "t", state: "ended", outcome: "failed", error: { message: "the model is gone" } }], pending: [],
  });
  assert.deepEqual(failed?.status, { type: "incomplete", reason: "error", error: "the model is gone" });
});
