// The keys of the page, and what can be done in it just now: who shows something registers what one can do with it, and the palette and
// the keys find it here.

import { useEffect } from "react";

import { shortcutsOn } from "./settings/settings";
import { Store } from "./store";

/** Ctrl, on a Mac the command key. */
const mac = /Mac|iP(?:hone|ad)/.test(navigator.platform);

interface Shortcut { keys: readonly string[]; says: string; field?: true }

/** field: works also where one types; the others need the focus elsewhere. */
export const shortcuts = {
  palette: { keys: ["Mod", "K"], says: "Search and commands", field: true },
  new: { keys: ["Mod", "Shift", "O"], says: "New conversation", field: true },
  previous: { keys: ["Alt", "ArrowUp"], says: "Previous conversation in the list", field: true },
  next: { keys: ["Alt", "ArrowDown"], says: "Next conversation in the list", field: true },
  find: { keys: ["Mod", "Shift", "F"], says: "Find in the whole conversation", field: true },
  approval: { keys: ["Alt", "A"], says: "Go to the pending request", field: true },
  stop: { keys: ["Escape"], says: "Close the open panel, or stop the answer", field: true },
  help: { keys: ["?"], says: "Keyboard shortcuts" },
} as const satisfies Record<string, Shortcut>;

export type ShortcutName = keyof typeof shortcuts;

/** Something that can be done. */
export interface Action { name: string; group: string; run: () => void; key?: ShortcutName; hint?: string; hidden?: boolean }

const sources = new Map<object, readonly Action[]>();

/** All that can be done now. */
export const actions = new Store<readonly Action[]>([]);

const tell = () => actions.set([...sources.values()].flat());

/** Offers actions as long as the component is there. */
export function useActions(actions: readonly Action[]): void {
  useEffect(() => {
    const source = {};
    sources.set(source, actions);
    tell();
    return () => {
      sources.delete(source);
      tell();
    };
  }, [actions]);
}

/** A key as it is written on keyboards here. */
export function legend(key: string): string {
  if (key === "Mod") return mac ? "⌘" : "Ctrl";
  if (key === "Alt" && mac) return "⌥";
  return { ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" }[key] ?? key;
}

/** Keys that are pressed together, as they are written on keyboards here. */
export const combination = (...keys: readonly string[]): string => keys.map(legend).join(mac ? "" : "+");

/** A shortcut as text, and as aria-keyshortcuts has it. */
export const spelled = (name: ShortcutName): string => combination(...shortcuts[name].keys);
export const ariaKeys = (name: ShortcutName): string => shortcuts[name].keys.map((k) => (k === "Mod" ? (mac ? "Meta" : "Control") : k)).join("+");

function pressed(e: KeyboardEvent): ShortcutName | undefined {
  for (const [name, { keys }] of Object.entries(shortcuts)) {
    const key = keys.at(-1)!;
    const want = (k: string) => (keys as readonly string[]).includes(k);
    const mod = mac ? e.metaKey && !e.ctrlKey : e.ctrlKey && !e.metaKey;
    if (want("Mod") ? !mod : e.ctrlKey || e.metaKey) continue;
    if (want("Alt") !== e.altKey) continue;
    if (key !== "?" && want("Shift") !== e.shiftKey) continue; // where ? lies differs from keyboard to keyboard
    // With Alt held some keyboards write another letter.
    if (e.key.toLowerCase() === key.toLowerCase() || want("Alt") && e.code === `Key${key}`) return name as ShortcutName;
  }
  return undefined;
}

/** Whether somebody types there. The composer counts as a field too, but Escape in it is the page's. */
const typing = (t: EventTarget | null): t is HTMLElement =>
  t instanceof HTMLElement && (t.isContentEditable || t.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=file], [type=range])"));

/** Listens for the keys of the page until the function that it returns is called. */
export function listen(): () => void {
  const down = (e: KeyboardEvent) => {
    // A key of an input method's composition is not a shortcut; Safari reports the last one late, as 229.
    if (e.defaultPrevented || e.isComposing || e.keyCode === 229 || e.repeat && e.key === "Escape" || !shortcutsOn.get()) return;
    const name = pressed(e);
    if (!name) return;
    const field = typing(e.target);
    if (field && !("field" in shortcuts[name])) return;
    if (name === "stop" && field && (e.target).id !== "composer") return;
    if (document.querySelector("dialog.sheet") && name !== "palette") return;
    const action = actions.get().findLast((a) => a.key === name);
    if (!action) return;
    e.preventDefault();
    action.run();
  };
  document.addEventListener("keydown", down);
  return () => document.removeEventListener("keydown", down);
}
