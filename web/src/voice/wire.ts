// The frames of the voice socket. Audio is binary: signed 16-bit mono PCM, little-endian; a single zero byte is the flush.

/** What the gateway does: it waits for the person, the agent works, or the answer is spoken. */
export type GatewayState = "listening" | "thinking" | "speaking";

/** A text frame of the gateway. Samples count from 0 in each generation; each flush begins the next generation. */
export type ServerFrame =
  | { type: "ready"; generation: number; speech: boolean; recognition: boolean; detector?: boolean }
  | { type: "state"; state: GatewayState; generation: number }
  | { type: "transcript"; text: string; final: boolean }
  | { type: "caption"; turn: string; start: number; sample: number; generation: number; text: string }
  | { type: "stream_done"; generation: number; samples: number }
  | { type: "error"; code: string; message: string; action?: string }
  | { type: "pong" };

/** A text frame of the page. */
export type ClientFrame =
  | { type: "start" }
  | { type: "stop" }
  | { type: "interrupt"; played: number; generation: number }
  | { type: "played"; samples: number; generation: number }
  | { type: "ping" };

/** Close codes with a meaning of their own. After all others the page reconnects. */
export const closeCodes = { noAccess: 1008, busy: 1013, expired: 4001, idle: 4008, replaced: 4009 } as const;

/** The code with which the page closes a connection that broke the protocol. */
export const protocolFault = 4400;

/** Parses a text frame. It returns undefined for a type that this page doesn't know, so that a newer gateway can add some. */
export function parse(text: string): ServerFrame | undefined {
  const frame = JSON.parse(text) as ServerFrame;
  return types.has(frame.type) ? frame : undefined;
}

const types = new Set<string>(["ready", "state", "transcript", "caption", "stream_done", "error", "pong"] satisfies ServerFrame["type"][]);
