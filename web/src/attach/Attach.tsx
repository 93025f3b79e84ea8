// Attaches a session of an agent's upstream as a conversation. Operators only.

import { useEffect, useState } from "react";

import { call } from "../gateway";
import { list } from "../list";
import { open } from "../route";
import { useStore } from "../store";
import { ago } from "../time";
import { Sheet } from "../ui/Sheet";
import "./attach.css";

interface Session { id: string; title?: string; updated?: string }

const pathOf = (agent: string) => `api/agents/${encodeURIComponent(agent)}/sessions`;

export default function Attach({ close }: { close: () => void }) {
  const agents = useStore(list).agents.filter((a) => a.sessions);
  const [agent, setAgent] = useState(agents[0]?.name ?? "");
  const [answer, setAnswer] = useState<{ agent: string; sessions?: readonly Session[]; error?: string }>();
  const [query, seek] = useState("");
  const [selection, choose] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useEffect(() => {
    let current = true;
    call<{ sessions: Session[] }>(pathOf(agent)).then(
      ({ sessions }) => current && setAnswer({ agent, sessions }),
      (err: Error) => current && setAnswer({ agent, error: err.message }),
    );
    return () => {
      current = false;
    };
  }, [agent]);
  const { sessions, error: loadError } = answer?.agent === agent ? answer : {};
  const submit = async (form: FormData) => {
    setBusy(true);
    setError("");
    try {
      const { conversation } = await call<{ conversation: string }>(pathOf(agent), {
        method: "POST", json: { session: selection, owner: form.get("owner"), tenant: form.get("tenant"), history: form.get("history") !== null },
      });
      open(conversation);
      close();
    } catch (err) {
      setError((err as Error).message);
      setBusy(false);
    }
  };
  const words = query.toLowerCase();
  const matches = sessions?.filter((s) => `${s.title ?? ""} ${s.id}`.toLowerCase().includes(words)) ?? [];
  return (
    <Sheet name="Attach a session" className="attach" close={close}>
      <form onSubmit={(e) => { e.preventDefault(); void submit(new FormData(e.currentTarget)); }}>
        {agents.length > 1 && (
          <label>Agent <select value={agent} onChange={(e) => { setAgent(e.target.value); choose(""); setError(""); }}>{agents.map((a) => <option key={a.name}>{a.name}</option>)}</select></label>
        )}
        <input type="search" data-first placeholder="Find a session" aria-label="Find a session" value={query} onChange={(e) => seek(e.target.value)} />
        <fieldset className="sessions" aria-busy={!sessions && !loadError}>
          <legend className="unseen">Sessions</legend>
          {matches.map((s) => (
            <label key={s.id}><input type="radio" name="session" checked={selection === s.id} onChange={() => choose(s.id)} />
              <span><bdi>{s.title || s.id}</bdi>{s.title && <span className="muted"> <bdi>{s.id}</bdi></span>}</span>{s.updated && <time className="muted" dateTime={s.updated}>{ago(s.updated)}</time>}</label>
          ))}
          {sessions && matches.length === 0 && <p className="muted">{sessions.length === 0 ? "The agent has no sessions." : `No results for “${query}”`}</p>}
          {!sessions && !loadError && <p className="muted">Loading sessions…</p>}
        </fieldset>
        <label><input type="checkbox" name="history" defaultChecked /> <span>Import the session’s history</span></label>
        <details>
          <summary>For another user</summary>
          <label>User <input name="owner" autoComplete="off" /></label>
          <label>Tenant <input name="tenant" autoComplete="off" /></label>
          <p className="muted">The conversation and its messages belong to this user. Otherwise they are yours.</p>
        </details>
        {(error || loadError) && <p role="alert" className="bad">{error || loadError}</p>}
        <footer><button type="button" onClick={close}>Cancel</button><button className="primary" disabled={!selection || busy}>{busy ? "Attaching…" : "Attach"}</button></footer>
      </form>
    </Sheet>
  );
}
