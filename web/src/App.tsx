// Who may open the page, and where its rooms are: the rail with the conversations, the view, and what is laid over them.

import { type FormEvent, lazy, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { enter } from "./account";
import { Chat } from "./chat/Chat";
import { type Session, session, signIn, theClient } from "./gateway";
import { type Action, listen, useActions } from "./keys";
import { layer, Layers } from "./layers";
import { follow, list } from "./list";
import { Rail } from "./Rail";
import { open, openOverview, route } from "./route";
import { useStore } from "./store";
import { theme } from "./theme";
import { Later } from "./ui/Later";
import { useNarrow } from "./ui/over";

const Overview = lazy(() => import("./overview/Overview"));

/** How long until the gateway is asked again whether it is there. */
const again = 2000;

export function App() {
  const [who, setWho] = useState<Session>();
  const [away, setAway] = useState(false);
  const ask = useCallback(async () => {
    try {
      const now = await session();
      if ((now.authenticated || !now.tokenNeeded) && !enter(now)) return;
      setWho(now);
      setAway(false);
    } catch {
      setAway(true);
      setTimeout(() => void ask(), again);
    }
  }, []);
  useEffect(() => void ask(), [ask]);
  if (!who) return away ? <p className="alone" role="status">The gateway can’t be reached. Trying again …</p> : null;
  if (who.tokenNeeded && !who.authenticated) return <SignIn done={ask} />;
  return <House session={who} signedOut={ask} />;
}

function SignIn({ done }: { done: () => Promise<void> }) {
  const [error, setError] = useState("");
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token"));
    setError("");
    try {
      await signIn(token);
      await done();
    } catch (err) {
      setError((err as { reason?: string }).reason === "unauthorized" ? "That is not a token of this gateway." : (err as Error).message);
    }
  };
  return (
    <main className="alone">
      <form onSubmit={(e) => void submit(e)}>
        <h1>Leat</h1>
        <label htmlFor="token">Your token, or the gateway’s own</label>
        <input id="token" name="token" type="password" autoComplete="current-password" required autoFocus />
        <button className="primary">Sign in</button>
        <p role="alert" className="bad">{error}</p>
      </form>
    </main>
  );
}

function House({ session: who, signedOut }: { session: Session; signedOut: () => Promise<void> }) {
  const at = useStore(route);
  const dark = useStore(theme) === "dark";
  const [rail, setRail] = useState(false);
  const openRail = useCallback(() => setRail(true), []);
  const closeRail = useCallback(() => setRail(false), []);
  const operator = !!who.admin || !who.tokenNeeded;
  const attaches = useStore(list).agents.some((a) => a.sessions);
  useEffect(() => {
    theClient().connect();
    return follow();
  }, []);
  // A token that is not good any more leads back to the way in.
  useEffect(() => theClient().onState((s) => {
    if (s === "unauthorized") void signedOut();
  }), [signedOut]);
  useEffect(() => listen(), []);
  const id = at.view === "chat" ? at.id : "";
  useActions(useMemo<Action[]>(() => [
    { group: "Go to", name: "New conversation", key: "new", run: () => { open(""); document.getElementById("composer")?.focus(); } },
    ...(operator ? [{ group: "Go to", name: "Overview", run: openOverview }] : []),
    ...(operator && attaches ? [{ group: "Go to", name: "Attach a session…", run: () => layer.set("attach") }] : []),
    { group: "This page", name: dark ? "Light theme" : "Dark theme", run: () => theme.set(dark ? "light" : "dark") },
    { group: "This page", name: "Settings", run: () => layer.set("settings") },
    { group: "This page", name: "Keys", key: "help", run: () => layer.set("keys") },
    { group: "", name: "", hidden: true, key: "palette", run: () => layer.change((l) => (l === "palette" ? "" : "palette")) },
    { group: "", name: "", hidden: true, key: "previous", run: () => beside(id, -1) },
    { group: "", name: "", hidden: true, key: "next", run: () => beside(id, 1) },
  ], [operator, attaches, dark, id]));
  const fresh = useFresh(at.view === "chat" ? id : at.view);
  // Whatever leads elsewhere leads out of the list, and where there is room for it beside the rest it lies over nothing.
  const narrow = useNarrow();
  useEffect(closeRail, [closeRail, at, narrow]);
  return (
    <div className="house" data-rail={rail || undefined}>
      <a className="skip" href="#composer" onClick={(e) => { e.preventDefault(); document.getElementById("composer")?.focus(); }}>To the message</a>
      <Rail current={id} session={who} opened={rail} open={openRail} close={closeRail} />
      {rail && <div className="shade" onClick={closeRail} />}
      {at.view === "overview"
        ? <main className="chat"><Later of={at.view} fallback={<div className="talk" aria-busy="true" />}><Overview openRail={openRail} /></Later></main>
        : <Chat key={id || fresh} id={id} fresh={fresh} attaches={operator && attaches} openRail={openRail} />}
      <Layers />
    </div>
  );
}

// The id of the next new conversation, for the place where the page is. It changes only as one comes to a new conversation: the one
// that stands there may have been made already, for its files.
function useFresh(at: string): string {
  const fresh = useRef(crypto.randomUUID() as string);
  const shown = useRef(at);
  const taken = shown.current === fresh.current || list.get().conversations.some((c) => c.id === fresh.current);
  const came = shown.current !== at;
  shown.current = at;
  if (at === "" && came && taken) fresh.current = crypto.randomUUID();
  return fresh.current;
}

// Goes to the conversation above or below in the list.
function beside(id: string, step: number): void {
  const { conversations } = list.get();
  const i = conversations.findIndex((c) => c.id === id);
  const to = conversations[i < 0 ? (step > 0 ? 0 : conversations.length - 1) : i + step];
  if (to) open(to.id);
}
