// Signs of what agents do outside of conversations: heartbeats, and agent events that belong to no conversation.

import { amount, flag, type Fields, fieldsOf, short, text } from "./fields";

export interface Beat {
  id: string; at: number; status: string; preview: string; channel: string;
  /** Milliseconds. */
  duration?: number;
  hasMedia: boolean; isTyping: boolean;
  /** Empty for a beat outside of conversations. */
  conversation: string;
}

/** The number of entries that are kept: a screen or two. Older ones only say what is over. */
export const maxBeats = 50;

export function onBeat(beats: readonly Beat[], f: Fields): readonly Beat[] {
  const payload = fieldsOf(f["payload"]);
  const id = text(f["eventId"]);
  const at = amount(f["ts"]);
  if (!payload || !id || at === undefined || flag(payload["silent"]) || beats.some((b) => b.id === id)) return beats;
  const conversation = text(f["roomId"]) ?? "";
  const isEvent = f["type"] === "agent_event";
  if (conversation && (isEvent || payload["channel"] === "client_chat")) return beats; // this page shows it in the conversation
  const status = isEvent ? short(f["stream"]) : short(payload["status"]);
  if (!status) return beats;
  const duration = amount(payload["durationMs"]);
  const beat: Beat = {
    id, at, status, conversation, ...(duration !== undefined && { duration }),
    preview: short(payload["preview"]) || short(payload["text"]) || short(payload["reason"]) || (isEvent ? short(JSON.stringify(payload)) : ""),
    channel: short(payload["channel"]) || short(payload["to"]), hasMedia: flag(payload["hasMedia"]), isTyping: payload["indicatorType"] === "typing",
  };
  // Of a conversation only the newest is kept: each answer has several, and the conversation shows more.
  return [beat, ...beats.filter((b) => !conversation || b.conversation !== conversation)].slice(0, maxBeats);
}
