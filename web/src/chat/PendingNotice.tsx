// What becomes of a message that is not in the log yet: it waits, is on its way, or was refused. It stands in its place all the while.

import type { Conversation, NewMessage, Pending } from "@leat/client";
import { type KeyboardEvent, useEffect, useState } from "react";

import { open } from "../route";
import { line } from "./parts/marks";

/** What is acknowledged sooner is not worth a word. */
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
  // Between what is shown and a press on it, a connection may have taken it.
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

// The message is held back until this is done with it.
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
      <textarea aria-label="Message waiting to be sent" value={text} rows={3} autoFocus onChange={(e) => setText(e.target.value)} onKeyDown={keys} />
      <button className="primary">Save</button>
      <button type="button" onClick={() => done()}>Cancel</button>
    </form>
  );
}
