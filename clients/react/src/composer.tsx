// The input for a message, with Stop while a turn runs.

import { type ComponentPropsWithoutRef, useState } from "react";

import { useThread } from "./context.js";

export interface ComposerProps extends Omit<ComponentPropsWithoutRef<"form">, "children" | "onSubmit"> {
  placeholder?: string;
}

/** A form that sends its text: Enter sends, Shift+Enter begins a line. A message can be sent without a connection; it waits for one. */
export function Composer({ placeholder = "Write a message", ...props }: ComposerProps) {
  const { conversation, busy, phase } = useThread();
  const [text, setText] = useState("");
  const isEmpty = text.trim() === "";
  const send = () => {
    if (isEmpty || phase === "gone") return;
    void conversation.send(text); // a refusal is shown among the messages
    setText("");
  };
  return (
    <form {...props} onSubmit={(e) => {
      e.preventDefault();
      send();
    }}>
      <textarea aria-label="Message" placeholder={placeholder} rows={1} value={text} onChange={(e) => setText(e.target.value)} onKeyDown={(e) => {
        if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing) return;
        e.preventDefault();
        send();
      }} />
      {busy && <button type="button" onClick={() => void conversation.stop().catch(() => {})}>Stop</button>}
      <button type="submit" disabled={isEmpty || phase === "gone"}>Send</button>
    </form>
  );
}
