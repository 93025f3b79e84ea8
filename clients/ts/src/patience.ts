import { LeatError } from "./errors.js";

/** How long nothing may come of an answer over HTTP, in milliseconds: one that hangs must not keep those after it back. */
export const patience = 30_000;

/**
 * Does what asks over HTTP, and gives up once nothing has been heard for as long as patience says. So a line of which the other end
 * is gone ends, and a slow one does not.
 */
export async function patiently<T>(ask: (signal: AbortSignal, heard: () => void) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(new LeatError(`no data from the gateway for ${patience / 1000} s`, "network")), patience);
  };
  heard();
  try {
    return await ask(stop.signal, heard);
  } catch (err) {
    throw stop.signal.aborted ? stop.signal.reason : err; // a body that is aborted may tell of it in words of its own
  } finally {
    clearTimeout(timer);
  }
}
