// Saves a conversation as a file: Markdown to read, JSON for programs. Older messages are loaded first, so that the file is
// complete.

import { type Conversation, type Message, type Part, visibleText } from "@leat/client";

import { save } from "../ui/save";

async function loadAll(conversation: Conversation): Promise<void> {
  while (conversation.state.earlier) await conversation.loadEarlier(200);
}

export async function exportJSON(conversation: Conversation): Promise<void> {
  await loadAll(conversation);
  const { id, title, metadata, messages, turns } = conversation.state;
  save(JSON.stringify({ id, title, metadata, messages, turns }, null, 2), "application/json", `${name(title)}.json`);
}

export async function exportMarkdown(conversation: Conversation): Promise<void> {
  await loadAll(conversation);
  save(markdown(conversation.state.title, conversation.state.messages), "text/markdown", `${name(conversation.state.title)}.md`);
}

export function markdown(title: string, messages: readonly Message[]): string {
  const blocks = [`# ${title || "Conversation"}`];
  for (const m of messages) {
    const author = m.role === "user" ? "You" : m.author?.name ?? "Agent";
    blocks.push(`## ${author}${m.at === undefined ? "" : `, ${new Date(m.at).toISOString()}`}`);
    const tools = m.parts.filter((p) => p.kind === "tool").map(tool);
    const media = m.parts.filter((p) => p.kind === "media" && p.media?.url && !p.media.url.startsWith("data:")).map((p) => `[${p.media!.name ?? p.media!.alt ?? "file"}](${p.media!.url})`);
    blocks.push(...tools, visibleText(m), ...media);
  }
  return `${blocks.filter(Boolean).join("\n\n")}\n`;
}

function tool(p: Part): string {
  const fence = "`".repeat(Math.max(3, ...[...`${p.input ?? ""}${p.output ?? ""}`.matchAll(/`+/g)].map((m) => m[0].length + 1)));
  const block = (text: string | undefined) => (text ? `\n\n${fence}\n${text.replace(/\n$/, "")}\n${fence}` : "");
  return `*Tool ${p.name ?? ""}, ${p.state ?? "done"}*${block(p.input)}${block(p.output)}${block(p.stderr)}`;
}

const name = (title: string): string => title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "conversation";
