// The requests that were answered on this page. The transcript has the answers, and their users if these are signed in.

const maxEntries = 100;
const answeredHere = new Set<string>();

/** Records whether the answer to a request was given on this page. */
export function noteMine(turn: string, request: string, isGiven: boolean): void {
  if (isGiven) answeredHere.add(`${turn} ${request}`);
  else answeredHere.delete(`${turn} ${request}`);
  for (const key of answeredHere) if (answeredHere.size > maxEntries) answeredHere.delete(key);
}

export const isMine = (turn: string, request: string): boolean => answeredHere.has(`${turn} ${request}`);
