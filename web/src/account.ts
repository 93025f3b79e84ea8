// The account of this page. Users may share a browser: each user's unsent messages and drafts are kept separate, and deleted when
// the user signs out, together with all cached content.

import { account, base, close, type Session, setAccount } from "./gateway";
import { forgetShown } from "./inspector/shown";

/** Settings of the page itself, independent of the user, and the name of the current account. */
const ofThePage = /^leat\.(?:(?:theme|reading|shortcuts|inspector|debug)$|account:)/;
/** Keys of texts that users have written. They are separate for each user. */
const userTexts = /^leat(?:\.draft|:outbox):/;

const name = `leat.account:${base}`;
const messages = () => `leat:outbox:${base}:${account()}:`;
const drafts = () => `leat.draft:${base}:${account()}:`;

/** Returns the storage key of a draft; "" is the next new conversation. */
export const draftKey = (conversation: string): string => drafts() + (conversation || "new");

/** Returns the conversations with stored drafts, or with keys that extend a draft's key, except the next new one. */
export const drafted = (): string[] => keys("localStorage").filter((k) => k.startsWith(drafts())).map((k) => k.slice(drafts().length)).filter((id) => id !== "new");

let isEntered = false;

/** Sets the signed-in user. If the page belonged to another user, it returns false and reloads the page, which shows nothing until then. */
export function enter(session: Session): boolean {
  const id = session.tokenNeeded ? `${session.tenant ?? ""}/${session.subject ?? ""}` : "";
  const before = storedAccount();
  const other = isEntered ? account() !== id : before !== undefined && before !== id;
  if (other) {
    close();
    forget((key) => !userTexts.test(key)); // another user's unsent texts are kept
  }
  store(id);
  if (other && (isEntered || storedAccount() === id)) {
    if (isEntered) history.replaceState(null, "", "#/"); // the open conversation belongs to the other user
    location.reload();
    return false;
  }
  isEntered = true;
  setAccount(id, session.tokenNeeded ? session.subject ?? "" : "");
  return true;
}

/** Counts the messages and drafts that signing out would delete. */
export function unsent(): { messages: number; drafts: number } {
  const names = keys("localStorage");
  const of = (prefix: string) => names.filter((k) => k.startsWith(prefix)).length;
  return { messages: of(messages()), drafts: of(drafts()) };
}

/** Deletes the user's data and reloads the page, here and in other tabs. */
export function leave(): void {
  close();
  forget((key) => !userTexts.test(key) || key.startsWith(messages()) || key.startsWith(drafts()));
  store(undefined);
  history.replaceState(null, "", "#/");
  location.reload();
}

// A user has signed in or out in another tab: messages that wait here must not be sent in the name of the new user.
function follow(): void {
  if (!isEntered || storedAccount() === account()) return;
  close();
  forgetShown();
  history.replaceState(null, "", "#/");
  location.reload();
}
addEventListener("storage", (e) => {
  if (e.key === name || e.key === null) follow();
});
addEventListener("pageshow", (e) => {
  if (e.persisted) follow();
});

function forget(matches: (key: string) => boolean): void {
  forgetShown();
  for (const s of ["localStorage", "sessionStorage"] as const) {
    for (const key of keys(s)) if (/^leat[.:]/.test(key) && !ofThePage.test(key) && matches(key)) window[s].removeItem(key);
  }
}

// A browser may forbid storage. Then nothing is kept, as on a first visit.
function keys(storage: "localStorage" | "sessionStorage"): string[] {
  try {
    return Object.keys(window[storage]);
  } catch {
    return [];
  }
}

function storedAccount(): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

function store(account: string | undefined): void {
  try {
    if (account === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, account);
  } catch {
    // Storage is forbidden or full.
  }
}
