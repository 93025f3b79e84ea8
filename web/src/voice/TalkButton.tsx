import { useEffect, useMemo } from "react";

import { shortcutsOn } from "../settings/settings";
import { Icon } from "../ui/Icon";
import type { Call } from "./call";
import { HoldButton } from "./hold";

/** Reports whether the space bar does something else in an element: it types, presses or selects. */
const usesSpace = (target: EventTarget | null): boolean => target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select, button, a, summary, [role=slider], audio, video"));

/** The button of push-to-talk mode. The space bar does the same where it has no other use. */
export function TalkButton({ call, isHearing, disabled }: { call: Call; isHearing: boolean; disabled: boolean }) {
  const hold = useMemo(() => new HoldButton(() => call.hold(), () => call.release()), [call]);
  useEffect(() => {
    const isTalkKey = (e: KeyboardEvent) => e.key === " " && !e.ctrlKey && !e.metaKey && !e.altKey && !usesSpace(e.target) && shortcutsOn.get();
    const keyDown = (e: KeyboardEvent) => {
      if (!isTalkKey(e) || e.defaultPrevented) return;
      e.preventDefault(); // the page would scroll
      hold.press(e.timeStamp);
    };
    const keyUp = (e: KeyboardEvent) => {
      if (e.key === " ") hold.lift(e.timeStamp);
    };
    const leave = () => hold.cancel();
    document.addEventListener("keydown", keyDown);
    document.addEventListener("keyup", keyUp);
    addEventListener("blur", leave);
    return () => {
      document.removeEventListener("keydown", keyDown);
      document.removeEventListener("keyup", keyUp);
      removeEventListener("blur", leave);
      hold.cancel();
    };
  }, [hold]);
  return (
    <button type="button" className="talk-button" data-first aria-pressed={isHearing} disabled={disabled} title="Hold to talk, or tap to start and stop"
      onPointerDown={(e) => { e.currentTarget.setPointerCapture(e.pointerId); hold.press(e.timeStamp); }} onPointerUp={(e) => hold.lift(e.timeStamp)} onPointerCancel={() => hold.cancel()}
      onKeyDown={(e) => { if (e.key === " " || e.key === "Enter") { e.preventDefault(); hold.press(e.timeStamp); } }} onKeyUp={(e) => { if (e.key === " " || e.key === "Enter") hold.lift(e.timeStamp); }}
      onClick={(e) => { if (e.detail === 0) hold.click(); }} onContextMenu={(e) => e.preventDefault()}>
      <Icon name="microphone" /> {isHearing ? "Release to send" : "Hold to talk"}
    </button>
  );
}
