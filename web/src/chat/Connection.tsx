import { useEffect, useLayoutEffect, useState } from "react";

import { theClient, theLive } from "../gateway";
import { Icon, type IconName } from "../ui/Icon";
import { Outages } from "./outages";
import { link } from "./turnStatus";
import { type Facts, announce, type Kind, type Restart, restart, restarting, tell, words } from "./words";

// How often time-dependent texts are recomputed, in milliseconds.
const interval = 500;

let restarts: Restart = { told: false, at: 0 };

/** The times at which the gateway was down. */
export const outages = new Outages();
let following = false;

// follow keeps the state of a restart up to date, independent of the open view.
function follow(changed: () => void): () => void {
  const [client, events] = [theClient(), theLive()];
  if (!following) {
    following = true;
    events.on("status", (s) => {
      restarts = restart(restarts, { status: s.state }, Date.now());
      if (s.uptime !== undefined) outages.connected(Date.now() - s.uptime);
    });
    events.onState((s) => { restarts = restart(restarts, { live: s }, Date.now()); });
    client.onState((state, error) => {
      restarts = restart(restarts, { state, reason: error?.reason }, Date.now());
      if (state !== "connected" && client.lastHeard > 0) outages.disconnected(client.lastHeard);
    });
  }
  const leaves = [events.on("status", changed), client.onState(changed), client.onUnacknowledged(changed)];
  for (const e of ["online", "offline"]) addEventListener(e, changed);
  document.addEventListener("visibilitychange", changed);
  const tick = setInterval(() => document.hidden || changed(), interval);
  return () => {
    clearInterval(tick);
    for (const leave of leaves) leave();
    for (const e of ["online", "offline"]) removeEventListener(e, changed);
    document.removeEventListener("visibilitychange", changed);
  };
}

function facts(backlog: number): Facts {
  const { state, retryAt, unacknowledged, lastHeard } = theClient();
  return { state, retryAt, waiting: unacknowledged, heard: lastHeard, behind: backlog, online: navigator.onLine, restarting: restarting(restarts, Date.now(), state === "connected") };
}

/** The status of the connection. behind is the number of events that the shown conversation still lacks. */
export function Connection({ behind = 0 }: { behind?: number }) {
  const [announced, setTold] = useState(() => announce(words(facts(behind), Date.now()), Date.now()));
  const [state, setState] = useState(theClient().state);
  useEffect(() => {
    const changed = () => {
      const time = Date.now();
      setState(theClient().state);
      setTold((t) => tell(t, words(facts(behind), time), time));
    };
    changed();
    return follow(changed);
  }, [behind]);
  const { kind, text, outbox, tryNow } = announced.shown;
  const isOpen = state === "connected";
  useLayoutEffect(() => {
    const before = link.get();
    if (before.kind !== kind || before.isOpen !== isOpen) link.set({ kind, isOpen });
  }, [kind, isOpen]);
  return (
    <span className="connection" data-state={state} data-kind={kind}>
      <span className="words" aria-hidden="true"><Sign kind={kind} /> {text}{outbox && <span className="outbox"> · {outbox}</span>}</span>
      <span className="unseen" role="status">{announced.said}</span>
      {tryNow && <button type="button" className="link" onClick={() => { theClient().connect(); theLive().connect(); }}>Retry now</button>}
    </span>
  );
}

const dots: Partial<Record<Kind, string>> = { live: "done", connecting: "running", reconnecting: "running" };
const icons: Partial<Record<Kind, IconName>> = { offline: "cross", restarting: "again", behind: "down", silent: "wave", forbidden: "cross", out: "out" };

function Sign({ kind }: { kind: Kind }) {
  return dots[kind] ? <span className={`dot ${dots[kind]}`} /> : <Icon name={icons[kind]!} />;
}
