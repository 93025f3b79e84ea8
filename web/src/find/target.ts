import { Store } from "../store";

/** A message for the log to show. Each request is a new object. */
export interface Target { message: string }

export const target = new Store<Target | undefined>(undefined);
