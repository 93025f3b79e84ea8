// Tabs: the arrow keys, Home and End select one, and Tab moves into its panel.

import { type KeyboardEvent, type ReactNode, useId } from "react";

import "./tabs.css";

interface TabsProps<T extends string> {
  label: string;
  tabs: readonly { id: T; name: string }[];
  selected: T;
  select: (id: T) => void;
  /** The content of the selected tab. */
  children: ReactNode;
}

export function Tabs<T extends string>({ label, tabs, selected, select, children }: TabsProps<T>) {
  const id = useId();
  const keys = (e: KeyboardEvent<HTMLDivElement>) => {
    const at = tabs.findIndex((t) => t.id === selected);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[e.key];
    if (next === undefined) return;
    e.preventDefault();
    const tab = tabs[next % tabs.length]!;
    select(tab.id);
    e.currentTarget.querySelector<HTMLElement>(`[data-tab="${tab.id}"]`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} onKeyDown={keys}>
        {tabs.map((t) => (
          <button key={t.id} type="button" role="tab" id={`${id}${t.id}`} data-tab={t.id} aria-selected={t.id === selected} aria-controls={`${id}panel`} tabIndex={t.id === selected ? 0 : -1} onClick={() => select(t.id)}>{t.name}</button>
        ))}
      </div>
      <div className="tabpanel" role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${selected}`}>{children}</div>
    </>
  );
}
