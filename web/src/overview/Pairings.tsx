// The people who want to talk to a channel and are not admitted yet.

import { useEffect, useState } from "react";

import { line } from "../chat/parts/marks";
import { call } from "../gateway";

/** A request to be admitted, as `leat channels` shows it. */
interface Pairing { code: string; channel: string; sender: string; name: string }

/** How often the requests are read, in milliseconds. */
const period = 5_000;

/** Renders nothing if nobody wants to be admitted. now is the time of the last reading, so a hidden page reads nothing. */
export function Pairings({ now }: { now: number }) {
  const [requests, setRequests] = useState<readonly Pairing[]>([]);
  const [result, setResult] = useState("");
  const turn = Math.floor(now / period);
  useEffect(() => {
    let isOver = false;
    call<{ pairings: Pairing[] }>("api/channels").then(
      (list) => { if (!isOver) setRequests(list.pairings); },
      () => undefined, // the readings of the page show that the gateway can't be reached
    );
    return () => { isOver = true; };
  }, [turn]);
  const admit = async (p: Pairing) => {
    try {
      await call("api/channels/allow", { method: "POST", json: { code: p.code } });
      setRequests((list) => list.filter((o) => o.code !== p.code));
      setResult(`${line(p.name || p.sender)} may talk to ${line(p.channel)} now.`);
    } catch (e) {
      setResult(e instanceof Error ? e.message : String(e));
    }
  };
  if (requests.length === 0 && !result) return null;
  return (
    <section aria-labelledby="pairings">
      <h2 id="pairings">Want to talk</h2>
      <p role="status" className="muted">{result}</p>
      {requests.length > 0 && (
        <div className="table" tabIndex={0} role="group" aria-label="People who want to talk">
          <table>
            <thead><tr><th scope="col">Name</th><th scope="col">Id</th><th scope="col">Channel</th><th scope="col">Code</th><th scope="col">Admit</th></tr></thead>
            <tbody>{requests.map((p) => (
              <tr key={p.code}>
                <th scope="row">{line(p.name) || "–"}</th><td>{line(p.sender)}</td><td>{line(p.channel)}</td><td><code>{p.code}</code></td>
                <td><button type="button" className="quiet" aria-label={`Admit ${line(p.name || p.sender)}`} onClick={() => void admit(p)}>Admit</button></td>
              </tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}
