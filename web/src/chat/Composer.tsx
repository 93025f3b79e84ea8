// The input for messages. It is never disabled or unmounted, so that focus and drafts are kept.

import type { Message as ChatMessage, NewMessage } from "@leat/client";
import { type ClipboardEvent, type KeyboardEvent, useCallback, useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from "react";

import { ariaKeys, combination, spelled } from "../keys";
import { shortcutsOn } from "../settings/settings";
import { Icon } from "../ui/Icon";
import { AttachButton } from "./AttachButton";
import { FileLabel, Progress } from "./Attached";
import { type Attachment, useAttachments } from "./attachments";
import { draft } from "./draft";
import { useDrop } from "./drop";
import { say } from "./speaker";

/**
 * How a message is sent while an answer is running. steer: pass it to the running turn, if its agent supports that. queue: wait for
 * the end of the turn. instead: stop the turn first.
 */
export type SendMode = "steer" | "queue" | "instead";

export interface Submission { message: NewMessage; mode: SendMode }

/** Text, and optionally files, to insert into the composer. Each insertion is a new object. */
export interface Insertion { text: string; media?: NewMessage["parts"] }

interface ComposerProps {
  conversation: string; // empty until it exists
  agent: string; // the agent that answers the message; empty if unknown
  /** Creates the conversation for files that are attached before the first message. */
  prepare?: (() => Promise<string>) | undefined;
  insertion: Insertion | undefined;
  running: boolean;
  steers: boolean; // the agent accepts messages during a turn
  send: (submission: Submission) => Promise<void>;
  stop: () => void;
  last: () => ChatMessage | undefined; // the user's last message
  edit: (m: ChatMessage) => void;
  isVoiceOn: boolean;
  toggleVoice: () => void;
}

/** The length in characters from which pasted text becomes a file. */
const largePaste = 4000;
const largeLines = 60;

export const coarse = () => matchMedia("(pointer: coarse)").matches;

export function Composer({ conversation, agent, prepare, insertion, running, steers, send, stop, last, edit, isVoiceOn, toggleVoice }: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(() => draft.readItem(conversation));
  const [error, setError] = useState("");
  const files = useAttachments(useCallback(async () => conversation || prepare!(), [conversation, prepare]));
  const isDragOver = useDrop((list) => {
    files.add(list);
    field.current?.focus();
  });
  const plainPaste = useRef(false);
  const [earlyMode, setEarly] = useState<SendMode>(); // submitted while its files are still uploading

  useDraft(conversation, text);
  useProgress(files.all);
  useEffect(() => {
    if (!coarse()) field.current?.focus({ preventScroll: true });
  }, []);
  useLayoutEffect(() => {
    const f = field.current!;
    f.style.height = "auto";
    f.style.height = `${Math.min(f.scrollHeight, 240)}px`;
  }, [text]);
  const insert = useEffectEvent((content: Insertion) => {
    setText((t) => (t.trim() && t !== content.text ? `${t}\n\n${content.text}` : content.text));
    if (content.media?.length) files.putBack([...files.all, ...mediaOf(content.media)]);
    field.current?.focus();
  });
  useLayoutEffect(() => {
    // As above.
    // eslint-disable-next-line react-hooks/set-state-in-effect
    if (insertion) insert(insertion);
  }, [insertion]);

  const empty = text.trim() === "" && files.all.length === 0;
  const submit = async (mode: SendMode) => {
    setEarly(!empty && files.busy ? mode : undefined);
    if (empty || files.busy) return;
    setError("");
    const submitted = text;
    const message: NewMessage = { ...(text.trim() && { text }), ...(files.all.length > 0 && { parts: files.all.filter((f) => f.media).map((f) => ({ kind: "media" as const, media: f.media! })) }) };
    setText("");
    const attached = files.take();
    try {
      await send({ message, mode });
    } catch (err) {
      // A refused message is shown in the log with its reason. A message that was never sent returns to the composer.
      if (!conversation) {
        setText((newText) => [newText, submitted].filter((t) => t.trim()).join("\n\n"));
        files.putBack(attached);
        setError((err as Error).message);
      }
    }
  };
  const submitUploaded = useEffectEvent((mode: SendMode) => void submit(mode));
  useEffect(() => {
    // The end of an upload is an external event.
    // eslint-disable-next-line react-hooks/set-state-in-effect
    if (earlyMode && !files.busy) submitUploaded(earlyMode);
  }, [earlyMode, files.busy]);
  const defaultMode: SendMode = running && !steers ? "queue" : "steer";
  const other: SendMode = steers ? "queue" : "instead";
  const keys = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    // In Safari, compositionend precedes the keydown of the key that ended the composition.
    const composing = e.nativeEvent.isComposing || e.keyCode === 229;
    const mod = e.ctrlKey || e.metaKey;
    plainPaste.current = e.shiftKey && mod && e.key.toLowerCase() === "v";
    if (e.key === "Enter" && !e.shiftKey && !composing && (mod || !coarse())) {
      e.preventDefault();
      void submit(running && mod && shortcutsOn.get() ? other : defaultMode);
    } else if (e.key === "ArrowUp" && text === "" && !running && !mod && !e.altKey && !e.shiftKey && shortcutsOn.get()) {
      const m = last();
      if (m) {
        e.preventDefault();
        edit(m);
      }
    }
  };
  const paste = (e: ClipboardEvent) => {
    const pastedFiles = [...e.clipboardData.files];
    if (pastedFiles.length > 0) {
      e.preventDefault();
      files.add(pastedFiles);
      return;
    }
    const pasted = e.clipboardData.getData("text/plain");
    if (!plainPaste.current && (pasted.length > largePaste || pasted.split("\n", largeLines + 1).length > largeLines)) {
      e.preventDefault();
      files.add([new File([pasted], "pasted.txt", { type: "text/plain" })], () => {
        setText((currentText) => currentText + pasted);
        field.current?.focus();
      });
    }
  };
  const remove = (id: string) => {
    files.remove(id);
    field.current?.focus(); // the focused button was removed
  };
  return (
    <form className="composer" onSubmit={(e) => { e.preventDefault(); void submit(defaultMode); }}>
      {isDragOver && <div className="drop" aria-hidden="true"><Icon name="clip" /> Drop files to attach them</div>}
      <div className="column">
        {earlyMode && <p className="note" role="status">{files.all.some((f) => f.error) ? "An upload failed. Retry it or remove the file to send the message" : "The message is sent when its files are uploaded"}</p>}
        {error && <p className="bad" role="alert">{error}</p>}
        {files.all.length > 0 && <ul className="attachments" aria-label="Attachments">{files.all.map((f) => <Attached key={f.id} file={f} remove={remove} />)}</ul>}
        <div className="field">
          <AttachButton add={files.add} />
          <textarea ref={field} id="composer" rows={1} value={text} aria-label="Message" placeholder={running ? "Add a follow-up…" : agent ? `Message ${agent}…` : "Message…"}
            onChange={(e) => { setText(e.target.value); setEarly(undefined); }} onKeyDown={keys} onPaste={paste} />
          <button type="button" className="quiet" aria-label="Voice mode" aria-pressed={isVoiceOn} title={`${isVoiceOn ? "End voice mode" : "Voice mode"} (${spelled("voice")})`} aria-keyshortcuts={ariaKeys("voice")} onClick={toggleVoice}><Icon name="microphone" /></button>
          {running && !empty && (
            <button type="button" className="other" title={`${other === "queue" ? "Send after this answer" : "Stop the answer and send this"} (${combination("Mod", "Enter")})`} onClick={() => { void submit(other); field.current?.focus(); }}>{labels[other]}</button>
          )}
          {running && empty ? (
            <button type="button" className="primary" aria-label="Stop" title="Stop (Esc)" onClick={() => { stop(); field.current?.focus(); }}><Icon name="stop" /></button>
          ) : (
            <button className="primary" aria-label={running ? labels[defaultMode] : "Send"} title={running ? titles[defaultMode] : "Send (Enter)"} aria-disabled={empty || !!earlyMode || undefined}><Icon name="send" /></button>
          )}
        </div>
      </div>
    </form>
  );
}

