// The delivery state of a user's message: being sent, waiting, passed to a running turn, or refused.

import type { Conversation, Message, Pending, Turn } from "@leat/client";

import { takenBack } from "./nesting";
import { line } from "./parts/marks";
import { PendingNotice } from "./PendingNotice";

interface FateProps { conversation: Conversation; message: Message; pending: Pending | undefined; turn: Turn | undefined; change: (m: Message) => void }

/** turn is the turn that answers the message. change moves the message's text back to the composer. */
export function Delivery({ conversation, message: m, pending, turn, change }: FateProps) {
  if (pending) return <PendingNotice conversation={conversation} pending={pending} />;
  switch (m.state) {
    case "queued": {
      if (turn?.state === "ended") return <p className="note">{takenBack(turn) ? "Cancelled before an agent received it" : "Not sent to an agent"}</p>;
      const cancel = () => conversation.stop(turn?.id ?? m.stateTurn!);
      return (
        <p className="note">Queued{m.stateTurn && <>{" "}
          <button type="button" className="link" onClick={() => void cancel().then(() => change(m), () => {})}>Edit</button>{" "}
          <button type="button" className="link" onClick={() => void cancel().catch(() => {})}>Cancel</button></>}
        </p>
      );
    }
    case "steered":
      return <p className="note">Added to the current answer</p>;
    case "joined":
      return <p className="note">Answered together with the previous message</p>;
    case "rejected":
      return <p className="note bad">Rejected{m.stateReason ? `: ${line(m.stateReason)}` : ""}</p>;
    default:
      return null;
  }
}
