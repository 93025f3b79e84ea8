// The events, documents and frames of the native protocol, leat/1 (docs/protocol.md, docs/protocol.schema.json).
// Readers must ignore unknown keys, frame types and event types.

export type Role = "user" | "assistant" | "system";
export type PartKind = "text" | "reasoning" | "tool" | "status" | "media" | "data";
export type Field = "text" | "input" | "output" | "stderr";
export type PartState = "running" | "done" | "failed" | "denied";
export type MessageState = "started" | "queued" | "steered" | "joined" | "rejected";
export type Outcome = "completed" | "failed" | "cancelled" | "interrupted";
export type TurnState = "queued" | "running" | "waiting" | "ended";
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Metadata = { [key: string]: Json };

export interface Author { id?: string; name?: string }
export interface Media { url?: string; mime?: string; name?: string; size?: number; alt?: string }
export interface Failure { code?: string; message: string; retryable?: boolean }
export interface Sum { length: number; crc: number }
export interface Upstream { run?: string; cursor?: string }

/** A turn's total, in tokens. */
export interface Usage {
  model?: string; input?: number; output?: number; cache_read?: number; cache_write?: number; reasoning?: number; cost?: number;
}

/** A question that a turn waits on. */
export interface Request {
  id: string; kind: "approval" | "input"; tool?: string; part?: string; prompt?: string; options?: string[]; data?: Json;
  /** Epoch milliseconds. */
  at?: number;
}

export interface Answer { id: string; decision?: string; text?: string; by?: string }

/**
 * A question of a turn with its answer, without the question's details and options. prompt and text have at most 1,000 characters.
 * at is the time of the answer, in epoch milliseconds.
 */
export interface AnsweredRequest extends Answer { kind: Request["kind"]; tool?: string; part?: string; prompt?: string; at?: number }

/** A part of a message that is sent or added as a whole. */
export interface NewPart { id?: string; kind: PartKind; text?: string; media?: Media; data?: Json; history?: string[] }

interface Base {
  seq: number;
  /** Seq of the first event that was merged into this one. */
  first?: number;
  /** Arrival, epoch milliseconds. */
  at?: number;
  turn?: string;
}
interface OfMessage extends Base { message: string }
interface OfPart extends OfMessage { part: string }
interface OfTurn extends Base { turn: string }
interface NoteFields { note?: string; extend?: boolean; history?: string[] }

export interface MessageAdd extends OfMessage { type: "message.add"; role: Role; author?: Author; source?: string; parts?: NewPart[] }
export interface MessageStart extends OfMessage { type: "message.start"; role: Role; author?: Author; source?: string }
export interface MessageUpdate extends OfMessage { type: "message.update"; state: MessageState; reason?: string }
export interface MessageEnd extends OfMessage { type: "message.end"; reason?: string }
export interface TurnBegin extends OfTurn { type: "turn.queue" | "turn.start"; agent?: string; answers?: string; parent?: string; source?: string }
export interface TurnUpdate extends OfTurn { type: "turn.update"; phase?: string; step?: number; model?: string; upstream?: Upstream }
export interface TurnWait extends OfTurn { type: "turn.wait"; request: Request }
export interface TurnResume extends OfTurn { type: "turn.resume"; answer: Answer }
export interface TurnEnd extends OfTurn { type: "turn.end"; outcome: Outcome; reason?: string; by?: string; error?: Failure; usage?: Usage }
export interface PartStart extends OfPart {
  type: "part.start"; kind: PartKind; name?: string; call?: string; mediaType?: string; join?: string; state?: PartState;
  title?: string; media?: Media; data?: Json;
}
/** The text is inserted at offset, in bytes of UTF-8. */
export interface PartAppend extends OfPart, NoteFields { type: "part.append"; offset: number; field?: Field; text: string; more?: boolean }
export interface PartReplace extends OfPart, NoteFields { type: "part.replace"; field?: Field; text: string; more?: boolean }
export interface PartUpdate extends OfPart {
  type: "part.update"; state?: PartState; name?: string; title?: string; media?: Media; error?: Failure; data?: Json;
}
export interface PartEnd extends OfPart { type: "part.end"; sums?: { [field in Field]?: Sum } }
export interface ConversationUpdate extends Base { type: "conversation.update"; title?: string; metadata?: Metadata }
export interface ConversationDelete extends Base { type: "conversation.delete" }

/** An entry of a conversation's log, or several merged into one. */
export type Event =
  | MessageAdd | MessageStart | MessageUpdate | MessageEnd
  | TurnBegin | TurnUpdate | TurnWait | TurnResume | TurnEnd
  | PartStart | PartAppend | PartReplace | PartUpdate | PartEnd
  | ConversationUpdate | ConversationDelete;

/** A part of a message in a snapshot. Empty and zero values are omitted. */
export interface Part {
  id: string; kind: PartKind; name?: string; call?: string; mediaType?: string; join?: string; state?: PartState; title?: string;
  media?: Media; error?: Failure; data?: Json; at?: number; endAt?: number; ended?: boolean;
  text?: string; input?: string; output?: string; stderr?: string;
  /** The notes of a status part, oldest first. */
  history?: string[];
}

