import { useStore } from "../store";
import { Icon } from "../ui/Icon";
import { pauseReading, readingView, resumeReading, startReading, stopReading } from "./reading";

/** Reads an answer aloud, with the gateway's speech engine. */
export function ReadAloud({ conversation, message }: { conversation: string; message: string }) {
  const view = useStore(readingView);
  const { state, error } = view.message === message ? view : { state: "idle" as const, error: "" };
  const isActive = state === "loading" || state === "playing" || state === "paused";
  // The first button keeps its place and its focus in all states.
  const [label, icon, act] = state === "paused" ? ["Continue reading", "play", resumeReading] as const
    : isActive ? ["Pause reading", "pause", pauseReading] as const
    : ["Read aloud", "speaker", () => void startReading(conversation, message)] as const;
  return (
    <span className="reading" data-state={state} role="group" aria-label="Read aloud">
      <button type="button" className="quiet" aria-label={label} title={label} aria-busy={state === "loading" || undefined} onClick={act}><Icon name={icon} /></button>
      {isActive && <button type="button" className="quiet" aria-label="Stop reading" title="Stop reading" onClick={stopReading}><Icon name="stop" /></button>}
      {error && <span className="bad" role="alert">{error}</span>}
    </span>
  );
}
