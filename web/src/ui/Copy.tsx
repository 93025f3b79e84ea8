import { useEffect, useState } from "react";

import { Icon } from "./Icon";

/** Copies a text, and says that it did. */
export function CopyButton({ text, what }: { text: string | (() => string); what: string }) {
  const [said, say] = useState("");
  useEffect(() => {
    if (!said) return;
    const t = setTimeout(() => say(""), 2000);
    return () => clearTimeout(t);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      say("Copied");
    } catch {
      say("Couldn’t copy"); // the browser forbids it
    }
  };
  return (
    <button type="button" className="quiet" onClick={() => void copy()} aria-label={said || `Copy ${what}`} title={said || `Copy ${what}`}>
      <Icon name={said === "Copied" ? "tick" : "copy"} />
    </button>
  );
}
