import { toConsole, type Warn } from "./warn.js";
import type { CreateOptions, NewMessage, Refusal } from "./wire.js";

/** Where the outbox is kept across page reloads: what localStorage and sessionStorage are. */
export interface OutboxStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A message that a person has sent and the gateway has not acknowledged. */
export interface Outgoing {
  /** Its idempotency key, and mostly the message's id. */
  key: string;
  conversation: string;
  message: NewMessage;
  agent?: string;
  queue?: boolean;
  /** The turn that is to be stopped for it, and is not yet as far as is known. */
  stop?: string;
  /** When it was sent, epoch milliseconds. */
  at: number;
  /** The conversation that has to be made before it. */
  create?: CreateOptions;
  /** It was handed to a connection: the gateway may have it. */
  tried?: boolean;
  /** Why the gateway refused it; then it goes out again only if a person says so. */
  refusal?: Pick<Refusal, "error" | "reason">;
}

/**
 * The messages that are on their way, oldest first. Each has an entry of its own in the storage, so that two pages never
 * overwrite each other's; both may send one, which its key makes harmless.
 */
export class Outbox {
  private readonly items = new Map<string, Outgoing>();
  private readonly prefix: string;
  /** Those that the gateway had refused when this was made: they are kept, and not on their way. */
  readonly refused: readonly Outgoing[];

  /** name tells apart gateways and people that share a storage. */
  constructor(private readonly storage: OutboxStorage | undefined, name: string, private readonly warn: Warn = toConsole) {
    this.prefix = `leat:outbox:${name}:`;
    const all = this.load();
    for (const item of all) if (!item.refusal) this.items.set(item.key, item);
    this.refused = all.filter((i) => i.refusal);
  }

  private load(): Outgoing[] {
    const out: Outgoing[] = [];
    for (let i = 0; i < (this.storage?.length ?? 0); i++) {
      const name = this.storage?.key(i);
      if (!name?.startsWith(this.prefix)) continue;
      const item = parse(this.storage?.getItem(name) ?? "");
      if (item && name === this.prefix + item.key) out.push(item);
    }
    return out.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
  }

  /** Keeps a message. It reports false where the storage did not take it, so that a reload would lose it. */
  add(item: Outgoing): boolean {
    if (item.refusal) this.items.delete(item.key);
    else this.items.set(item.key, item);
    if (!this.storage) return false;
    try {
      this.storage.setItem(this.prefix + item.key, JSON.stringify(item));
      return true;
    } catch (err) {
      this.warn("the message is not kept across a reload:", err);
      return false;
    }
  }

  /** A message as the storage has it now: another page may have changed it, or brought it, which leaves nothing. */
  stored(key: string): Outgoing | undefined {
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

  /** The conversations that have messages on their way. */
  conversations(): Set<string> {
    return new Set([...this.items.values()].map((i) => i.conversation));
  }

  of(conversation: string): Outgoing[] {
    return [...this.items.values()].filter((i) => i.conversation === conversation);
  }
}

// parse reads an entry; what somebody else wrote there is none.
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

/** The storage of the page, where there is one and it may be used. */
export function pageStorage(): OutboxStorage | undefined {
  try {
    return typeof localStorage === "undefined" ? undefined : localStorage;
  } catch {
    return undefined; // it is there but forbidden
  }
}
