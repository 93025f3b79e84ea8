// The agent that the user has chosen for the next message of a conversation, and the agents that have turned out not to accept
// messages during a turn.

import { persistent, Store, useStore } from "../store";

type Choices = Readonly<Record<string, string>>;

/** How many choices are kept. */
const maxChoices = 100;

const choices = persistent<Choices>("agents", {}, (v): v is Choices => typeof v === "object" && v !== null && Object.values(v).every((a) => typeof a === "string"));

/** Chooses the agent for the next messages; "" is the conversation's own agent. The conversation "" is the next new one. */
export function choose(conversation: string, agent: string): void {
  choices.change(({ [conversation]: _, ...remaining }) => Object.fromEntries([...Object.entries(remaining), ...(agent ? [[conversation, agent] as const] : [])].slice(-maxChoices)));
}

export const useChosen = (conversation: string): string => useStore(choices)[conversation] ?? "";

/** Agents that were given a message while they answered, and let it wait. */
export const unsteerable = new Store<ReadonlySet<string>>(new Set());
