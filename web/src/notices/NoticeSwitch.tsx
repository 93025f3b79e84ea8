// The switch for notifications, and why they work or don't.

import { useStore } from "../store";
import { notices, type Reach, turnOff, turnOn } from "./notices";

const words: Record<Reach, string> = {
  off: "Shown when this page is in the background or closed. They name the conversation, and contain nothing of the answer.",
  push: "On, also when this page is closed.",
  page: "On while this page is open in the background. This browser has no push service, so nothing is shown when the page is closed.",
  denied: "Blocked in this browser. Allow notifications for this site in the browser’s settings, then load the page again.",
  insecure: "They need HTTPS, or a gateway on this machine.",
  unsupported: "This browser doesn’t support notifications. On an iPhone or iPad, add this page to the home screen first.",
};

export function NoticeSwitch() {
  const { reach, isBusy, error } = useStore(notices);
  const isOn = reach === "push" || reach === "page";
  const isPossible = isOn || reach === "off";
  return (
    <fieldset>
      <legend>Notifications</legend>
      <label><input type="checkbox" checked={isOn} disabled={!isPossible || isBusy} aria-describedby="notices-state" onChange={() => void (isOn ? turnOff() : turnOn())} />
        <span><strong>When an answer ends or needs you</strong><span id="notices-state" className="muted" role="status"> {isBusy ? "One moment…" : words[reach]}</span></span></label>
      {error && <p role="alert" className="bad">Notifications can’t be changed: {error}.</p>}
    </fieldset>
  );
}
