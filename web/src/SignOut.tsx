// The button for signing out. It deletes the user's data in this browser, so it warns about unsent messages and drafts first.

import { useLayoutEffect, useRef, useState } from "react";

import { leave, unsent } from "./account";
import { signOut } from "./gateway";
import { wantsNotices } from "./notices/switch";
import { focusOnMount } from "./ui/focus";
import { Icon } from "./ui/Icon";

export function SignOut({ className = "quiet wide" }: { className?: string }) {
  const [warning, setLost] = useState("");
  const [error, setError] = useState("");
  const button = useRef<HTMLButtonElement>(null);
  const restoreFocus = useRef(false);
  useLayoutEffect(() => {
    if (!warning && restoreFocus.current) button.current?.focus();
    restoreFocus.current = warning !== "";
  }, [warning]);
  const confirm = async () => {
    setError("");
    try {
      if (wantsNotices.get()) await (await import("./notices/notices")).release(); // this needs the user's credentials
      await signOut();
    } catch (err) {
      setLost("");
      setError(`You are still signed in: ${(err as Error).message}.`); // scripts can't drop the cookie
      return;
    }
    leave();
  };
  if (warning) {
    return (
      <div className="sure" role="group" aria-label="Sign out?" onKeyDown={(e) => {
        if (e.key !== "Escape") return;
        e.preventDefault();
        setLost("");
      }}>
        <span role="alert">{warning} Signing out deletes unsent messages and drafts.</span>
        <button type="button" ref={focusOnMount} onClick={() => setLost("")}>Cancel</button>
        <button type="button" className="danger" onClick={() => void confirm()}>Sign out</button>
      </div>
    );
  }
  return (
    <>
      {error && <p role="alert" className="bad">{error}</p>}
      <button ref={button} type="button" className={className} title="Sign out" onClick={() => {
        const summary = unsentSummary(unsent());
        if (summary) setLost(summary);
        else void confirm();
      }}><Icon name="out" /><span className="label">Sign out</span></button>
    </>
  );
}

const count = (n: number, noun: string) => (n === 1 ? `One ${noun}` : `${n} ${noun}s`);

/** Describes the unsent messages and drafts; "" if there are none. */
export function unsentSummary({ messages, drafts }: { messages: number; drafts: number }): string {
  return [
    ...(messages > 0 ? [`${count(messages, "message")} ${messages === 1 ? "has" : "have"} not been sent.`] : []),
    ...(drafts > 0 ? [`${count(drafts, "draft")} ${drafts === 1 ? "is" : "are"} saved here.`] : []),
  ].join(" ");
}
