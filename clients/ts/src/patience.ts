import { LeatError } from "./errors.js";

/** The time without data after which a response over HTTP is aborted, in milliseconds. A stalled request must not block later ones. */
export const idleLimit = 30_000;

/** Runs a request, and aborts it after idleLimit without data. So a dead connection ends, and a slow one doesn't. */
export async function withIdleTimeout<T>(ask: (signal: AbortSignal, onData: () => void) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onData = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stop.abort(new LeatError(`no data from the gateway for ${idleLimit / 1000} s`, "network")), idleLimit);
  };
  onData();
  try {
    return await ask(stop.signal, onData);
  } catch (err) {
    throw stop.signal.aborted ? stop.signal.reason : err; // an aborted body may throw an error of its own
  } finally {
    clearTimeout(timer);
  }
}
