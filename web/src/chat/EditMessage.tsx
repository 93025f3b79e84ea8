// Edits a message of the user in its place. Saving sends the new version, which is answered instead.

import type { Message, NewMessage } from "@leat/client";
import { type KeyboardEvent, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

import { Icon } from "../ui/Icon";
import { FileLabel, Progress } from "./Attached";
import { useAttachments } from "./attachments";
import { coarse, mediaOf, textOf } from "./Composer";
import { draft } from "./draft";

/** A message that is sent sooner shows no notice. Milliseconds. */
const noticeDelay = 400;

interface EditMessageProps { conversation: string; message: Message; send: (id: string, message: NewMessage) => Promise<void>; close: () => void }

export function EditMessage({ conversation, message: m, send, close }: EditMessageProps) {
  const [text, setText] = useState(() => textOf(m));
  const [error, setError] = useState("");
  const [isSending, setSending] = useState(false);
  const [isSlow, setSlow] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const isMounted = useRef(true);
  const files = useAttachments(useCallback(() => Promise.resolve(conversation), [conversation]));
  const { putBack } = files;
  const [parts] = useState(m.parts);
  useLayoutEffect(() => {
    putBack(mediaOf(parts));
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the files are those of the message when editing began
  }, []);
  useLayoutEffect(() => {
    const f = field.current!;
    f.style.height = "auto";
    f.style.height = `${Math.min(f.scrollHeight + 2, 320)}px`;
  }, [text]);
  useEffect(() => {
    isMounted.current = true;
    const opener = document.activeElement;
    field.current!.focus();
    field.current!.setSelectionRange(field.current!.value.length, field.current!.value.length);
    return () => {
      isMounted.current = false;
      if (document.activeElement !== document.body && document.activeElement !== null) return;
      if (opener instanceof HTMLElement && opener !== document.body && opener.isConnected) opener.focus();
      else if (!coarse()) document.getElementById("composer")?.focus({ preventScroll: true });
    };
  }, []);
  const isEmpty = text.trim() === "" && files.all.length === 0;
  const save = async () => {
    if (isEmpty || isSending || files.busy) return;
    const timer = setTimeout(() => setSlow(true), noticeDelay);
    setError("");
    setSending(true);
    const finishHold = draft.hold(conversation, text);
    const media = files.all.flatMap((f) => (f.media ? [{ kind: "media" as const, media: f.media }] : []));
    try {
      await send(m.id, { ...(text.trim() && { text }), ...(media.length > 0 && { parts: media }) });
      finishHold(true);
      close();
    } catch (err) {
      finishHold(isMounted.current); // if the user has left, the text becomes a draft
      setError((err as Error).message);
      setSending(false);
    } finally {
      clearTimeout(timer);
      setSlow(false);
    }
  };
  const keys = (e: KeyboardEvent) => {
    const isComposing = e.nativeEvent.isComposing || e.keyCode === 229;
    if (e.key === "Enter" && !e.shiftKey && !isComposing && (e.ctrlKey || e.metaKey || !coarse())) {
      e.preventDefault();
      void save();
    } else if (e.key === "Escape" && !isComposing && !isSending) {
      e.preventDefault();
      e.stopPropagation();
      close();
    }
  };
  return (
    <form className="change" onSubmit={(e) => { e.preventDefault(); void save(); }}>
      <textarea ref={field} aria-label="Edit your message" aria-describedby={`edit-${m.id}`} value={text} rows={1} readOnly={isSending} onChange={(e) => setText(e.target.value)} onKeyDown={keys} />
      {files.all.length > 0 && (
        <ul className="attachments" aria-label="Attachments">
          {files.all.map((f) => (
            <li key={f.id} className={f.error ? "bad" : undefined}>
              <FileLabel file={f} /><Progress file={f} />
              <button type="button" className="quiet" aria-label={`Remove ${f.name}`} onClick={() => { files.remove(f.id); field.current?.focus(); }}><Icon name="close" /></button>
            </li>
          ))}
        </ul>
      )}
      {error && <p className="bad" role="alert">{error}</p>}
      <p id={`edit-${m.id}`} className="note" role={isSlow ? "status" : undefined}>{isSlow ? "Sending your edited message" : "Later messages are removed, and this one is answered again."}</p>
      <span className="buttons">
        <button type="button" disabled={isSending} onClick={close}>Cancel</button>
        <button className="primary" aria-disabled={isEmpty || isSending || files.busy || undefined}>Send</button>
      </span>
    </form>
  );
}
