import { list } from "../list";
import { useStore } from "../store";
import { choose, useChosen } from "./chosen";

/** Selects the agent for the next message. own is the conversation's agent; "" is the gateway's default. */
export function AgentPicker({ conversation, own }: { conversation: string; own: string }) {
  const { agents } = useStore(list);
  const choice = useChosen(conversation);
  const usual = own || agents.find((a) => a.default)?.name || "";
  if (agents.length < 2 && agents.some((a) => a.name === usual)) return conversation && own ? <span className="muted agent">{own}</span> : null;
  if (agents.length === 0) return null;
  const names = agents.map((a) => a.name);
  const current = names.includes(choice) ? choice : usual;
  return (
    <label className="agent"><span className={conversation ? "unseen" : undefined}>Agent</span>{" "}
      <select value={current} title={conversation ? "Agent" : undefined} onChange={(e) => choose(conversation, e.target.value === usual ? "" : e.target.value)}>
        {!names.includes(usual) && <option value={usual}>{usual || "no agent"} (unavailable)</option>}
        {agents.map((a) => <option key={a.name} value={a.name}>{a.name}{a.name === usual && !own ? " (default)" : ""}</option>)}
      </select>
    </label>
  );
}
