// Does what Eliza's dashboard does, with the dashboard's own client, against a running gateway. Arguments: the folder of the client,
// the gateway's URL and its token.

import assert from "node:assert/strict";
import { register } from "node:module";
import { pathToFileURL } from "node:url";

const [dir, url, token] = process.argv.slice(2);
// The client is written for a bundler: its imports have no file extensions, so Node needs this resolver.
register(`data:text/javascript,${encodeURIComponent(`
export async function resolve(name, context, next) {
  if (!name.startsWith(".")) return next(name, context);
  for (const end of ["", ".js", "/index.js"]) {
    try {
      return await next(name + end, context);
    } catch (err) {
      if (!["ERR_MODULE_NOT_FOUND", "ERR_UNSUPPORTED_DIR_IMPORT"].includes(err.code)) throw err;
    }
  }
  return next(name, context);
}`)}`);
const api = pathToFileURL(`${dir}/package/packages/app-core/src/api/`).href;
const { ElizaClient } = await import(`${api}client-base.js`);
await import(`${api}client-chat.js`);

const client = new ElizaClient(url, token);
const until = async (what, holds) => {
  for (let i = 0; i < 600; i++) {
    const v = await holds();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error(`timed out waiting for ${what}`);
};

// Live events.
const live = [];
client.onWsEvent("*", (e) => live.push(e));
client.connectWs();
await until("the socket's status", () => live.find((e) => e.type === "status" && e.state === "running"));

// The list, a conversation, a streamed answer.
assert.deepEqual((await client.listConversations()).conversations, []);
const { conversation } = await client.createConversation("", { metadata: { scope: "general" } });
client.sendWsMessage({ type: "active-conversation", conversationId: conversation.id });
const tokens = [];
const answer = await client.sendConversationMessageStream(conversation.id, "What is 6 * 7?", (chunk, full) => tokens.push(full));
assert.ok(answer.completed);
assert.match(answer.text, /6 \* 7 = 42/);
assert.ok(tokens.length > 3, "the answer was streamed in pieces");
assert.equal(client.normalizeAssistantText(tokens.at(-1)), answer.text);

// A reload shows the same answer, after the statuses that replaced each other.
const again = new ElizaClient(url, token);
const { messages } = await again.getConversationMessages(conversation.id);
assert.deepEqual(messages.map((m) => m.role), ["user", "assistant"]);
assert.ok(messages[1].text.endsWith(answer.text), messages[1].text);
const [listed] = (await again.listConversations()).conversations;
assert.equal(listed.id, conversation.id);
assert.equal(listed.title, "What is 6 * 7?");
await until("the new title on the socket", () => live.find((e) => e.type === "conversation-updated" && e.conversation?.title === "What is 6 * 7?"));
await until("an agent event", () => live.find((e) => e.type === "agent_event"));

// An answer that is not streamed, then rename, truncate, clean up empty conversations, delete.
assert.match((await again.sendConversationMessage(conversation.id, "What is 2 + 2?")).text, /2 \+ 2 = 4/);
assert.equal((await again.renameConversation(conversation.id, "Sums")).conversation.title, "Sums");
await again.truncateConversationMessages(conversation.id, messages[1].id, { inclusive: false });
assert.equal((await again.getConversationMessages(conversation.id)).messages.length, 2);
const empty = (await again.createConversation("empty")).conversation.id;
await again.requestGreeting(empty);
await again.cleanupEmptyConversations({ keepId: conversation.id });
assert.deepEqual((await again.listConversations()).conversations.map((c) => c.id), [conversation.id]);
await again.deleteConversation(conversation.id);
assert.deepEqual((await again.listConversations()).conversations, []);

// A restart is announced on the socket, and the client reconnects by itself.
live.length = 0;
assert.equal((await again.fetch("/api/agent/restart", { method: "POST" })).pendingRestart, false);
await until("the announcement of the restart", () => live.find((e) => e.type === "status" && e.state === "restarting"));
await until("the status after the restart", () => live.slice(live.findIndex((e) => e.state === "restarting")).find((e) => e.type === "status" && e.state === "running"));

// A wrong token leads to the client's own error with the HTTP status.
await assert.rejects(new ElizaClient(url, "wrong").listConversations(), (err) => err.status === 401);
client.disconnectWs();
console.log("all steps passed");
process.exit(0);
