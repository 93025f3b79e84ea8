import { useEffect, useState } from "react";

import { Icon } from "./Icon";

/** A button that copies a text and confirms it. */
export function CopyButton({ text, what }: { text: string | (() => string); what: string }) {
  const [feedback, say] = useState("");
  useEffect(() => {
    if (!feedback) return;
    const t = setTimeout(() => say(""), 2000);
    return () => clearTimeout(t);
  }, [feedback]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      say("Copied");
    } catch {
      say("Couldn’t copy"); // the browser forbids it
    }
  };
  return (
    <button type="button" className="quiet" onClick={() => void copy()} aria-label={feedback || `Copy ${what}`} title={feedback || `Copy ${what}`}>
      <Icon name={feedback === "Copied" ? "tick" : "copy"} />
    </button>
  );
}
