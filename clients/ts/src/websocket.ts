import { LeatError } from "./errors.js";
import { type Endpoint, explained, request } from "./http.js";
import type { Dial, LinkEvents } from "./link.js";
import type { ServerFrame } from "./wire.js";

// The code with which the gateway closes a socket that may not be there.
const policyViolation = 1008;
// The code with which it closes a socket whose token has ended.
const expired = 4001;

// The code with which it closes them when it stops.
const restarting = 1012;

// With these words /ws does, which has one code for both.
const expiredReason = "the token has expired";

/** Links over the WebSocket /api/ws. */
export const webSocketDial = (at: Endpoint): Dial => socketDial(at, () => "/api/ws", (events) => (f) => events.frame(f as ServerFrame));

/**
 * Links over the WebSocket /ws, by which Eliza's clients follow what happens. The frames are those of live events; the first
 * status says that the token was taken, as a hello does elsewhere.
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
    const hear = listen(events);
    const ws = new WebSocket(at.url.replace(/^http/, "ws") + path());
    let ended = false;
    let opened = false;
    let refused: LeatError | undefined;
    const end = (why: LeatError) => {
      if (ended) return;
      ended = true;
      ws.close();
      events.closed(why);
    };
    ws.onopen = () => {
      opened = true;
      if (token) ws.send(JSON.stringify({ type: "auth", token }));
    };
    ws.onmessage = (m: MessageEvent) => {
      if (ended) return;
      let f: ServerFrame;
      try {
        f = JSON.parse(m.data as string) as ServerFrame;
      } catch {
        end(new LeatError("the gateway sent a frame that is no JSON", "network"));
        return;
      }
      if (f.type === "error" && !f.conversation) refused = LeatError.of(f);
      hear(f);
    };
    let failing = false;
    const fail = () => {
      if (ended || failing) return;
      failing = true;
      void explain(at, token).then(end);
    };
    ws.onerror = () => {
      if (!opened) fail(); // some implementations tell of no close then
    };
    ws.onclose = (e: CloseEvent) => {
      if (ended) return;
      if (e.code === expired || e.reason === expiredReason) end(new LeatError("the token has ended", "expired"));
      else if (e.code === policyViolation) end(new LeatError(refused?.message ?? (e.reason || "unauthorized"), "unauthorized"));
      else if (e.code === restarting) end(new LeatError("the gateway is restarting", "restarting", 0, refused?.retryAfter ?? 0));
      else if (opened) end(new LeatError(`the connection was cut (${e.code})`, "network", 0, refused?.retryAfter ?? 0));
      else fail();
    };
    return {
      send: (frame) => ws.send(JSON.stringify(frame)),
      close: () => {
        ended = true;
        ws.close();
      },
    };
  };
}

// A browser does not tell why a handshake failed. The same credentials by HTTP do: whether the gateway is away, or refuses.
async function explain(at: Endpoint, token: string): Promise<LeatError> {
  try {
    await request(at, token, "/api/agents", { signal: AbortSignal.timeout(10_000) });
  } catch (err) {
    return explained(at, err);
  }
  return new LeatError("the connection can't be made", "network");
}
