// The page: signing in, and the layout with the rail of conversations, the current view and the layers on top.

import { type FormEvent, lazy, type MouseEvent, useCallback, useEffect, useMemo, useState } from "react";

import { enter } from "./account";
import { Chat } from "./chat/Chat";
import { currentSession, type Session, session, signIn, theClient } from "./gateway";
import { type Action, listen, useActions } from "./keys";
import { layer, Layers } from "./layers";
import { follow, list } from "./list";
import { receive } from "./live/feed";
import { resumeNotices } from "./notices/switch";
import { inOrder } from "./rail/grouping";
import { Rail } from "./rail/Rail";
import { open, openActivity, openOverview, route } from "./route";
import { useStore } from "./store";
import { theme, toggleTheme } from "./theme";
import { focusOnMount } from "./ui/focus";
import { LazyPart } from "./ui/LazyPart";
import { useNarrow } from "./ui/over";

const Overview = lazy(() => import("./overview/Overview"));
const ActivityView = lazy(() => import("./live/ActivityView"));
const Signals = lazy(() => import("./live/Signals"));

/** The delay before the session is requested again after a failure, in milliseconds. */
const retryDelay = 2000;

export function App() {
  const [user, setUser] = useState<Session>();
  const [failures, setFailures] = useState(0); // the number of failed session requests
  const load = useCallback(async () => {
    try {
      const answer = await session();
      if ((answer.authenticated || !answer.tokenNeeded) && !enter(answer)) return;
      currentSession.set(answer);
      setUser(answer);
    } catch {
      setFailures((n) => n + 1);
    }
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => void load(), failures === 0 ? 0 : retryDelay);
    return () => clearTimeout(timer);
  }, [load, failures]);
  // The first paint, which is in index.html, stays until the session is known.
  if (!user) return failures > 0 ? <main className="alone"><h1>Leat</h1><p role="status">The gateway can’t be reached. Retrying…</p></main> : <div className="opening"><strong>Leat</strong></div>;
  if (user.tokenNeeded && !user.authenticated) return <SignIn signedIn={load} />;
  return <Page session={user} signedOut={load} />;
}

function SignIn({ signedIn }: { signedIn: () => Promise<void> }) {
  const [error, setError] = useState("");
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token") as string;
    setError("");
    try {
      await signIn(token);
      await signedIn();
    } catch (err) {
      setError((err as { reason?: string }).reason === "unauthorized" ? "Invalid token" : (err as Error).message);
    }
  };
  return (
    <main className="alone">
      <form onSubmit={(e) => void submit(e)}>
        <h1>Leat</h1>
        <label htmlFor="token">Access token</label>
        <input id="token" name="token" type="password" autoComplete="current-password" required ref={focusOnMount} />
        <button className="primary">Sign in</button>
        <p role="alert" className="bad">{error}</p>
        <details className="muted">
          <summary>Where do I get a token?</summary>
          <p>Ask the person who runs this gateway.</p>
          <p>If you run it: sign in with the API token that it was started with, from <code>LEAT_API_TOKEN</code> or from <code>token</code> in its configuration.
            People whose tokens are accepted under <code>users</code> sign in with the token of your identity service.</p>
        </details>
      </form>
    </main>
  );
}

function Page({ session: user, signedOut }: { session: Session; signedOut: () => Promise<void> }) {
  const at = useStore(route);
  const dark = useStore(theme) === "dark";
  const [rail, setRail] = useState(false);
  const openRail = useCallback(() => setRail(true), []);
  const closeRail = useCallback(() => setRail(false), []);
  const operator = !!user.admin || !user.tokenNeeded;
  const attaches = useStore(list).agents.some((a) => a.sessions);
  useEffect(() => {
    theClient().connect();
    void resumeNotices().catch(() => {}); // the settings show what works
    return follow();
  }, []);
  useEffect(() => receive(), []);
  // If the gateway refuses the token, show the sign-in form again.
  useEffect(() => theClient().onState((s) => {
    if (s === "unauthorized") void signedOut();
  }), [signedOut]);
  useEffect(() => listen(), []);
  const id = at.view === "chat" ? at.id : "";
  useActions(useMemo<Action[]>(() => [
    { group: "Go to", name: "New conversation", key: "new", run: () => { open(""); document.getElementById("composer")?.focus(); } },
    ...(operator ? [{ group: "Go to", name: "Overview", run: openOverview }] : []),
    { group: "Go to", name: "Activity", run: openActivity },
    ...(operator && attaches ? [{ group: "Go to", name: "Attach a session…", run: () => layer.set("attach") }] : []),
    { group: "This page", name: dark ? "Light theme" : "Dark theme", run: toggleTheme },
    { group: "This page", name: "Settings", run: () => layer.set("settings") },
    { group: "This page", name: "Keyboard shortcuts", key: "help", run: () => layer.set("keys") },
    { group: "", name: "", hidden: true, key: "palette", run: () => layer.change((l) => (l === "palette" ? "" : "palette")) },
    { group: "", name: "", hidden: true, key: "previous", run: () => openNeighbour(id, -1) },
    { group: "", name: "", hidden: true, key: "next", run: () => openNeighbour(id, 1) },
  ], [operator, attaches, dark, id]));
  const newId = useNewId(at.view === "chat" ? id : at.view);
  // The list closes on navigation, and when the window gets wide enough to show it next to the conversation.
  const narrow = useNarrow();
  const [railAt, setRailAt] = useState({ at, narrow });
  if (railAt.at !== at || railAt.narrow !== narrow) {
    setRailAt({ at, narrow });
    setRail(false);
  }
  return (
    <div className="layout" data-rail={rail || undefined}>
      <a className="skip" href="#main" onClick={skip}>Skip to content</a>
      <Rail current={id} session={user} opened={rail} open={openRail} close={closeRail} />
      {rail && <div className="shade" onClick={closeRail} />}
      {at.view === "overview"
        ? <main id="main" className="chat" tabIndex={-1}><LazyPart of={at.view} fallback={<div className="talk" aria-busy="true" />}><Overview openRail={openRail} /></LazyPart></main>
        : at.view === "activity"
        ? <main id="main" className="chat" tabIndex={-1}><LazyPart of={at.view} fallback={<div className="talk" aria-busy="true" />}><ActivityView openRail={openRail} isOperator={operator} /></LazyPart></main>
        : <Chat key={id || newId} id={id} newId={newId} attaches={operator && attaches} openRail={openRail} />}
      <LazyPart of="signals"><Signals isOperator={operator} view={at.view} /></LazyPart>
      <Layers />
    </div>
  );
}

// skip focuses the composer, or the whole content where one can't write.
function skip(e: MouseEvent): void {
  e.preventDefault();
  (document.getElementById("composer") ?? document.getElementById("main"))?.focus();
}

// useNewId returns the id that the next new conversation will have. It changes only when the user navigates to a new conversation
// and the previous id is in use: an upload may already have created the conversation that is shown.
function useNewId(view: string): string {
  const [current, setShown] = useState(() => ({ view, id: crypto.randomUUID() }));
  if (current.view === view) return current.id;
  const inUse = current.view === current.id || list.get().conversations.some((c) => c.id === current.id);
  const id = view === "" && inUse ? crypto.randomUUID() : current.id;
  setShown({ view, id });
  return id;
}

// openNeighbour opens the next or previous conversation of the list.
function openNeighbour(id: string, step: number): void {
  const conversations = inOrder(list.get().conversations);
  const i = conversations.findIndex((c) => c.id === id);
  const to = conversations[i < 0 ? (step > 0 ? 0 : conversations.length - 1) : i + step];
  if (to) open(to.id);
}
