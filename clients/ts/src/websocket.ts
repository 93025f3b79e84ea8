import { LeatError } from "./errors.js";
import { type Endpoint, explainFailure, request } from "./http.js";
import type { Dial, LinkEvents } from "./link.js";
import type { ServerFrame } from "./wire.js";

// The close code for a socket that isn't authorized.
const policyViolation = 1008;
// The close code for a socket whose token has expired.
const expired = 4001;

// The close code when the gateway stops.
const restarting = 1012;

// The close reason of /ws for an expired token; it uses policyViolation for both.
const expiredReason = "the token has expired";

/** Links over the WebSocket /api/ws. */
export const webSocketDial = (at: Endpoint): Dial => socketDial(at, () => "/api/ws", (events) => (f) => events.frame(f as ServerFrame));

/**
 * Links over the WebSocket /ws of Eliza's protocol. The frames are live events. The first status confirms the token, like hello on
 * the other socket.
 */
export function liveDial(at: Endpoint, query: () => string): Dial {
  return socketDial(at, () => `/ws${query()}`, (events) => {
    let greeted = false;
    return (f) => {
      if (!greeted && f.type === "status") {
        greeted = true;
        events.frame({ type: "hello", protocol: "leat/1" });
      }
      events.frame(f as ServerFrame);
    };
  });
}

function socketDial(at: Endpoint, path: () => string, listen: (events: LinkEvents) => (frame: { type: string }) => void): Dial {
  return (token, events) => {
    const onFrame = listen(events);
    const ws = new WebSocket(at.url.replace(/^http/, "ws") + path());
    let isClosed = false;
    let isOpen = false;
    let refusal: LeatError | undefined;
    const end = (cause: LeatError) => {
      if (isClosed) return;
      isClosed = true;
      ws.close();
      events.closed(cause);
    };
    ws.onopen = () => {
      isOpen = true;
      if (token) ws.send(JSON.stringify({ type: "auth", token }));
    };
    ws.onmessage = (m: MessageEvent) => {
      if (isClosed) return;
      let f: ServerFrame;
      try {
        f = JSON.parse(m.data as string) as ServerFrame;
      } catch {
        end(new LeatError("the gateway sent a frame that is not JSON", "network"));
        return;
      }
      if (f.type === "error" && !f.conversation) refusal = LeatError.of(f);
      onFrame(f);
    };
    let isExplaining = false;
    const fail = () => {
      if (isClosed || isExplaining) return;
      isExplaining = true;
      void explain(at, token).then(end);
    };
    ws.onerror = () => {
      if (!isOpen) fail(); // some implementations don't fire close in this case
    };
    ws.onclose = (e: CloseEvent) => {
      if (isClosed) return;
      if (e.code === expired || e.reason === expiredReason) end(new LeatError("the token has expired", "expired"));
      else if (e.code === policyViolation) end(new LeatError(refusal?.message ?? (e.reason || "unauthorized"), "unauthorized"));
      else if (e.code === restarting) end(new LeatError("the gateway is restarting", "restarting", 0, refusal?.retryAfter ?? 0));
      else if (isOpen) end(new LeatError(`the connection was interrupted (${e.code})`, "network", 0, refusal?.retryAfter ?? 0));
      else fail();
    };
    return {
      send: (frame) => ws.send(JSON.stringify(frame)),
      close: () => {
        isClosed = true;
        ws.close();
      },
    };
  };
}

// A browser doesn't reveal why a handshake failed. A request over HTTP with the same credentials shows whether the gateway is
// unreachable or refuses.
async function explain(at: Endpoint, token: string): Promise<LeatError> {
  try {
    await request(at, token, "/api/agents", { signal: AbortSignal.timeout(10_000) });
  } catch (err) {
    return explainFailure(at, err);
  }
  return new LeatError("could not open a WebSocket", "network");
}
