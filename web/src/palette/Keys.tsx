// The list of keyboard shortcuts.

import { legend, shortcuts } from "../keys";
import { shortcutsOn } from "../settings/settings";
import { useStore } from "../store";
import { Sheet } from "../ui/Sheet";

const groups: [string, readonly (readonly [readonly string[], string])[]][] = [
  ["Anywhere", Object.values(shortcuts).map((s) => [s.keys, s.says] as const)],
  ["In the message field", [
    [["Enter"], "Send. While an answer runs: add to it if the agent can, otherwise queue"],
    [["Mod", "Enter"], "While an answer runs: queue, or stop it and send"],
    [["Shift", "Enter"], "New line"],
    [["ArrowUp"], "In an empty field: edit your last message"],
    [["Mod", "Shift", "V"], "Paste a long text as text instead of a file"],
  ]],
  ["In the conversation", [
    [["ArrowUp"], "Previous message"], [["ArrowDown"], "Next message"],
    [["Enter"], "Move to the buttons of a message"], [["Escape"], "Back to the message"],
  ]],
];

export default function Keys({ close }: { close: () => void }) {
  const on = useStore(shortcutsOn);
  return (
    <Sheet name="Keyboard shortcuts" close={close}>
      <label><input type="checkbox" checked={on} onChange={(e) => shortcutsOn.set(e.target.checked)} /><span>Use keyboard shortcuts</span></label>
      {groups.map(([group, entries]) => (
        <section key={group} aria-label={group}>
          <h3>{group}{group === "Anywhere" && !on ? " (off)" : ""}</h3>
          <dl className="keys">
            {entries.map(([keys, says]) => (
              <div key={says} className="pair"><dt>{keys.map((k) => <kbd key={k}>{legend(k)}</kbd>)}</dt><dd>{says}</dd></div>
            ))}
          </dl>
        </section>
      ))}
      <p className="muted">{legend("Mod")}+F is the browser’s find: in a long conversation it covers only the loaded part.</p>
    </Sheet>
  );
}
