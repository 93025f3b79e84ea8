import { toConsole, type Warn } from "./warn.js";
import type { ClientTool, CreateOptions, NewMessage, Refusal } from "./wire.js";

/** The storage for the outbox across page reloads: the interface of localStorage and sessionStorage. */
export interface OutboxStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A sent message that the gateway hasn't acknowledged. */
export interface Outgoing {
  /** Its idempotency key, usually the message's id. */
  key: string;
  conversation: string;
  message: NewMessage;
  agent?: string;
  queue?: boolean;
  tools?: ClientTool[];
  /** The turn to stop before the message is sent, until the stop is confirmed. */
  stop?: string;
  /** When the user sent it, epoch milliseconds. */
  at: number;
  /** The conversation to create before the message is sent. */
  create?: CreateOptions;
  /** It was passed to a connection: the gateway may have it. */
  tried?: boolean;
  /** Why the gateway refused it. It is sent again only if the user retries. */
  refusal?: Pick<Refusal, "error" | "reason">;
}

/**
 * The unacknowledged messages, oldest first. Each has a separate entry in the storage, so that two pages never overwrite each
 * other's entries. Both may send the same message; its key makes that harmless.
 */
export class Outbox {
  private readonly items = new Map<string, Outgoing>();
  private readonly prefix: string;
  /** The messages that had been refused before this outbox was created. They are stored but not sent. */
  readonly refusedItems: readonly Outgoing[];

  /** name separates gateways and users that share a storage. */
  constructor(private readonly storage: OutboxStorage | undefined, name: string, private readonly warn: Warn = toConsole) {
    this.prefix = `leat:outbox:${name}:`;
    const loaded = this.load();
    for (const item of loaded) if (!item.refusal) this.items.set(item.key, item);
    this.refusedItems = loaded.filter((i) => i.refusal);
  }

  private load(): Outgoing[] {
    const items: Outgoing[] = [];
    for (let i = 0; i < (this.storage?.length ?? 0); i++) {
      const name = this.storage?.key(i);
      if (!name?.startsWith(this.prefix)) continue;
      const item = parse(this.storage?.getItem(name) ?? "");
      if (item && name === this.prefix + item.key) items.push(item);
    }
    return items.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
  }

  /** Stores a message. It returns false if the storage failed, so that a reload would lose the message. */
  add(item: Outgoing): boolean {
    if (item.refusal) this.items.delete(item.key);
    else this.items.set(item.key, item);
    if (!this.storage) return false;
    try {
      this.storage.setItem(this.prefix + item.key, JSON.stringify(item));
      return true;
    } catch (err) {
      this.warn("the message could not be stored and would be lost by a reload:", err);
      return false;
    }
  }

  /** Reads a message from the storage: another page may have changed it, or sent and removed it. */
  readStored(key: string): Outgoing | undefined {
    return parse(this.storage?.getItem(this.prefix + key) ?? "");
  }

  get(key: string): Outgoing | undefined {
    return this.items.get(key);
  }

  get size(): number {
    return this.items.size;
  }

  remove(key: string): void {
    this.items.delete(key);
    this.storage?.removeItem(this.prefix + key);
  }

  /** Returns the conversations that have unacknowledged messages. */
  conversations(): Set<string> {
    return new Set([...this.items.values()].map((i) => i.conversation));
  }

  of(conversation: string): Outgoing[] {
    return [...this.items.values()].filter((i) => i.conversation === conversation);
  }
}

// parse reads an entry. It returns undefined for entries of other programs.
function parse(text: string): Outgoing | undefined {
  try {
    const item = JSON.parse(text) as Partial<Outgoing>;
    if (typeof item.key === "string" && typeof item.conversation === "string" && typeof item.message === "object" && typeof item.at === "number") {
      return item as Outgoing;
    }
  } catch {
    // fall through
  }
  return undefined;
}

/** Returns the page's storage, if there is one that may be used. */
export function pageStorage(): OutboxStorage | undefined {
  try {
    return typeof localStorage === "undefined" ? undefined : localStorage;
  } catch {
    return undefined; // it exists but access is forbidden
  }
}
