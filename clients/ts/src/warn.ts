/** Takes what went wrong without anybody waiting to be told: a sentence, and what was thrown. */
export type Warn = (message: string, cause?: unknown) => void;

/** Where warnings go unless the option warn says otherwise. */
export const toConsole: Warn = (message, ...cause) => console.warn(`leat: ${message}`, ...cause);
