import type { Conversation } from "./conversation.js";

/** Number of conversations that are kept in memory although they have no subscriber, so that returning to one is fast. */
export const maxIdle = 16;

/**
 * The conversations of a client. As long as any code references a conversation, its id maps to the same object. The cache itself
 * keeps strong references to conversations with subscribers and to the maxIdle most recently used others. Dropped conversations are
 * loaded again from a snapshot.
 */
export class ConversationCache {
  private readonly strong = new Map<string, Conversation>(); // least recently used first
  private readonly weak = new Map<string, WeakRef<Conversation>>();
  private readonly finalizers = new FinalizationRegistry<string>((id) => {
    if (!this.weak.get(id)?.deref()) this.weak.delete(id);
  });

  get(id: string): Conversation | undefined {
    return this.strong.get(id) ?? this.weak.get(id)?.deref();
  }

  /** Records that a conversation is used, gained its first subscriber or lost its last. */
  use(c: Conversation): void {
    if (this.weak.delete(c.id)) this.finalizers.unregister(c);
    this.strong.delete(c.id);
    this.strong.set(c.id, c);
    let idle = 0;
    for (const other of this.strong.values()) if (!other.isWatched) idle++;
    for (const other of this.strong.values()) {
      if (idle <= maxIdle) return;
      if (other.isWatched) continue;
      this.strong.delete(other.id);
      this.weak.set(other.id, new WeakRef(other));
      this.finalizers.register(other, other.id, other);
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

  /** The ids of the strongly referenced conversations, least recently used first. */
  get strongIds(): string[] {
    return [...this.strong.keys()];
  }

  /** The number of conversations, including weakly referenced ones. */
  get size(): number {
    return this.strong.size + this.weak.size;
  }
}
