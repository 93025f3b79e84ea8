// The gateway that serves this page: the shared client for conversations, and other HTTP calls.

import { Client, LeatError, LiveEvents, type Warn } from "@leat/client";

import { Store } from "./store";

/** The page's base URL: the gateway may be served below a path. */
export const base = new URL(".", location.href.split("#")[0]).href.replace(/\/$/, "");

export interface Session {
  tokenNeeded: boolean; authenticated: boolean; subject?: string; tenant?: string; admin?: boolean; scopes?: string[];
  /** When the sign-in ends, epoch milliseconds. */
  expires?: number;
}

/** The signed-in user's session. */
export const currentSession = new Store<Session>({ tokenNeeded: false, authenticated: false });

// The console stays empty, because the page shows everything that matters to users. To debug, set leat.debug in the local storage.
const warn: Warn = (message, ...cause) => {
  try {
    if (localStorage.getItem("leat.debug")) console.warn(`leat: ${message}`, ...cause);
  } catch {
    // The flag can't be set without storage.
  }
};

// The signed-in user. The client keeps the unsent messages of different users separate.
let accountId = "";
let subjectName = "";
export const account = (): string => accountId;
/** Returns the user's name in the log; empty if users have no names, as with the API token. */
export const subject = (): string => subjectName;
export function setAccount(account: string, subject: string): void {
  accountId = account;
  subjectName = subject;
}

let client: Client | undefined;

/** Returns the shared client. */
export function theClient(): Client {
  return (client ??= new Client({ url: base, account: accountId, name: "page", warn }));
}

let liveEvents: LiveEvents | undefined;

/** Returns the shared source of events outside of conversations: changes for the list, and the state of the gateway. */
export function theLive(): LiveEvents {
  return (liveEvents ??= new LiveEvents({ url: base, warn }));
}

/** Closes both connections. */
export function close(): void {
  client?.close();
  liveEvents?.close();
}

/**
 * A response without data for this time is aborted, so that a hanging request doesn't block later ones. Slow but steady responses
 * are not. Milliseconds.
 */
const patience = 30_000;

/** Sends a request and reads the whole response. */
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

/** Calls the gateway's API. A refusal throws a LeatError with the gateway's message. */
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

/** Converts a refused response to an error. */
export async function refusal(res: Response, body: Blob): Promise<LeatError> {
  const { error, reason } = await parsed<{ error?: string; reason?: string }>(body);
  return new LeatError(error ?? `the gateway answered ${res.status}`, reason ?? "unavailable", res.status);
}

async function parsed<T>(body: Blob): Promise<T> {
  try {
    return JSON.parse(await body.text()) as T;
  } catch {
    return {} as T; // no body, or a proxy's response
  }
}

export const session = () => call<Session>("api/auth/session");
export const signIn = (token: string) => call<unknown>("api/auth/session", { method: "POST", json: { token } });
export const signOut = () => call<unknown>("api/auth/session", { method: "DELETE" });
