import { useEffect, useEffectEvent, useState } from "react";

const hasFiles = (e: DragEvent): boolean => !!e.dataTransfer?.types.includes("Files");

/**
 * Takes files that are dropped anywhere on the page, which the browser would otherwise open instead of the page. It returns whether files
 * are being dragged over the page.
 */
export function useDrop(take: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const drop = useEffectEvent((files: File[]) => take(files));
  useEffect(() => {
    let depth = 0; // of elements under the pointer: each enter comes before the leave of the element outside
    const enter = (e: DragEvent) => {
      if (!hasFiles(e)) return;
      e.preventDefault();
      depth++;
      setOver(!document.querySelector("dialog.sheet"));
    };
    const allow = (e: DragEvent) => {
      if (hasFiles(e)) e.preventDefault();
    };
    const leave = (e: DragEvent) => {
      if (hasFiles(e) && --depth <= 0) end();
    };
    const end = () => {
      depth = 0;
      setOver(false);
    };
    const finish = (e: DragEvent) => {
      if (!hasFiles(e)) return;
      e.preventDefault();
      end();
      if (!document.querySelector("dialog.sheet")) drop([...e.dataTransfer!.files]);
    };
    const listeners = { dragenter: enter, dragover: allow, dragleave: leave, drop: finish };
    for (const [type, f] of Object.entries(listeners)) document.addEventListener(type, f as EventListener);
    return () => {
      for (const [type, f] of Object.entries(listeners)) document.removeEventListener(type, f as EventListener);
    };
  }, []);
  return isOver;
}
