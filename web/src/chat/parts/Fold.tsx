import { type ReactNode, useId, useRef, useState } from "react";

import { Icon } from "../../ui/Icon";

export type Hold = (element: Element, f: () => void) => void;

interface FoldProps { className: string; summary: ReactNode; children: () => ReactNode; hold: Hold; open?: boolean; told?: (open: boolean) => void; title?: string | undefined }

/** A row that expands to show details below it. The row keeps its position on the screen. */
export function Fold({ className, summary, children, hold, open: initial = false, told, title }: FoldProps) {
  const [open, setOpen] = useState(initial);
  const row = useRef<HTMLButtonElement>(null);
  const inside = useId();
  const turn = () => {
    setOpen(!open);
    told?.(!open);
  };
  return (
    <div className={`fold ${className}`} data-open={open || undefined}>
      <button ref={row} type="button" className="row" title={title} aria-expanded={open} aria-controls={open ? inside : undefined} onClick={() => hold(row.current!, turn)}>
        <Icon name="fold" />{summary}
      </button>
      {open && <div id={inside} className="inside">{children()}</div>}
    </div>
  );
}
