// Keyboard shortcuts, and the registry of available actions: a component registers its actions, and the palette and the shortcuts
// find them here.

import { useLayoutEffect } from "react";

import { shortcutsOn } from "./settings/settings";
import { Store } from "./store";

/** Whether Command is used instead of Ctrl. */
const mac = /Mac|iP(?:hone|ad)/.test(navigator.platform);

interface Shortcut { keys: readonly string[]; says: string; field?: true }

/** The shortcuts. field: the shortcut also works in a text field. */
export const shortcuts = {
  palette: { keys: ["Mod", "K"], says: "Search and commands", field: true },
  new: { keys: ["Mod", "Shift", "O"], says: "New conversation", field: true },
  previous: { keys: ["Alt", "ArrowUp"], says: "Previous conversation in the list", field: true },
  next: { keys: ["Alt", "ArrowDown"], says: "Next conversation in the list", field: true },
  find: { keys: ["Mod", "Shift", "F"], says: "Find in the whole conversation", field: true },
  approval: { keys: ["Alt", "A"], says: "Go to the pending request", field: true },
  voice: { keys: ["Alt", "V"], says: "Start or end voice mode", field: true },
  stop: { keys: ["Escape"], says: "Close the open panel, or stop the answer", field: true },
  help: { keys: ["?"], says: "Keyboard shortcuts" },
} as const satisfies Record<string, Shortcut>;

export type ShortcutName = keyof typeof shortcuts;

/** An action that is available now. */
export interface Action { name: string; group: string; run: () => void; key?: ShortcutName; hint?: string; hidden?: boolean }

const sources = new Map<object, readonly Action[]>();

/** All available actions. */
export const actions = new Store<readonly Action[]>([]);

const tell = () => actions.set([...sources.values()].flat());

/** Registers actions while the component is mounted, from the moment at which it is visible. */
export function useActions(actions: readonly Action[]): void {
  useLayoutEffect(() => {
    const source = {};
    sources.set(source, actions);
    tell();
    return () => {
      sources.delete(source);
      tell();
    };
  }, [actions]);
}

/** Returns the label of a key on this platform's keyboards. */
export function legend(key: string): string {
  if (key === "Mod") return mac ? "⌘" : "Ctrl";
  if (key === "Alt" && mac) return "⌥";
  return { ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" }[key] ?? key;
}

/** Returns the label of keys that are pressed together. */
export const combination = (...keys: readonly string[]): string => keys.map(legend).join(mac ? "" : "+");

/** Returns a shortcut as text, in the format of aria-keyshortcuts. */
export const spelled = (name: ShortcutName): string => combination(...shortcuts[name].keys);
export const ariaKeys = (name: ShortcutName): string => shortcuts[name].keys.map((k) => (k === "Mod" ? (mac ? "Meta" : "Control") : k)).join("+");

function pressed(e: KeyboardEvent): ShortcutName | undefined {
  for (const [name, { keys }] of Object.entries(shortcuts)) {
    const key = keys.at(-1)!;
    const want = (k: string) => (keys as readonly string[]).includes(k);
    const mod = mac ? e.metaKey && !e.ctrlKey : e.ctrlKey && !e.metaKey;
    if (want("Mod") ? !mod : e.ctrlKey || e.metaKey) continue;
    if (want("Alt") !== e.altKey) continue;
    if (key !== "?" && want("Shift") !== e.shiftKey) continue; // on some keyboards ? needs Shift, on others not
    // With Alt, some keyboards produce another character.
    if (e.key.toLowerCase() === key.toLowerCase() || want("Alt") && e.code === `Key${key}`) return name as ShortcutName;
  }
  return undefined;
}

/** Reports whether the target is a text field. In the composer, Escape still belongs to the page. */
const typing = (t: EventTarget | null): t is HTMLElement =>
  t instanceof HTMLElement && (t.isContentEditable || t.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=file], [type=range])"));

/** Handles the page's shortcuts until the returned function is called. */
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
