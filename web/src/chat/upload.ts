// Uploads a file: a small one in one request, a large one in pieces (tus 1.0.0), so that received pieces need not be sent again. It
// waits while the connection is broken, and resumes by itself.

import { LeatError, type Media } from "@leat/client";

import { base, call } from "../gateway";

/** Files above this size are uploaded in pieces of this size. Bytes. */
const singleLimit = 8 << 20;
const piece = 4 << 20;
/** A connection without progress for this time counts as broken. Milliseconds. */
const stalled = 30_000;
/** The first and the longest wait before a retry, in milliseconds. */
const firstDelay = 500;
const maxDelay = 15_000;
/** How often an upload that the gateway has dropped is started again. */
const lives = 3;

export interface Transfer {
  signal: AbortSignal;
  /** Receives the uploaded fraction, from 0 to 1. */
  progress: (of1: number) => void;
  /** Receives whether the upload waits for the connection. */
  waiting: (waits: boolean) => void;
}

/** An error that a retry can't fix. */
export class Refusal extends Error {}

class ConnectionFault extends Error {}
class UploadLost extends Error {}

let limits: Promise<{ maxSize: number } | undefined> | undefined;

/** Returns the maximum size of a file in bytes; undefined if unknown. */
export async function limit(): Promise<number | undefined> {
  limits ??= call<{ maxSize: number }>("api/files/upload").catch(() => (limits = undefined));
  return (await limits)?.maxSize;
}

/** Uploads a file into the conversation that target returns. onCreated receives the URL with which the upload can be deleted. */
export async function bring(file: File, target: () => Promise<string>, s: Transfer, onCreated: (at: string) => void): Promise<Media> {
  // Without a connection target doesn't resolve; the client retries by itself.
  const slow = setTimeout(() => s.waiting(true), maxDelay / 10);
  const conversation = await withRetries(s, () => target().catch((err: unknown) => {
    throw err instanceof LeatError && err.reason === "network" ? new ConnectionFault() : err;
  })).finally(() => clearTimeout(slow));
  if (file.size <= singleLimit) {
    const at = `${base}/api/conversations/${encodeURIComponent(conversation)}/files?name=${encodeURIComponent(file.name)}`;
    const res = await withRetries(s, () => request("POST", at, file, { "Content-Type": file.type || "application/octet-stream" }, s, (n) => s.progress(n / file.size)));
    return (res.response as { media: Media }).media;
  }
  for (let life = 1; ; life++) {
    try {
      return await inPieces(file, conversation, s, onCreated);
    } catch (err) {
      if (!(err instanceof UploadLost)) throw err;
      if (life === lives) throw new Refusal("the gateway lost the upload");
    }
  }
}

async function inPieces(file: File, conversation: string, s: Transfer, onCreated: (at: string) => void): Promise<Media> {
  const metadata = { filename: file.name, filetype: file.type || "application/octet-stream", conversation };
  const creation = await withRetries(s, () => request("POST", `${base}/api/files/upload`, null, {
    "Tus-Resumable": "1.0.0", "Upload-Length": String(file.size), "Upload-Metadata": Object.entries(metadata).map(([k, v]) => `${k} ${base64(v)}`).join(","),
  }, s));
  // The upload's URL, below the address at which this page reaches the gateway.
  const at = `${base}/api/files/upload/${creation.getResponseHeader("Location")!.split("/").pop()}`;
  onCreated(at);
  let offset = 0;
  while (offset < file.size) {
    offset = await withRetries(s, async (isRetry) => {
      if (isRetry) offset = Number((await request("HEAD", at, null, { "Tus-Resumable": "1.0.0" }, s)).getResponseHeader("Upload-Offset"));
      s.progress(offset / file.size);
      if (offset >= file.size) return offset;
      const from = offset;
      const res = await request("PATCH", at, file.slice(from, from + piece), { "Tus-Resumable": "1.0.0", "Upload-Offset": String(from), "Content-Type": "application/offset+octet-stream" }, s,
        (n) => s.progress((from + n) / file.size));
      return Number(res.getResponseHeader("Upload-Offset"));
    });
  }
  const res = await withRetries(s, () => request("GET", at, null, {}, s));
  return (res.response as { media: Media }).media;
}

/** Deletes an upload. */
export function takeBack(at: string): void {
  void fetch(at, { method: "DELETE", headers: { "Tus-Resumable": "1.0.0" }, keepalive: true }).catch(() => {});
}

// withRetries repeats a step until it isn't interrupted by the connection.
async function withRetries<T>(s: Transfer, step: (isRetry: boolean) => Promise<T>): Promise<T> {
  for (let wait = firstDelay, isRetry = false; ; isRetry = true) {
    try {
      const result = await step(isRetry);
      s.waiting(false);
      return result;
    } catch (err) {
      if (!(err instanceof ConnectionFault)) throw err;
    }
    s.waiting(true);
    await pause(wait, s.signal);
    wait = Math.min(2 * wait, maxDelay);
  }
}

// pause ends early when the network is back.
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      if (signal.aborted) reject(new Error("taken back"));
      else resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}

// request uses an XMLHttpRequest, because fetch doesn't report upload progress.
function request(method: string, url: string, body: Blob | null, headers: Record<string, string>, s: Transfer, onSent?: (bytes: number) => void): Promise<XMLHttpRequest> {
  return new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    r.open(method, url);
    for (const [k, v] of Object.entries(headers)) r.setRequestHeader(k, v);
    r.responseType = "json";
    let quiet: ReturnType<typeof setTimeout>;
    const recordActivity = () => {
      clearTimeout(quiet);
      quiet = setTimeout(() => r.abort(), stalled);
    };
    const stop = () => r.abort();
    s.signal.addEventListener("abort", stop);
    r.upload.onprogress = (e) => {
      recordActivity();
      if (e.loaded > 0) s.waiting(false);
      onSent?.(e.loaded);
    };
    r.onloadend = () => {
      clearTimeout(quiet);
      s.signal.removeEventListener("abort", stop);
      const answer = r.response as { error?: string; reason?: string } | null;
      if (s.signal.aborted) reject(new Error("taken back"));
      else if (r.status >= 200 && r.status < 300) resolve(r);
      // Temporary failures. 409: wrong offset. 400 with timeout: the body was interrupted. 423: an earlier connection is still
      // writing. 429 without quota: too many requests at once.
      else if ([0, 408, 409, 423, 502, 503, 504].includes(r.status) || r.status === 429 && answer?.reason !== "quota" || answer?.reason === "timeout") reject(new ConnectionFault());
      else if ((r.status === 404 || r.status === 410) && url.includes("api/files/upload/")) reject(new UploadLost());
      else reject(new Refusal(answer?.error ?? `the gateway answered ${r.status}`));
    };
    if (s.signal.aborted) {
      reject(new Error("taken back"));
      return;
    }
    recordActivity();
    r.send(body);
  });
}

const base64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
