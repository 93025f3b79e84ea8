import { useRef, useSyncExternalStore } from "react";

import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";

const touch = matchMedia("(pointer: coarse)");
const subscribe = (changed: () => void): (() => void) => {
  touch.addEventListener("change", changed);
  return () => touch.removeEventListener("change", changed);
};

/** Attaches files. On a device with a touch screen, which usually has a camera, it also takes a photo. */
export function AttachButton({ add }: { add: (files: File[]) => void }) {
  const isTouch = useSyncExternalStore(subscribe, () => touch.matches);
  const files = useRef<HTMLInputElement>(null);
  const photo = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement) => {
    add([...(input.files ?? [])]);
    input.value = "";
  };
  if (!isTouch) {
    return (
      <label className="quiet button" title="Attach files">
        <Icon name="clip" /><span className="unseen">Attach files</span>
        <input type="file" multiple className="unseen" onChange={(e) => take(e.currentTarget)} />
      </label>
    );
  }
  return (
    <>
      <Menu label="Attach" groups={[{ items: [
        { name: "Photos and files", icon: "file", run: () => files.current?.click() },
        { name: "Take a photo", icon: "camera", run: () => photo.current?.click() },
      ] }]}><Icon name="clip" /></Menu>
      <input ref={files} type="file" multiple hidden aria-label="Attach files" onChange={(e) => take(e.currentTarget)} />
      <input ref={photo} type="file" accept="image/*" capture="environment" hidden aria-label="Take a photo" onChange={(e) => take(e.currentTarget)} />
    </>
  );
}
