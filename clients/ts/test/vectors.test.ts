import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { crc32c, type Fault, messageDocument, Transcript, turnDocument } from "../src/transcript.js";
import type { Event, Snapshot } from "../src/wire.js";
import { root } from "./root.js";

interface Vector {
  name: string;
  steps: { reset?: boolean; snapshot?: Snapshot; events?: Event[]; page?: Snapshot; before?: string; cursor?: number }[];
  want: Snapshot;
}

const read = <T>(file: string): T => JSON.parse(readFileSync(`${root}/transcript/testdata/${file}`, "utf8")) as T;

// flat is what the vectors compare; transcript/testdata/README.md lists it.
function flat(s: Snapshot): unknown {
  const texts = (o: object, keys: string[]) => Object.fromEntries(keys.map((k) => [k, (o as Record<string, unknown>)[k] ?? ""]));
  return {
    title: s.title || "",
    metadata: s.metadata || {},
    messages: s.messages.map((m) => ({
      ...texts(m, ["id", "turn", "role", "state"]), ended: !!m.ended,
      parts: m.parts.map((p) => ({
        ...texts(p, ["id", "kind", "join", "state", "title", "text", "input", "output", "stderr"]),
        ended: !!p.ended, url: p.media?.url || "", history: p.history || [],
      })),
    })),
    turns: s.turns.map((t) => ({
      ...texts(t, ["id", "state", "outcome", "phase"]), upstream: t.upstream || {}, requests: (t.requests || []).map((r) => r.id),
    })).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  };
}

const documentOf = (t: Transcript): Snapshot => ({
  seq: t.seq, title: t.title, metadata: t.metadata, messages: t.order.map(messageDocument), turns: [...t.turns.values()].map(turnDocument),
});

test("the vectors of package transcript", () => {
  const all = read<Vector[]>("vectors.json").filter((v) => !v.name.endsWith("/log")); // those hold truncates, which no reader is sent
  assert.ok(all.length >= 100, `${all.length} vectors`);
  for (const v of all) {
    let t = new Transcript();
    for (const [i, s] of v.steps.entries()) {
      if (s.reset) t = new Transcript();
      else if (s.snapshot) t.reset(s.snapshot);
      else if (s.page) assert.ok(t.addPage({ transcript: s.page, seq: s.page.seq ?? 0 }, s.before ?? "", s.cursor ?? 0), `${v.name}: step ${i}: page refused`);
      else assert.ok(t.batch(s.events ?? []), `${v.name}: step ${i}: ${JSON.stringify(t.fault)}`);
    }
    assert.deepEqual(flat(documentOf(t)), flat(v.want), v.name);
  }
});

interface ReadCase { name: string; steps: { snapshot?: Snapshot; events?: Event[]; fault?: string }[]; want: Snapshot }

test("the readers that package transcript made", () => {
  const all = readFileSync(`${root}/transcript/testdata/readers.json`, "utf8").trim().split("\n").map((l) => JSON.parse(l) as ReadCase);
  assert.ok(all.length >= 30, `${all.length} readers`);
  for (const r of all) {
    const t = new Transcript();
    for (const [i, s] of r.steps.entries()) {
      t.fault = null;
      if (s.snapshot) t.reset(s.snapshot);
      else for (const [j, e] of s.events!.entries()) assert.equal(t.apply(e), !s.fault || j < s.events!.length - 1, `${r.name}: step ${i}, event ${j}`);
      assert.equal((t.fault as Fault | null)?.kind, s.fault, `${r.name}: step ${i}`);
    }
    const { metadata, title, ...rest } = documentOf(t);
    assert.deepEqual({ ...rest, ...(title && { title }), ...(Object.keys(metadata!).length && { metadata }) }, r.want, r.name);
  }
});

test("CRC-32C", () => {
  assert.equal(crc32c("123456789"), 0xe3069283);
  assert.equal(crc32c(""), 0);
});

