import type { Agent } from "@leat/client";

import { list, refresh } from "../list";
import { useStore } from "../store";
import { Icon } from "../ui/Icon";
import { Menu, type MenuGroup } from "../ui/Menu";
import { choose, useChosen } from "./chosen";

const states: Partial<Record<NonNullable<Agent["state"]>, string>> = { up: "Available", down: "Unavailable", failing: "Failing", starting: "Starting" };

/** The agents that can answer the next message of a conversation, as a part of a menu. ownAgent is the conversation's agent; "" is the default. */
export interface AgentChoice { group: MenuGroup; current: string; fixed: boolean }

export function useAgentChoice(conversation: string, ownAgent: string): AgentChoice {
  const { agents } = useStore(list);
  const choice = useChosen(conversation);
  const usual = ownAgent || agents.find((a) => a.default)?.name || "";
  const names = agents.map((a) => a.name);
  const current = names.includes(choice) ? choice : usual;
  const isMissing = !names.includes(usual);
  const items = [
    ...(isMissing ? [{ name: usual || "No agent", hint: "Unavailable", bad: true, text: "It’s no longer configured.", checked: current === usual, run: () => choose(conversation, "") }] : []),
    ...agents.map((a) => ({
      name: a.name, hint: a.state && states[a.state], bad: a.state === "down" || a.state === "failing", checked: a.name === current,
      text: [a.description, a.reason ?? (a.state === "down" ? "It couldn’t be reached." : a.state === "failing" ? "Its last answers failed." : undefined)].filter(Boolean).join(" ") || (a.name === usual && !ownAgent ? "Default" : undefined),
      run: () => choose(conversation, a.name === usual ? "" : a.name),
    })),
  ];
  return { group: { name: "Agent", items }, current, fixed: agents.length === 0 || agents.length < 2 && !isMissing };
}

/** Selects the agent for the next message. */
export function AgentPicker({ choice: { group, current, fixed } }: { choice: AgentChoice }) {
  if (fixed) return null;
  const isBad = group.items.some((i) => i.checked && i.bad);
  return (
    <Menu label="Agent" value={current || "none"} className="quiet agent" title="Agent for the next message" groups={[group]} onOpen={() => void refresh()}>
      {isBad && <span className="dot failed" />}<bdi>{current || "No agent"}</bdi><Icon name="fold" />
    </Menu>
  );
}
