// The sheet of all keys.

import { legend, shortcuts } from "../keys";
import { shortcutsOn } from "../settings/settings";
import { useStore } from "../store";
import { Sheet } from "../ui/Sheet";

const groups: [string, readonly (readonly [readonly string[], string])[]][] = [
  ["Anywhere", Object.values(shortcuts).map((s) => [s.keys, s.says] as const)],
  ["Where you write", [
    [["Enter"], "Send; while an answer runs: into it where its agent can take it, else after it"],
    [["Mod", "Enter"], "While an answer runs, the other way: after it, or stop it and send"],
    [["Shift", "Enter"], "Begin a line"],
    [["ArrowUp"], "In an empty message: change your last one and ask again"],
    [["Mod", "Shift", "V"], "Paste a long text as text, not as a file"],
  ]],
  ["In the conversation", [
    [["ArrowUp"], "The message above"], [["ArrowDown"], "The message below"],
    [["Enter"], "Into a message, to its buttons"], [["Escape"], "Back to the message"],
  ]],
];

export default function Keys({ close }: { close: () => void }) {
  const on = useStore(shortcutsOn);
  return (
    <Sheet name="Keys" close={close}>
      <label><input type="checkbox" checked={on} onChange={(e) => shortcutsOn.set(e.target.checked)} /><span>Keys of this page</span></label>
      {groups.map(([group, all]) => (
        <section key={group} aria-label={group}>
          <h3>{group}{group === "Anywhere" && !on ? " (switched off)" : ""}</h3>
          <dl className="keys">
            {all.map(([keys, says]) => (
              <div key={says} className="pair"><dt>{keys.map((k) => <kbd key={k}>{legend(k)}</kbd>)}</dt><dd>{says}</dd></div>
            ))}
          </dl>
        </section>
      ))}
      <p className="muted">{legend("Mod")}+F stays the browser’s: it finds what is on the screen, of a long conversation only a part.</p>
    </Sheet>
  );
}
