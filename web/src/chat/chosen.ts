// The agent that the user has chosen for the next message of a conversation, and the agents that have turned out not to accept
// messages during a turn.

import { persistent, Store, useStore } from "../store";

type Choices = Readonly<Record<string, string>>;

/** The number of remembered selections. */
const maxChoices = 100;

const choices = persistent<Choices>("agents", {}, (v): v is Choices => typeof v === "object" && v !== null && Object.values(v).every((a) => typeof a === "string"));

/** Selects the agent for the next messages; "" is the conversation's own agent. The conversation "" is the next new one. */
export function choose(conversation: string, agent: string): void {
  choices.change(({ [conversation]: _, ...remaining }) => Object.fromEntries([...Object.entries(remaining), ...(agent ? [[conversation, agent] as const] : [])].slice(-maxChoices)));
}

export const useChosen = (conversation: string): string => useStore(choices)[conversation] ?? "";

/** Agents that queued a message although the page expected them to accept it during their turn. */
export const unsteerable = new Store<ReadonlySet<string>>(new Set());
