// The state of a message that the log doesn't contain yet: waiting, being sent, or refused. It is shown in the message's final
// place.

import type { Conversation, NewMessage, Pending } from "@leat/client";
import { type KeyboardEvent, useEffect, useState } from "react";

import { open } from "../route";
import { focusOnMount } from "../ui/focus";
import { line } from "./parts/marks";

/** A message that is acknowledged sooner shows no notice. Milliseconds. */
const noticeDelay = 400;

export function PendingNotice({ conversation, pending: p }: { conversation: Conversation; pending: Pending }) {
  const [isSlow, setLate] = useState(() => Date.now() - p.at > noticeDelay);
  const [editing, setEditing] = useState(false);
  const [tooLate, setTooLate] = useState(false);
  useEffect(() => {
    if (isSlow) return;
    const timer = setTimeout(() => setLate(true), noticeDelay);
    return () => clearTimeout(timer);
  }, [isSlow]);
  if (p.error) {
    return (
      <p className="note bad">Not sent: {line(p.error.message)}{" "}
        <button type="button" className="link" onClick={() => void conversation.retry(p.key).catch(() => {})}>Retry</button>{" "}
        <button type="button" className="link" onClick={() => conversation.discard(p.key)}>Discard</button>
      </p>
    );
  }
  if (editing) {
    return <Change message={p.message} done={(m) => {
      conversation.release(p.key, m);
      setEditing(false);
    }} />;
  }
  if (!isSlow) return null;
  if (!p.unsent) return <p className="note">Sending{tooLate && "; it can no longer be changed"}</p>;
  // The message may have been sent between the render and the click.
  return (
    <p className="note">Waiting to be sent{" "}
      <button type="button" className="link" onClick={() => (conversation.hold(p.key) ? setEditing(true) : setTooLate(true))}>Edit</button>{" "}
      <button type="button" className="link" onClick={() => (conversation.discard(p.key) ? leave(conversation) : setTooLate(true))}>Delete</button>
    </p>
  );
}

// If the discarded message would have created the conversation, there is nothing left to show: open a new one.
function leave(conversation: Conversation): void {
  const { phase, messages, pending } = conversation.state;
  if (phase === "loading" && messages.length === 0 && pending.length === 0) open("", "replace");
}

// Change holds the message back until it is unmounted.
function Change({ message, done }: { message: NewMessage; done: (m?: NewMessage) => void }) {
  const [text, setText] = useState(message.text ?? "");
  const save = () => done(text.trim() || message.parts?.length ? { ...message, text } : undefined);
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Enter" && !e.shiftKey && !e.nativeEvent.isComposing && e.keyCode !== 229) {
      e.preventDefault();
      save();
    } else if (e.key === "Escape") {
      e.stopPropagation();
      done();
    }
  };
  return (
    <form className="change" onSubmit={(e) => { e.preventDefault(); save(); }}>
      <textarea aria-label="Message waiting to be sent" value={text} rows={3} ref={focusOnMount} onChange={(e) => setText(e.target.value)} onKeyDown={keys} />
      <button className="primary">Save</button>
      <button type="button" onClick={() => done()}>Cancel</button>
    </form>
  );
}
