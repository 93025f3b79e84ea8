import { useSyncExternalStore } from "react";

/** An observable value. */
export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const l of [...this.listeners]) l();
  }

  change(f: (value: T) => T): void {
    this.set(f(this.value));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** Returns a store that is kept in the browser's storage. If storage isn't available, it lasts until the page is closed. */
export function persistent<T>(key: string, initial: T, valid: (v: unknown) => v is T): Store<T> {
  const name = `leat.${key}`;
  let value = initial;
  try {
    const raw = localStorage.getItem(name);
    const parsed: unknown = raw === null ? initial : JSON.parse(raw);
    if (valid(parsed)) value = parsed;
  } catch {
    // Nothing is stored, or the stored value wasn't written by this page.
  }
  const store = new Store(value);
  store.subscribe(() => {
    try {
      localStorage.setItem(name, JSON.stringify(store.get()));
    } catch {
      // Storage is full or forbidden.
    }
  });
  return store;
}
