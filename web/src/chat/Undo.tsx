// After a question was edited or sent again, what that removed can be brought back for ten seconds.

import type { Conversation } from "@leat/client";
import { useEffect, useState } from "react";

import { useNow } from "../ui/Clock";

/** A removal that can be undone: its seq, what was removed, and until when, in epoch milliseconds. */
export interface Removal { seq: number; text: string; until: number }

/** How long the page offers to undo a removal, in milliseconds. The gateway accepts it for longer. */
export const undoTime = 10_000;

interface UndoProps { conversation: Conversation; removal: Removal; close: () => void; fail: (message: string) => void }

export function Undo({ conversation, removal, close, fail }: UndoProps) {
  const [isBusy, setBusy] = useState(false);
  const seconds = Math.min(undoTime / 1000, Math.max(0, Math.ceil((removal.until - useNow()) / 1000))); // the page's clock may be a moment behind
  useEffect(() => {
    if (isBusy) return;
    const timer = setTimeout(close, Math.max(0, removal.until - Date.now()));
    return () => clearTimeout(timer);
  }, [removal, close, isBusy]);
  const undo = () => {
    setBusy(true);
    conversation.restore(removal.seq).catch((err: Error) => fail(err.message)).finally(close);
  };
  return (
    <div className="undo">
      <p className="column">
        <span role="status">{removal.text}</span>{" "}
        <button type="button" className="link" disabled={isBusy} onClick={undo}>Undo</button>{" "}
        {!isBusy && <span className="muted" aria-hidden="true">{seconds} s</span>}
      </p>
    </div>
  );
}
