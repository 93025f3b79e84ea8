// The gateway that serves this page: the shared client for conversations, and other HTTP calls.

import { Client, LeatError, LiveEvents, type Warn } from "@leat/client";

/** The page's own folder: the gateway may lie below a path. */
export const base = new URL(".", location.href.split("#")[0]).href.replace(/\/$/, "");

export interface Session { tokenNeeded: boolean; authenticated: boolean; subject?: string; tenant?: string; admin?: boolean }

// The console stays empty, because the page shows everything that matters to users. To debug, set leat.debug in the local storage.
const warn: Warn = (message, ...cause) => {
  try {
    if (localStorage.getItem("leat.debug")) console.warn(`leat: ${message}`, ...cause);
  } catch {
    // Without a storage the flag can't be set.
  }
};

// Who is signed in: the client keeps what they have sent apart from what others have.
let accountId = "";
let subjectName = "";
export const account = (): string => accountId;
/** What the log calls them; empty where nobody has a name, as with the gateway's own token. */
export const subject = (): string => subjectName;
export function setAccount(account: string, subject: string): void {
  accountId = account;
  subjectName = subject;
}

let client: Client | undefined;

/** The one client of the page. */
export function theClient(): Client {
  return (client ??= new Client({ url: base, account: accountId, name: "page", warn }));
}

let liveEvents: LiveEvents | undefined;

/** What happens beside the conversation that is open: what the list is kept up to date by, and the state of the gateway. */
export function theLive(): LiveEvents {
  return (liveEvents ??= new LiveEvents({ url: base, warn }));
}

/** Ends both: nothing goes out any more. */
export function close(): void {
  client?.close();
  liveEvents?.close();
}

/** How long nothing may come of an answer: a request that hangs must not keep those after it back, and a slow line is no dead one. */
const patience = 30_000;

/** Asks the gateway, and reads its answer whole. */
export async function readBody(path: string, init: RequestInit = {}): Promise<{ res: Response; body: Blob }> {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onData = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(), patience);
  };
  onData();
  try {
    const res = await fetch(`${base}/${path}`, { cache: "no-store", ...init, signal: stop.signal });
    const pieces: BlobPart[] = [];
    const body = res.body?.getReader();
    for (;;) {
      onData();
      const { done, value } = (await body?.read()) ?? { done: true };
      if (done) return { res, body: new Blob(pieces) };
      pieces.push(value);
    }
  } catch {
    throw new LeatError(stop.signal.aborted ? `no data from the gateway for ${patience / 1000} s` : "the gateway can't be reached", "network");
  } finally {
    clearTimeout(timer);
  }
}

/** Calls the gateway. A refusal is a LeatError with the gateway's own words. */
export async function call<T>(path: string, options: RequestInit & { json?: unknown } = {}): Promise<T> {
  const { json, ...init } = options;
  if (json !== undefined) {
    init.body = JSON.stringify(json);
    init.headers = { ...init.headers, "Content-Type": "application/json" };
  }
  const { res, body } = await readBody(path, init);
  if (!res.ok) throw await refusal(res, body);
  return await parsed<T>(body);
}

/** What a refusal says. */
export async function refusal(res: Response, body: Blob): Promise<LeatError> {
  const { error, reason } = await parsed<{ error?: string; reason?: string }>(body);
  return new LeatError(error ?? `the gateway answered ${res.status}`, reason ?? "unavailable", res.status);
}

async function parsed<T>(body: Blob): Promise<T> {
  try {
    return JSON.parse(await body.text()) as T;
  } catch {
    return {} as T; // no body, or the answer of a proxy
  }
}

export const session = () => call<Session>("api/auth/session");
export const signIn = (token: string) => call<unknown>("api/auth/session", { method: "POST", json: { token } });
export const signOut = () => call<unknown>("api/auth/session", { method: "DELETE" });
