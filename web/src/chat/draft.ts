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
    // It lasts as long as the page.
  }
};

const inFlight = new Set<string>(); // conversations of which this page has something on its way

/** What is written and not sent yet, kept over reloads. */
export const draft = {
  readItem(conversation: string): string {
    if (inFlight.has(conversation)) return readItem(key(conversation));
    const text = [readItem(key(conversation)), readItem(heldKey(conversation))].filter(Boolean).join("\n\n");
    write(key(conversation), text);
    write(heldKey(conversation), "");
    return text;
  },
  write: (conversation: string, text: string): void => write(key(conversation), text),
  /** The conversations that have one; one that is not made yet is not among them. */
  all: (): string[] => [...new Set(drafted().map((id) => (id.endsWith(sentSuffix) ? id.slice(0, -sentSuffix.length) : id)))],
  /** Leaves nothing of it: the conversation is deleted. */
  forget(conversation: string): void {
    write(key(conversation), "");
    write(heldKey(conversation), "");
  },
  /**
   * Keeps what is on its way and stored nowhere else: it is a draft again should the page go. The function that it returns tells
   * that it arrived, or that it is to be a draft.
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
