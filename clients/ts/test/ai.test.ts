import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";

import { AbstractChat, type ChatState, type UIMessage } from "ai";

import { LeatChatTransport, toUIMessages } from "../src/ai.js";
import { Client, turnText } from "../src/index.js";
import { Gateway } from "./gateway.js";
import { append, begin, end, part, replace, Script, update } from "./script.js";

let gateway: Gateway;
before(async () => void (gateway = await Gateway.start()));
after(() => gateway.stop());

/** A chat like those of the AI SDK's bindings, with its state in plain fields. */
class Chat extends AbstractChat<UIMessage> {
  readonly texts: string[] = [];
  constructor(id: string, client: Client, messages: UIMessage[] = []) {
    const state: ChatState<UIMessage> = {
      status: "ready", error: undefined, messages,
      pushMessage: (m) => void (state.messages = [...state.messages, m]),
      popMessage: () => void (state.messages = state.messages.slice(0, -1)),
      replaceMessage: (i, m) => {
        state.messages = state.messages.with(i, structuredClone(m));
        this.texts.push(text(m));
      },
      snapshot: (x) => structuredClone(x),
    };
    super({ id, transport: new LeatChatTransport({ client }), state });
  }
}

const text = (m: UIMessage | undefined): string => (m?.parts ?? []).filter((p) => p.type === "text").map((p) => p.text).join("\n\n");

function setup(t: TestContext): { client: Client; chat: (id: string, messages?: UIMessage[]) => Chat } {
  const client = new Client({ url: gateway.url });
  t.after(() => client.close());
  return { client, chat: (id, messages) => new Chat(id, client, messages) };
}

// stable removes the fields of a part that only a stream has.
const stable = (m: UIMessage | undefined): unknown => m && {
  id: m.id, role: m.role,
  parts: m.parts.map((p) => Object.fromEntries(Object.entries(p).filter(([k, v]) => v !== undefined && !["state", "providerMetadata", "rawInput"].includes(k) && !(p.type === "reasoning" && k === "id")))),
};

test("a chat sends messages and shows the transcript", async (t) => {
  const { client, chat } = setup(t);
  const c = chat("ai-1");
  await c.sendMessage({ text: "12 * 7" });
  assert.equal(c.status, "ready");
  const state = await client.conversation("ai-1").waitFor((s) => s.turns.every((x) => x.state === "ended") && s.turns.length === 1);
  assert.match(text(c.lastMessage), /12 \* 7 = 84/);
  const tools = c.lastMessage!.parts.filter((p) => p.type === "dynamic-tool");
  assert.deepEqual(tools.map((p) => [p.toolName, p.state, p.input]), [["calculator", "output-available", { expression: "12 * 7" }]]);
  assert.ok(c.lastMessage!.parts.some((p) => p.type === "reasoning"));
  assert.deepEqual(c.messages.map(stable), toUIMessages(state).map(stable));

  await c.sendMessage({ text: "and 2 + 2" });
  assert.match(text(c.lastMessage), /2 \+ 2 = 4/);
  assert.equal(c.messages.length, 4);

  // Another answer, and another question.
  await c.regenerate();
  assert.equal(c.messages.length, 4);
  assert.match(text(c.lastMessage), /2 \+ 2 = 4/);
  await c.sendMessage({ text: "3 + 3", messageId: c.messages[2]!.id });
  assert.match(text(c.lastMessage), /3 \+ 3 = 6/);
  const after = await client.conversation("ai-1").waitFor((s) => s.turns.every((x) => x.state === "ended") && s.turns.length === 2);
  assert.deepEqual(c.messages.map(stable), toUIMessages(after).map(stable));
});

