// A button that opens a menu, by the ARIA pattern of a menu button. On a phone the menu is a sheet at the bottom.

import { type CSSProperties, type KeyboardEvent, type ReactNode, type RefObject, useEffect, useId, useLayoutEffect, useRef, useState } from "react";

import { Icon, type IconName } from "./Icon";
import "./menu.css";

export interface MenuItem {
  name: string;
  icon?: IconName;
  /** A line below the name. */
  text?: string | undefined;
  /** A word at the end, such as a state, and whether it is a bad one. */
  hint?: string | undefined;
  bad?: boolean;
  danger?: boolean;
  /** The item is one of a group of which one is selected. */
  checked?: boolean;
  run: () => void;
}

/** Items, optionally with a heading. Groups are separated by a line. */
export interface MenuGroup { name?: string; items: readonly MenuItem[] }

interface MenuProps {
  /** The name of the menu and, with value, of its button. */
  label: string;
  value?: string;
  title?: string;
  className?: string;
  groups: readonly MenuGroup[];
  onOpen?: () => void;
  children: ReactNode; // the content of the button
}

type Place = "first" | "last" | "checked";

/** The distance of a menu from its button and from the edges of the window, in pixels. */
const gap = 4;
const edge = 8;

export function Menu({ label, value, title, className = "quiet", groups, onOpen, children }: MenuProps) {
  const [start, setStart] = useState<Place>(); // where the focus of the open menu begins
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const open = (at: Place) => {
    onOpen?.();
    setStart(at);
  };
  const close = () => {
    setStart(undefined);
    button.current?.focus();
  };
  return (
    <>
      <button ref={button} type="button" className={className} aria-haspopup="menu" aria-expanded={!!start} aria-controls={start ? id : undefined} aria-label={value ? `${label}: ${value}` : label} title={title ?? label}
        onClick={() => (start ? close() : open("checked"))}
        onKeyDown={(e) => {
          if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
          e.preventDefault();
          open(e.key === "ArrowUp" ? "last" : "checked");
        }}>{children}</button>
      {start && <Items id={id} label={label} groups={groups} start={start} buttonRef={button} close={close} leave={() => setStart(undefined)} />}
    </>
  );
}

interface ItemsProps { id: string; label: string; groups: readonly MenuGroup[]; start: Place; buttonRef: RefObject<HTMLElement | null>; close: () => void; leave: () => void }

function Items({ id, label, groups, start, buttonRef, close, leave }: ItemsProps) {
  const menu = useRef<HTMLDivElement>(null);
  const [style, setStyle] = useState<CSSProperties>({ visibility: "hidden" });
  const search = useRef({ text: "", at: 0 });
  const items = () => [...menu.current!.querySelectorAll<HTMLElement>("[role^=menuitem]")];
  useLayoutEffect(() => {
    const m = menu.current!;
    // The size doesn't depend on the place, so one measurement is enough.
    setStyle(place(buttonRef.current!.getBoundingClientRect(), m.offsetWidth, m.offsetHeight));
  }, [buttonRef]);
  useLayoutEffect(() => {
    if (style.visibility) return; // what is hidden can't be focused
    const entries = items();
    (start === "last" ? entries.at(-1) : (start === "checked" && entries.find((i) => i.ariaChecked === "true")) || entries[0])?.focus();
  }, [start, style.visibility]);
  useEffect(() => {
    const away = (e: Event) => {
      if (!menu.current?.contains(e.target as Node) && !buttonRef.current?.contains(e.target as Node)) leave();
    };
    const resized = () => leave();
    document.addEventListener("pointerdown", away, true);
    addEventListener("resize", resized);
    return () => {
      document.removeEventListener("pointerdown", away, true);
      removeEventListener("resize", resized);
    };
  }, [buttonRef, leave]);
  const keys = (e: KeyboardEvent) => {
    const entries = items();
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: (at + 1) % entries.length, ArrowUp: (at - 1 + entries.length) % entries.length, Home: 0, End: entries.length - 1 }[e.key];
    if (to !== undefined) entries[to]?.focus();
    else if (e.key === "Escape") close();
    else if (e.key === "Tab") return void leave();
    else if (e.key.length === 1 && e.key !== " " && !e.ctrlKey && !e.metaKey && !e.altKey) {
      const t = search.current;
      const text = (e.timeStamp - t.at < 700 ? t.text : "") + e.key.toLowerCase();
      search.current = { text, at: e.timeStamp };
      const from = text.length > 1 ? at : at + 1;
      [...entries.slice(from), ...entries.slice(0, from)].find((i) => i.dataset["name"]!.toLowerCase().startsWith(text))?.focus();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <>
      <div className="menu-shade" />
      <div ref={menu} id={id} className="popup" role="menu" aria-label={label} style={style} tabIndex={-1} onKeyDown={keys}>
        {groups.filter((g) => g.items.length > 0).map((g, i) => (
          <div key={i} role="group" aria-label={g.name ?? label}>
            {g.name && <div className="heading" aria-hidden="true">{g.name}</div>}
            {g.items.map((item) => <Item key={item.name} item={item} choose={() => { close(); item.run(); }} />)}
          </div>
        ))}
      </div>
    </>
  );
}

function Item({ item: i, choose }: { item: MenuItem; choose: () => void }) {
  return (
    <button type="button" role={i.checked === undefined ? "menuitem" : "menuitemradio"} aria-checked={i.checked} tabIndex={-1} data-name={i.name} className={i.danger ? "danger" : undefined} onClick={choose} onMouseMove={(e) => e.currentTarget.focus({ preventScroll: true })}>
      {i.icon && <Icon name={i.icon} />}
      <span className="what"><bdi>{i.name}</bdi>{i.text && <span className="text">{i.text}</span>}</span>
      {i.hint && <span className={i.bad ? "hint bad" : "hint"}>{i.hint}</span>}
      {i.checked !== undefined && <span className="check">{i.checked && <Icon name="tick" />}</span>}
    </button>
  );
}

// place puts the menu below its button, or above if there is more room, and inside the window.
function place(at: DOMRect, width: number, height: number): CSSProperties {
  const { innerWidth: w, innerHeight: h } = window;
  const below = h - at.bottom - gap - edge;
  const isAbove = height > below && at.top > below;
  const x = at.left + width > w - edge ? at.right - width : at.left;
  return {
    left: Math.max(edge, Math.min(x, w - edge - width)), maxHeight: Math.max(80, isAbove ? at.top - gap - edge : below),
    ...(isAbove ? { bottom: h - at.top + gap } : { top: at.bottom + gap }),
  };
}
