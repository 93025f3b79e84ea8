// Files to send with a message. Each upload starts when the file is selected.

import type { Media } from "@leat/client";
import { useCallback, useEffect, useRef, useState } from "react";

import { size } from "../time";
import { bring, limit, Refusal, takeBack } from "./upload";

export interface Attachment {
  id: string; name: string; size: number;
  /** The uploaded fraction, from 0 to 1. */
  progress: number;
  /** The connection is broken. The upload resumes by itself. */
  waiting?: boolean;
  /** The stored file; undefined until the upload is complete. */
  media?: Media;
  error?: string;
  /** Uploads the file again; undefined if a retry is useless. */
  retry?: () => void;
  /** Inserts a large paste as text instead of a file. */
  asText?: () => void;
  /** The object URL of a picture. */
  preview?: string;
  file?: File;
}

export interface Attachments {
  all: Attachment[];
  /** Some uploads are not complete. */
  busy: boolean;
  add: (files: File[], asText?: () => void) => void;
  remove: (id: string) => void;
  /** Empties the list and returns its former contents. */
  take: () => Attachment[];
  putBack: (attachments: Attachment[]) => void;
}

const previewable = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/;

/** Manages the files of one composer. target returns the id of the conversation to upload to. */
export function useAttachments(target: () => Promise<string>): Attachments {
  const [attachments, setAll] = useState<Attachment[]>([]);
  const transfers = useRef(new Map<string, AbortController>());
  const uploads = useRef(new Map<string, string>()); // the URLs for deleting uploads, by attachment id
  useEffect(() => () => {
    for (const r of transfers.current.values()) r.abort();
  }, []);
  usePreviews(attachments);
  const results = useRef(new Map<string, Partial<Attachment>>()); // the upload state by id, also of attachments that an edit has set aside and no list contains
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
        // A file that is empty or too large can't be retried; other errors may pass.
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

// without returns the attachment without the result of its last attempt.
function without({ error: _error, retry: _retry, ...a }: Attachment): Attachment {
  return { ...a, progress: 0 };
}

// usePreviews revokes object URLs, because the browser keeps a picture in memory until then.
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
