import type { LeatError } from "./errors.js";
import type { ClientFrame, ServerFrame } from "./wire.js";

/** One connection to the gateway. Every transport uses the frames of the protocol's socket, so that callers have one interface. */
export interface Link {
  send(frame: ClientFrame): void;
  /** Closes the connection; no callback follows. */
  close(): void;
}

export interface LinkEvents {
  frame(frame: ServerFrame): void;
  /** Data arrived that isn't a frame: the connection is alive. */
  alive(): void;
  /** The connection has ended, or couldn't be opened. It is called once, and last. */
  closed(cause: LeatError): void;
}

/** Opens a connection. token is empty if there is none. */
export type Dial = (token: string, events: LinkEvents) => Link;
