// The sessions and models that the upstreams of agents offer, with the settings that use them.

import { useState } from "react";

import { line } from "../chat/parts/marks";
import { call } from "../gateway";
import { CopyButton } from "../ui/Copy";

/** An agent, session or model of an upstream, with the setting that uses it. */
interface Offer { what: string; id: string; name?: string; updated?: string; spec: string }

export function Offers({ agents }: { agents: readonly string[] }) {
  const [of, setOf] = useState("");
  const [offers, setOffers] = useState<Offer[]>();
  const [error, setError] = useState("");
  const ask = async (name: string) => {
    setOf(name);
    setOffers(undefined);
    setError("");
    try {
      setOffers((await call<{ offers: Offer[] }>(`api/agents/${encodeURIComponent(name)}/discover`, { method: "POST", json: {} })).offers);
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e));
    }
  };
  return (
    <section aria-labelledby="offers">
      <h2 id="offers">Discover</h2>
      <p className="muted">List the agents, sessions or models that an agent’s upstream offers.</p>
      <p>{agents.map((name) => <button key={name} type="button" className="quiet" aria-pressed={of === name} onClick={() => void ask(name)}>{line(name)}</button>)}</p>
      <div role="status">
        {of && !offers && !error && <p className="muted">Asking {line(of)}…</p>}
        {error && <p className="bad">{line(error)}</p>}
        {offers?.length === 0 && <p className="muted">{line(of)} offers no agents, sessions or models.</p>}
      </div>
      {offers && offers.length > 0 && (
        <div className="table" tabIndex={0} role="group" aria-label={`Offered by ${line(of)}`}>
          <table>
            <thead><tr><th scope="col">Kind</th><th scope="col">Id</th><th scope="col">Name</th><th scope="col">Updated</th><th scope="col">Setting</th></tr></thead>
            <tbody>{offers.map((o) => (
              <tr key={`${o.what} ${o.id}`}>
                <td>{o.what}</td><th scope="row"><code>{line(o.id)}</code></th><td>{line(o.name ?? "")}</td>
                <td>{o.updated ? new Date(o.updated).toLocaleString() : "–"}</td><td><CopyButton text={() => o.spec} what="setting" /></td>
              </tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}
