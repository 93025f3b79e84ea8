// What the gateway reports on every page: that it needs a restart, and the agent's emote.

import { useEffect } from "react";

import { useStore } from "../store";
import { EmoteLabel } from "./EmoteLabel";
import { activity } from "./feed";
import { follow } from "./follow";
import { RestartNotice } from "./RestartNotice";
import "./signals.css";

export default function Signals({ isOperator, view }: { isOperator: boolean; view: string }) {
  useEffect(() => follow(isOperator), [isOperator]);
  const a = useStore(activity);
  return (
    <>
      {isOperator && a && <RestartNotice reasons={a.reasons} isRestarting={a.agentState === "restarting"} alwaysShown={view === "activity"} />}
      {a?.emote && <EmoteLabel key={a.emote.number} emote={a.emote} agent={a.agent} />}
    </>
  );
}
