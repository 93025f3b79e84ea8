import type { LeatError } from "./errors.js";
import type { ClientFrame, ServerFrame } from "./wire.js";

/**
 * One connection to the gateway, from its making to its end. Whatever carries it, it speaks the frames of the protocol's
 * socket; so what stands above knows one way only.
 */
export interface Link {
  send(frame: ClientFrame): void;
  /** Ends the connection; it tells nothing any more. */
  close(): void;
}

export interface LinkEvents {
  frame(frame: ServerFrame): void;
  /** Something came, though no frame: the connection lives. */
  alive(): void;
  /** It has ended, or could not be made. It is told once, and nothing after it. */
  closed(why: LeatError): void;
}

/** Makes a connection. token is empty where there is none. */
export type Dial = (token: string, events: LinkEvents) => Link;
