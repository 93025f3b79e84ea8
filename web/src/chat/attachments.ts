// Files on their way into a message: each is brought to the gateway as soon as it is chosen.

import type { Media } from "@leat/client";
import { useCallback, useEffect, useRef, useState } from "react";

import { size } from "../time";
import { bring, limit, Refusal, takeBack } from "./upload";

export interface Attachment {
  id: string; name: string; size: number;
  /** Of 1. */
  progress: number;
  /** The line is broken; it goes on by itself. */
  waiting?: boolean;
  /** What the gateway made of it, when it is there. */
  media?: Media;
  error?: string;
  /** Sends it again, after an error that may pass. */
  retry?: () => void;
  /** Puts a large paste into the text after all. */
  asText?: () => void;
  /** The address of the picture that it is, within this page. */
  preview?: string;
  file?: File;
}

export interface Attachments {
  all: Attachment[];
  /** Some are not there yet. */
  busy: boolean;
  add: (files: File[], asText?: () => void) => void;
  remove: (id: string) => void;
  /** Empties the list, and returns what was in it. */
  take: () => Attachment[];
  putBack: (attachments: Attachment[]) => void;
}

const previewable = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/;

/** Looks after the files of one composer. where says into which conversation they go. */
export function useAttachments(target: () => Promise<string>): Attachments {
  const [attachments, setAll] = useState<Attachment[]>([]);
  const transfers = useRef(new Map<string, AbortController>());
  const uploads = useRef(new Map<string, string>()); // where each can be taken back
  useEffect(() => () => {
    for (const r of transfers.current.values()) r.abort();
  }, []);
  usePreviews(attachments);
  const results = useRef(new Map<string, Partial<Attachment>>()); // what became of each; those that an edit has put aside are in no list
  const change = useCallback((id: string, c: Partial<Attachment>) => {
    results.current.set(id, { ...results.current.get(id), ...c });
    setAll((list) => list.map((a) => (a.id === id ? { ...a, ...c } : a)));
  }, []);

  const start = useCallback((id: string, file: File): Promise<void> => {
    const run = async () => {
      const stop = new AbortController();
      transfers.current.set(id, stop);
      results.current.delete(id);
      setAll((list) => list.map((a) => (a.id === id ? without(a) : a)));
      try {
        if (file.size === 0) throw new Refusal("the file is empty");
        const maxSize = await limit();
        if (maxSize !== undefined && file.size > maxSize) throw new Refusal(`the file has ${size(file.size)}; the limit is ${size(maxSize)}`);
        const media = await bring(file, target, {
          signal: stop.signal, progress: (progress) => change(id, { progress }), waiting: (isWaiting) => change(id, { waiting: isWaiting }),
        }, (at) => uploads.current.set(id, at));
        change(id, { media, progress: 1, waiting: false });
      } catch (err) {
        if (stop.signal.aborted) {
          const at = uploads.current.get(id);
          if (at) takeBack(at);
          return;
        }
        // What is too large stays so; all else may pass.
        const hopeless = file.size === 0 || (await limit().then((maxSize) => maxSize !== undefined && file.size > maxSize, () => false));
        change(id, { error: (err as Error).message, waiting: false, ...(!hopeless && { retry: () => void run() }) });
      } finally {
        transfers.current.delete(id);
      }
    };
    return run();
  }, [target, change]);

  const add = useCallback((files: File[], asText?: () => void) => {
    for (const file of files) {
      const id = crypto.randomUUID();
      setAll((list) => [...list, { id, name: file.name || "file", size: file.size, progress: 0, file, ...(previewable.test(file.type) && { preview: URL.createObjectURL(file) }), ...(asText && { asText }) }]);
      void start(id, file);
    }
  }, [start]);
  const remove = useCallback((id: string) => {
    const transfer = transfers.current.get(id);
    if (transfer) transfer.abort();
    else if (uploads.current.has(id)) takeBack(uploads.current.get(id)!);
    setAll((list) => list.filter((a) => a.id !== id));
  }, []);
  const take = () => {
    setAll([]);
    return attachments;
  };
  const putBack = (restored: Attachment[]) => setAll(restored.map((a) => ({ ...a, ...results.current.get(a.id), ...(a.preview && a.file && { preview: URL.createObjectURL(a.file) }) })));
  return { all: attachments, busy: attachments.some((a) => !a.media), add, remove, take, putBack };
}

// A new try begins without what the last one came to.
function without({ error: _error, retry: _retry, ...a }: Attachment): Attachment {
  return { ...a, progress: 0 };
}

// The browser holds a picture until its address is given back.
function usePreviews(attachments: Attachment[]): void {
  const urls = useRef(new Set<string>());
  useEffect(() => {
    const current = new Set(attachments.flatMap((a) => a.preview ?? []));
    for (const url of urls.current) if (!current.has(url)) URL.revokeObjectURL(url);
    urls.current = current;
  }, [attachments]);
  useEffect(() => () => {
    for (const url of urls.current) URL.revokeObjectURL(url);
  }, []);
}
