import { draftKey as key, drafted } from "../account";

const sentSuffix = ".sent";
const heldKey = (conversation: string): string => key(conversation) + sentSuffix;

const readItem = (name: string): string => {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
};

const write = (name: string, text: string): void => {
  try {
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
  } catch {
    // Without storage, drafts last until the page is closed.
  }
};

const inFlight = new Set<string>(); // conversations with a message that this page is sending

/** Unsent text, kept across reloads. */
export const draft = {
  readItem(conversation: string): string {
    if (inFlight.has(conversation)) return readItem(key(conversation));
    const text = [readItem(key(conversation)), readItem(heldKey(conversation))].filter(Boolean).join("\n\n");
    write(key(conversation), text);
    write(heldKey(conversation), "");
    return text;
  },
  write: (conversation: string, text: string): void => write(key(conversation), text),
  /** The ids of conversations with a draft, without the one that isn't created yet. */
  all: (): string[] => [...new Set(drafted().map((id) => (id.endsWith(sentSuffix) ? id.slice(0, -sentSuffix.length) : id)))],
  /** Removes the draft of a deleted conversation. */
  forget(conversation: string): void {
    write(key(conversation), "");
    write(heldKey(conversation), "");
  },
  /**
   * Keeps text that is being sent and stored nowhere else: if the page is closed, it becomes a draft again. The returned function
   * reports whether the text was delivered; if not, it becomes a draft.
   */
  hold(conversation: string, text: string): (arrived: boolean) => void {
    inFlight.add(conversation);
    write(heldKey(conversation), text);
    return (arrived) => {
      inFlight.delete(conversation);
      if (arrived && readItem(heldKey(conversation)) === text) write(heldKey(conversation), "");
    };
  },
};
