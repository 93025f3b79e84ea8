import { asLeatError, LeatError } from "./errors.js";

/** The gateway's address, and the user for whom requests are sent. */
export interface Endpoint {
  /** Without a trailing slash. */
  url: string;
  subject?: string | undefined;
  tenant?: string | undefined;
}

export interface Call { method?: string; body?: unknown; accept?: string; signal?: AbortSignal; headers?: Record<string, string> }

// The time limit for the gateway's health check, in milliseconds.
const healthLimit = 10_000;

/** Sends a request and returns its response. It throws a LeatError for statuses of 400 and above. */
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

/** Sends a request and parses the response as JSON. onData is called for each piece of the response. */
export async function json<T>(at: Endpoint, token: string, path: string, call: Call = {}, onData: () => void = () => {}): Promise<T> {
  const res = await request(at, token, path, call);
  try {
    return JSON.parse(await readText(res, onData)) as T;
  } catch (err) {
    if (err instanceof SyntaxError) throw new LeatError(`invalid response to ${path}: not JSON`, "protocol", res.status);
    throw asLeatError(err);
  }
}

/**
 * Explains why a request without a response failed. A browser hides from a page that the gateway refuses its origin: the failure
 * looks like a broken network. Only the health check is allowed from any origin, so if it succeeds, the origin is the reason.
 */
export async function explainFailure(at: Endpoint, err: unknown): Promise<LeatError> {
  const cause = asLeatError(err);
  const page = globalThis.location?.origin;
  if (cause.reason !== "network" || !page || new URL(at.url).origin === page) return cause;
  try {
    const res = await fetch(`${at.url}/healthz`, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(healthLimit) });
    if (!res.ok) return cause;
  } catch {
    return cause; // the gateway can't be reached, or another server answers
  }
  return new LeatError(`the gateway doesn't allow pages of ${page}: add this origin to its setting allowed_origins`, "forbidden");
}

async function readText(res: Response, onData: () => void): Promise<string> {
  const body = res.body?.getReader();
  const text = new TextDecoder();
  let result = "";
  for (;;) {
    onData();
    const { done, value } = (await body?.read()) ?? { done: true };
    if (done) return result + text.decode();
    result += text.decode(value, { stream: true });
  }
}

async function refusal(res: Response): Promise<LeatError> {
  const retryAfter = Number(res.headers.get("Retry-After") ?? 0) * 1000 || 0;
  let body: { error?: unknown; reason?: unknown } = {};
  try {
    body = (await res.json()) as typeof body;
  } catch {
    // Not from the gateway: a proxy has answered in its own format.
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

/** Returns the path of a conversation. */
export const conversationPath = (id: string, suffix: string): string => `/api/conversations/${encodeURIComponent(id)}${suffix}`;
