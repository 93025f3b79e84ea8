// The settings of this browser, and the signed-in user.

import { NoticeSwitch } from "../notices/NoticeSwitch";
import { useStore } from "../store";
import { type ThemeChoice, themeChoice, themes } from "../theme";
import { Sheet } from "../ui/Sheet";
import { Account } from "./Account";
import "./settings.css";
import { type ReadAloud, readAloud, readings, shortcutsOn } from "./settings";

const words: Record<ReadAloud, [string, string]> = {
  end: ["At the end", "The whole answer when it is complete."],
  sentence: ["By sentence", "Whole sentences while the answer grows, at most every three seconds."],
  off: ["Off", "Only when an answer starts and when it is complete."],
};

const themeWords: Record<ThemeChoice, [string, string]> = {
  system: ["System", "Follows the setting of this device."],
  light: ["Light", ""],
  dark: ["Dark", ""],
};

export default function Settings({ close }: { close: () => void }) {
  const readMode = useStore(readAloud);
  const on = useStore(shortcutsOn);
  const choice = useStore(themeChoice);
  return (
    <Sheet name="Settings" close={close}>
      <fieldset>
        <legend>Theme</legend>
        {themes.map((t) => (
          <label key={t}><input type="radio" name="theme" checked={choice === t} onChange={() => themeChoice.set(t)} />
            <span><strong>{themeWords[t][0]}</strong>{themeWords[t][1] && <span className="muted"> {themeWords[t][1]}</span>}</span></label>
        ))}
      </fieldset>
      <NoticeSwitch />
      <fieldset>
        <legend>Read answers</legend>
        <p className="muted">When a screen reader reads answers aloud. Questions and errors are always announced.</p>
        {readings.map((r) => (
          <label key={r}><input type="radio" name="reading" checked={readMode === r} onChange={() => readAloud.set(r)} />
            <span><strong>{words[r][0]}</strong><span className="muted"> {words[r][1]}</span></span></label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Keyboard shortcuts</legend>
        <label><input type="checkbox" checked={on} onChange={(e) => shortcutsOn.set(e.target.checked)} />
          <span><strong>Use keyboard shortcuts</strong><span className="muted"> Enter and the arrow keys work without them too.</span></span></label>
      </fieldset>
      <Account />
    </Sheet>
  );
}