export interface Message {
  id: string; turn?: string; role: Role; author?: Author; source?: string; at?: number; endAt?: number;
  state?: MessageState; stateTurn?: string; stateReason?: string; ended?: boolean; stopReason?: string; parts: Part[];
}

export interface Turn {
  /** The origin of a turn that its upstream began by itself; absent in other turns. Such a turn is outside the queue. */
  source?: string;
  id: string; agent?: string; answers?: string; parent?: string; state: TurnState; outcome?: Outcome; reason?: string; by?: string; error?: Failure;
  usage?: Usage; phase?: string; step?: number; model?: string; upstream?: Upstream; requests?: Request[];
  /** The requests that were open when they were answered, in the order of the answers: the newest 100. */
  answered?: AnsweredRequest[];
  queuedAt?: number; startedAt?: number; endedAt?: number; firstSeq?: number; endSeq?: number;
}

/** A range of a conversation's messages, at seq. */
export interface Snapshot { seq?: number; title?: string; metadata?: Metadata; messages: Message[]; turns: Turn[] }

/** Messages older than a snapshot's window. */
export interface Page { conversation: string; epoch: string; seq: number; first?: string; earlier?: boolean; transcript: Snapshot }

export interface NewMessage { id?: string; role?: Role; text?: string; parts?: NewPart[]; author?: Author; source?: string }

/** A tool that this client runs if the agent asks for it: by a request of the turn with the tool's name and its arguments as data. */
export interface ClientTool { name: string; description?: string; parameters?: Record<string, unknown> }

export type Command =
  | { type: "send"; key?: string; message: NewMessage; agent?: string; queue?: boolean; tools?: ClientTool[] }
  | { type: "stop"; key?: string; turn: string }
  | { type: "answer"; key?: string; turn: string; request: string; decision?: string; text?: string }
  | { type: "inject"; key?: string; message: NewMessage }
  | { type: "truncate"; key?: string; after?: string; keepFiles?: boolean }
  | { type: "restore"; key?: string; seq: number }
  | { type: "update"; key?: string; title?: string; metadata?: Metadata }
  | { type: "share"; key?: string; subject: string; access: Access }
  | { type: "unshare"; key?: string; subject: string }
  | { type: "delete"; key?: string };

/** The access to a shared conversation; write includes read. */
export type Access = "read" | "write";

/** Confirms a command; seq is the seq of its event. */
export interface Ack {
  seq: number; message?: string; turn?: string; state?: MessageState; repeated?: boolean; already_ended?: boolean; deleted?: number;
}

export interface CreateOptions { id?: string; title?: string; agent?: string; metadata?: Metadata; key?: string }

/**
 * steers: a running turn accepts further messages. sessions: an operator can list the sessions of its upstream and attach one.
 * description and suggestions introduce the agent: in one line, and with messages to begin with. state is its last known health; reason,
 * for admins, says why it isn't up.
 */
export interface Agent {
  name: string; kind: string; default?: boolean; steers?: boolean; sessions?: boolean; description?: string; suggestions?: string[];
  state?: "up" | "down" | "failing" | "starting"; reason?: string;
}

/**
 * A conversation in a list. owner and access are set for another user's conversation, grants for the user's own shared one. Clients sort
 * and hide conversations by the keys pinned and archived of the metadata.
 */
export interface Summary {
  id: string; title: string; agent?: string; createdAt: string; updatedAt: string; metadata?: Metadata;
  owner?: string; access?: Access; grants?: { subject: string; access: Access }[];
  /** An agent has written after read, the last seq that the user has read. */
  unread?: boolean; read?: number;
  /** A turn waits for a person. */
  waiting?: boolean;
}

export type ClientFrame =
  | { type: "auth"; token: string }
  | { type: "subscribe"; id: string; conversation: string; after?: string }
  | { type: "unsubscribe"; conversation: string }
  | { type: "command"; id: string; conversation: string; command: Command }
  | { type: "create"; id: string; create: CreateOptions }
  | { type: "ping" } | { type: "pong" };

/** A report that a finished text differs from the gateway's; it doesn't contain the text. */
export interface Mismatch {
  client?: string; turn?: string; message: string; part: string; field?: Field; seq?: number; have: Sum; want: Sum;
}

export type SnapshotFrame = {
  type: "snapshot"; conversation: string; cursor: string; epoch: string; reset: true; first?: string; earlier?: boolean; transcript: Snapshot;
};
export type BatchFrame = { type: "batch"; conversation: string; cursor: string; seq: number; events: Event[] };
export type AckFrame = { type: "ack"; id?: string; conversation: string; created?: boolean } & Partial<Ack>;
export type Refusal = { id?: string; conversation?: string; error: string; reason?: string; retryAfter?: number };

export type ServerFrame =
  | { type: "hello"; protocol: string; expires?: number }
  | { type: "subscribed"; id?: string; conversation: string; turns: Turn[]; head?: number }
  | SnapshotFrame | BatchFrame | AckFrame
  | ({ type: "rejected" } & Refusal)
  | ({ type: "error" } & Refusal)
  /** The token expires soon: send a new one, which authenticated confirms. Epoch milliseconds. */
  | { type: "expiring"; expires?: number } | { type: "authenticated"; id?: string; expires?: number }
  | { type: "ping" } | { type: "pong" };