const labels: Record<SendMode, string> = { steer: "Send now", queue: "Queue", instead: "Stop and send" };
const titles: Record<SendMode, string> = { steer: "Send now, into the current answer (Enter)", queue: "Send after this answer (Enter)", instead: "Stop and send" };

// useDraft stores the draft of a conversation. The draft of a new conversation moves to the conversation when it is created.
function useDraft(conversation: string, text: string): void {
  const before = useRef(conversation);
  useEffect(() => {
    if (before.current !== conversation) draft.write(before.current, "");
    before.current = conversation;
    draft.write(conversation, text);
  }, [conversation, text]);
}

// Announces the progress of an upload at its beginning, middle and end.
function useProgress(attachments: readonly Attachment[]): void {
  const announcedSteps = useRef(new Map<string, number>());
  useEffect(() => {
    for (const f of attachments) {
      const step = f.error ? 3 : f.media ? 2 : f.progress >= 0.5 ? 1 : 0;
      if (announcedSteps.current.get(f.id) === step) continue;
      const wasAnnounced = announcedSteps.current.has(f.id);
      announcedSteps.current.set(f.id, step);
      if (!f.error && (wasAnnounced || !f.media)) say(`${f.name}: ${step * 50} %`);
    }
  }, [attachments]);
}

function Attached({ file: f, remove }: { file: Attachment; remove: (id: string) => void }) {
  return (
    <li className={f.error ? "bad" : undefined}>
      <FileLabel file={f} /><Progress file={f} />
      {f.asText && <button type="button" className="link" onClick={() => { remove(f.id); f.asText!(); }}>Insert as text</button>}
      <button type="button" className="quiet" aria-label={`Remove ${f.name}`} onClick={() => remove(f.id)}><Icon name="close" /></button>
    </li>
  );
}

export const textOf = (m: ChatMessage): string => m.parts.filter((p) => p.kind === "text").map((p) => p.text ?? "").join("\n\n");

export const mediaOf = (parts: NewMessage["parts"]): Attachment[] =>
  (parts ?? []).flatMap((p) => (p.kind === "media" && p.media ? [{ id: crypto.randomUUID(), name: p.media.name ?? "file", size: p.media.size ?? 0, progress: 1, media: p.media }] : []));
