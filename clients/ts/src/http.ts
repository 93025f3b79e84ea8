import { asLeatError, LeatError } from "./errors.js";

/** Where the gateway is, and who asks. */
export interface Endpoint {
  /** Without a slash at its end. */
  url: string;
  subject?: string | undefined;
  tenant?: string | undefined;
}

export interface Call { method?: string; body?: unknown; accept?: string; signal?: AbortSignal; headers?: Record<string, string> }

// How long the gateway may take to say that it runs, in milliseconds.
const healthLimit = 10_000;

/** Makes a request and returns its answer; every status of 400 and above is thrown as a LeatError. */
export async function request(at: Endpoint, token: string, path: string, call: Call = {}): Promise<Response> {
  const headers: Record<string, string> = { ...call.headers };
  if (token) headers["Authorization"] = `Bearer ${token}`;
  if (at.subject) headers["Leat-Subject"] = at.subject;
  if (at.tenant) headers["Leat-Tenant"] = at.tenant;
  if (call.accept) headers["Accept"] = call.accept;
  const init: RequestInit = { method: call.method ?? "GET", headers, cache: "no-store" };
  if (call.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(call.body);
  }
  if (call.signal) init.signal = call.signal;
  let res: Response;
  try {
    res = await fetch(at.url + path, init);
  } catch (err) {
    throw asLeatError(err);
  }
  if (res.status >= 400) throw await refusal(res);
  return res;
}

/** Makes a request and reads its answer as JSON; heard is told of each piece of it. */
export async function json<T>(at: Endpoint, token: string, path: string, call: Call = {}, heard: () => void = () => {}): Promise<T> {
  const res = await request(at, token, path, call);
  try {
    return JSON.parse(await readText(res, heard)) as T;
  } catch (err) {
    if (err instanceof SyntaxError) throw new LeatError(`${path} is answered with something else than JSON`, "protocol", res.status);
    throw asLeatError(err);
  }
}

/**
 * Says why a request has failed that got no answer. A browser hides from a page that the gateway refuses its origin: it looks like a
 * broken network. Only the gateway's health may be asked from anywhere, so if that answers, it is the origin.
 */
export async function explained(at: Endpoint, err: unknown): Promise<LeatError> {
  const why = asLeatError(err);
  const page = globalThis.location?.origin;
  if (why.reason !== "network" || !page || new URL(at.url).origin === page) return why;
  try {
    const res = await fetch(`${at.url}/healthz`, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(healthLimit) });
    if (!res.ok) return why;
  } catch {
    return why; // the gateway is away, or something else answers in its place
  }
  return new LeatError(`the gateway does not allow pages of ${page}: add this origin to its setting allowed_origins`, "forbidden");
}

async function readText(res: Response, heard: () => void): Promise<string> {
  const body = res.body?.getReader();
  const text = new TextDecoder();
  let out = "";
  for (;;) {
    heard();
    const { done, value } = (await body?.read()) ?? { done: true };
    if (done) return out + text.decode();
    out += text.decode(value, { stream: true });
  }
}

async function refusal(res: Response): Promise<LeatError> {
  const retryAfter = Number(res.headers.get("Retry-After") ?? 0) * 1000 || 0;
  let body: { error?: unknown; reason?: unknown } = {};
  try {
    body = (await res.json()) as typeof body;
  } catch {
    // Something between here and the gateway has answered, in words of its own.
  }
  const message = typeof body.error === "string" ? body.error : `the server answered ${res.status} ${res.statusText}`;
  const reason = typeof body.reason === "string" ? body.reason : reasonOf(res.status);
  return new LeatError(message, reason, res.status, retryAfter);
}

function reasonOf(status: number): string {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "not_found";
  if (status === 429) return "busy";
  return status >= 500 ? "unavailable" : "invalid";
}

/** The path of a conversation. */
export const conversationPath = (id: string, rest: string): string => `/api/conversations/${encodeURIComponent(id)}${rest}`;
