/** Receives warnings about failures that no caller awaits: a sentence, and the thrown value. */
export type Warn = (message: string, cause?: unknown) => void;

/** The default for the option warn. */
export const toConsole: Warn = (message, ...cause) => console.warn(`leat: ${message}`, ...cause);
