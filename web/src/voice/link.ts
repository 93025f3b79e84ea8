// The connection to the gateway's voice socket: it reconnects after a failure, and notices one that is dead.

import { closeCodes } from "./wire";

/** The part of WebSocket that a link uses. Tests have one of their own. */
export type Socket = Pick<WebSocket, "send" | "close" | "binaryType" | "onopen" | "onmessage" | "onclose"> & { readonly readyState: number };

interface LinkOptions {
  connect: () => Socket;
  onOpen: () => void;
  onMessage: (data: string | ArrayBuffer) => void;
  /** The connection is lost, and the link reconnects. */
  onLost: () => void;
  /** The gateway has ended the connection for good, or has refused it. */
  onEnd: (code: number) => void;
}

/** The delay before the first attempt to reconnect, and the longest one. Milliseconds. */
const firstDelay = 300;
const maxDelay = 8000;
/** A connection is probed after this much silence, and given up after twice as much. Milliseconds. */
const silence = 15_000;

const isOpen = 1; // WebSocket.OPEN, which doesn't exist in Node

/** After these codes a new connection would end the same way. */
const final = new Set<number>(Object.values(closeCodes));

export class Link {
  private socket: Socket | undefined;
  private attempts = 0; // failed in a row
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private probeTimer: ReturnType<typeof setInterval> | undefined;
  private lastFrame = 0;

  constructor(private readonly options: LinkOptions) {}

  open(): void {
    clearTimeout(this.retryTimer);
    const socket = this.options.connect();
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.lastFrame = Date.now();
      this.probeTimer = setInterval(() => this.probe(), silence);
      this.options.onOpen();
    };
    socket.onmessage = ({ data }) => {
      this.lastFrame = Date.now();
      this.attempts = 0;
      this.options.onMessage(data as string | ArrayBuffer);
    };
    socket.onclose = ({ code }) => {
      this.detach();
      if (final.has(code)) this.options.onEnd(code);
      else this.reconnect();
    };
  }

  /** Sends a frame, or drops it without a connection. */
  send(data: string | ArrayBuffer): void {
    if (this.socket?.readyState === isOpen) this.socket.send(data);
  }

  /** Gives the connection up and reconnects. */
  restart(code: number): void {
    this.drop(code);
    this.reconnect();
  }

  close(): void {
    clearTimeout(this.retryTimer);
    this.drop(1000);
  }

  private reconnect(): void {
    const delay = Math.min(maxDelay, firstDelay * 2 ** this.attempts++);
    // Attempts are spread, so that the pages of many people don't return at the same moment.
    this.retryTimer = setTimeout(() => this.open(), delay * (0.75 + Math.random() / 2));
    this.options.onLost();
  }

  private probe(): void {
    const quiet = Date.now() - this.lastFrame;
    if (quiet >= 2 * silence) this.restart(4000);
    else if (quiet >= silence / 2) this.send(JSON.stringify({ type: "ping" }));
  }

  private drop(code: number): void {
    const { socket } = this;
    this.detach();
    socket?.close(code);
  }

  private detach(): void {
    clearInterval(this.probeTimer);
    if (this.socket) this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket = undefined;
  }
}
