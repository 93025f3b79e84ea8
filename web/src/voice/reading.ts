// Reads an answer aloud: its pieces of speech one after the other, each fetched while the previous one plays.

import type { ReadingControl, ReadingView } from "../chat/reading";
import { readBody, refusal } from "../gateway";

/** The header with the number of pieces of an answer. */
const countHeader = "Leat-Speech-Pieces";

interface Piece { url: string; count: number }

/** Reads an answer aloud. report gets the changes of its state, and undefined at the end. */
export function playAnswer(conversation: string, message: string, report: (update: Partial<ReadingView> | undefined) => void): ReadingControl {
  const path = `api/conversations/${encodeURIComponent(conversation)}/messages/${encodeURIComponent(message)}/speech`;
  const audio = new Audio();
  let isStopped = false;
  let isPaused = false;
  let finish = () => {}; // ends the current piece

  const fetchPiece = async (n: number): Promise<Piece> => {
    const { res, body } = await readBody(`${path}?piece=${n}`);
    if (!res.ok) throw await refusal(res, body);
    return { url: URL.createObjectURL(body), count: Number(res.headers.get(countHeader) ?? 1) };
  };
  // play resolves at the end of the piece.
  const play = (url: string) => new Promise<void>((resolve, reject) => {
    finish = resolve;
    audio.onended = finish;
    audio.onerror = () => reject(new Error("The speech can’t be played."));
    audio.src = url;
    if (!isPaused) start().catch(reject);
  });
  const start = () => audio.play().then(() => report({ state: "playing" }), (err: DOMException) => {
    if (err.name === "NotAllowedError") pause(); // the browser wants the person to press play
    else if (err.name !== "AbortError") throw err;
  });
  const pause = () => {
    isPaused = true;
    audio.pause();
    report({ state: "paused" });
  };
  const run = async () => {
    let next = fetchPiece(0);
    for (let n = 0; ; n++) {
      const { url, count } = await next;
      try {
        if (isStopped) return;
        if (n + 1 < count) {
          next = fetchPiece(n + 1);
          next.catch(() => {}); // awaited when its turn comes
        }
        await play(url);
      } finally {
        URL.revokeObjectURL(url);
      }
      if (isStopped || n + 1 >= count) return;
    }
  };
  run().then(() => isStopped || report(undefined), (err: Error) => isStopped || report({ state: "failed", error: err.message }));

  return {
    pause,
    resume: () => {
      isPaused = false;
      report({ state: "playing" });
      if (audio.src) start().catch((err: Error) => report({ state: "failed", error: err.message }));
    },
    stop: () => {
      isStopped = true;
      audio.onended = audio.onerror = null;
      audio.pause();
      audio.removeAttribute("src");
      finish();
    },
  };
}
