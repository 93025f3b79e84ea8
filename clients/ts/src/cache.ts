import type { Conversation } from "./conversation.js";

/** How many conversations are held with all that has come of them while nobody watches them: a way back is short. */
export const maxIdle = 16;

/**
 * The conversations of a client, one object for each for as long as anybody has it. Those that are watched are held here, and of
 * the others those that were used last; the rest goes when nobody has it any more, and comes again by a snapshot.
 */
export class ConversationCache {
  private readonly strong = new Map<string, Conversation>(); // the one used longest ago first
  private readonly weak = new Map<string, WeakRef<Conversation>>();
  private readonly gone = new FinalizationRegistry<string>((id) => {
    if (!this.weak.get(id)?.deref()) this.weak.delete(id);
  });

  get(id: string): Conversation | undefined {
    return this.strong.get(id) ?? this.weak.get(id)?.deref();
  }

  /** Takes note that a conversation is used, watched, or left. */
  use(c: Conversation): void {
    if (this.weak.delete(c.id)) this.gone.unregister(c);
    this.strong.delete(c.id);
    this.strong.set(c.id, c);
    let idle = 0;
    for (const other of this.strong.values()) if (!other.watched) idle++;
    for (const other of this.strong.values()) {
      if (idle <= maxIdle) return;
      if (other.watched) continue;
      this.strong.delete(other.id);
      this.weak.set(other.id, new WeakRef(other));
      this.gone.register(other, other.id, other);
      idle--;
    }
  }

  *[Symbol.iterator](): Generator<Conversation> {
    yield* this.strong.values();
    for (const ref of this.weak.values()) {
      const c = ref.deref();
      if (c) yield c;
    }
  }

  /** The ids of those that are held here. */
  get strongIds(): string[] {
    return [...this.strong.keys()];
  }

  /** How many there are, also those that only others have. */
  get size(): number {
    return this.strong.size + this.weak.size;
  }
}
