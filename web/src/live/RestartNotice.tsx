// The notice that the gateway needs a restart, with the reasons, and the button for it. Restarting affects everyone, so it is confirmed.

import { useState } from "react";

import { line } from "../chat/parts/marks";
import { call } from "../gateway";
import { focusOnMount } from "../ui/focus";
import { Icon } from "../ui/Icon";

interface RestartNoticeProps { reasons: readonly string[]; isRestarting: boolean; alwaysShown: boolean }

export function RestartNotice({ reasons, isRestarting, alwaysShown }: RestartNoticeProps) {
  const key = reasons.join("\n");
  const [dismissed, setDismissed] = useState("");
  const [step, setStep] = useState<"" | "confirm" | "asked">("");
  const [error, setError] = useState("");
  // The next reasons begin without the state of the last ones.
  const [previousKey, setPreviousKey] = useState(key);
  if (previousKey !== key) {
    setPreviousKey(key);
    setStep("");
    setError("");
  }
  if (reasons.length === 0 || dismissed === key && !alwaysShown) return null;
  const restart = async () => {
    setError("");
    setStep("asked");
    try {
      await call("api/agent/restart", { method: "POST" });
    } catch (err) {
      setStep("");
      setError(err instanceof Error ? err.message : String(err));
    }
  };
  return (
    <section className="restart" aria-label="Restart needed" onKeyDown={(e) => {
      if (e.key !== "Escape" || step !== "confirm") return;
      e.preventDefault();
      setStep("");
    }}>
      <Icon name="again" />
      <div className="words">
        {step === "confirm" ? <p id="restart-text"><strong>Restart the gateway now?</strong> Running answers get time to finish. This page reconnects by itself, and sends what you write meanwhile.</p>
          : step === "asked" || isRestarting ? <p role="status"><strong>Restarting…</strong> Running answers get time to finish.</p>
          : reasons.length === 1 ? <p><strong>Restart needed:</strong> {line(reasons[0]!)}. Until then, the previous setting applies.</p>
          : <><p><strong>Restart needed.</strong> Until then, the previous settings apply:</p><ul>{reasons.map((r) => <li key={r}>{line(r)}</li>)}</ul></>}
        {error && <p role="alert" className="bad">The gateway was not restarted: {line(error)}</p>}
      </div>
      {step === "confirm" ? (
        <div className="acts">
          <button type="button" ref={focusOnMount} onClick={() => setStep("")}>Cancel</button>
          <button type="button" className="danger" aria-describedby="restart-text" onClick={() => void restart()}>Restart</button>
        </div>
      ) : step === "" && !isRestarting && (
        <div className="acts">
          <button type="button" onClick={() => setStep("confirm")}>Restart…</button>
          {!alwaysShown && <button type="button" className="quiet" aria-label="Dismiss" title="Dismiss until the reasons change" onClick={() => setDismissed(key)}><Icon name="close" /></button>}
        </div>
      )}
    </section>
  );
}
