// Who answers the next message of a conversation, where a person has chosen another agent than its own; and what is known of agents
// that take no messages while they answer.

import { persistent, Store, useStore } from "../store";

type Choices = Readonly<Record<string, string>>;

/** How many choices are kept. */
const maxChoices = 100;

const choices = persistent<Choices>("agents", {}, (v): v is Choices => typeof v === "object" && v !== null && Object.values(v).every((a) => typeof a === "string"));

/** Chooses who answers from now on; "" is whoever answers by itself. "" as the conversation is the next new one. */
export function choose(conversation: string, agent: string): void {
  choices.change(({ [conversation]: _, ...rest }) => Object.fromEntries([...Object.entries(rest), ...(agent ? [[conversation, agent] as const] : [])].slice(-maxChoices)));
}

export const useChosen = (conversation: string): string => useStore(choices)[conversation] ?? "";

/** Agents that were given a message while they answered, and let it wait. */
export const unsteerable = new Store<ReadonlySet<string>>(new Set());
