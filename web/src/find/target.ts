import { Store } from "../store";

/** A message that the log is to show; each time it is asked for is another value. */
export interface Target { message: string }

export const target = new Store<Target | undefined>(undefined);