test("replaced output is replaced in the chat, and every kind of part is shown", async (t) => {
  const { client, chat } = setup(t);
  const id = await gateway.create();
  const script = new Script();
  const push = gateway.pushLines(id, "leat", script);
  script.say(...begin, part("p1", "text"), append("p1", "Hello "));
  const state = await client.conversation(id).waitFor((s) => s.turns.length === 1);
  const c = chat(id, toUIMessages({ messages: [] }));
  const resumption = c.resumeStream();
  const waitForText = async (want: string) => {
    while (text(c.lastMessage) !== want) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await waitForText("Hello ");
  assert.equal(c.status, "streaming");
  assert.equal(c.lastMessage?.id, state.turns[0]!.id);
  script.say(append("p1", "world"), part("p2", "status", { join: "\n\n" }), replace("p2", "Looking…"));
  await waitForText("Hello world\n\nLooking…");
  script.say(replace("p2", "Found"), part("p3", "tool", { name: "shell", call: "c1", state: "running" }), append("p3", '{"cmd":"ls"}', "input"), append("p3", "a\n", "output"));
  await waitForText("Hello world\n\nFound");
  script.say(append("p3", "b\n", "output"), update("p3", { state: "done" }), part("p4", "media", { media: { url: "https://example.com/a.png", mime: "image/png" } }), part("p5", "data", { data: { k: [1] } }));
  script.say(replace("p1", "Bye"), part("p6", "tool", { name: "rm", call: "c2", state: "running" }), update("p6", { state: "failed", error: { message: "no" } }), end());
  script.end();
  assert.equal((await push).outcome, "completed");
  await resumption;
  assert.equal(c.status, "ready");
  const finalState = await client.conversation(id).waitFor((s) => s.turns[0]?.state === "ended");
  assert.equal(text(c.lastMessage), "Bye\n\nFound");
  assert.equal(text(c.lastMessage), turnText(finalState, finalState.turns[0]!.id));
  assert.deepEqual(c.messages.map(stable), toUIMessages(finalState).map(stable));
  const kinds = c.lastMessage.parts.map((p) => (p.type === "dynamic-tool" ? `${p.type} ${p.state}` : p.type));
  assert.deepEqual(kinds, ["step-start", "text", "text", "dynamic-tool output-available", "file", "data-leat", "dynamic-tool output-error"]);

  assert.equal(await new LeatChatTransport({ client }).reconnectToStream({ chatId: id }), null);
  assert.equal(await new LeatChatTransport({ client }).reconnectToStream({ chatId: "nowhere" }), null);
});

test("stopping a chat stops the turn", async (t) => {
  const slow = await Gateway.start({ agents: "demo?speed=0.2" });
  t.after(() => slow.stop());
  const client = new Client({ url: slow.url });
  t.after(() => client.close());
  const conversation = await client.create({ id: "ai-stop" }); // the chat finds it there
  const c = new Chat("ai-stop", client);
  const delivery = c.sendMessage({ text: "12 * 7" });
  while (c.status !== "streaming") await new Promise((resolve) => setTimeout(resolve, 5));
  await c.stop();
  await delivery;
  const state = await conversation.waitFor((s) => s.turns[0]?.state === "ended");
  assert.equal(state.turns[0]!.outcome, "cancelled");
});

test("a turn that fails is an error of the chat, never a finished answer", async (t) => {
  const { client, chat } = setup(t);
  const id = await gateway.create();
  const script = new Script();
  const push = gateway.pushLines(id, "leat", script);
  script.say(...begin, part("p1", "text"), append("p1", "Hel"));
  await client.conversation(id).waitFor((s) => s.messages.length === 1);
  const c = chat(id);
  const resumption = c.resumeStream();
  while (text(c.lastMessage) !== "Hel") await new Promise((resolve) => setTimeout(resolve, 5)); // a turn that has ended before is not resumed
  script.say(end({ outcome: "failed", error: { message: "the model is gone" } }));
  script.end();
  await push;
  await resumption;
  assert.equal(c.status, "error");
  assert.equal(c.error?.message, "the model is gone");
  await assert.rejects(new LeatChatTransport({ client, agent: "nobody" }).sendMessages({
    trigger: "submit-message", chatId: id, messageId: undefined, abortSignal: undefined,
    messages: [{ id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] }],
  }), { reason: "unknown_agent" });
});
