// The reader's fold of the native protocol: what events come to. It follows docs/protocol.md rule by rule, as package
// transcript does in Go, and imports nothing. Every change of a message, part or turn raises its `version`, so that a page
// draws only what changed.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bytes = (text) => (/^[\x00-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length);

const table = new Uint32Array(256).map((_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0x82f63b78 : n >>> 1;
  return n >>> 0;
});

// crc32c is the checksum of a text's UTF-8 bytes, as a part's end carries it.
export function crc32c(text) {
  let c = 0xffffffff;
  for (const b of encoder.encode(text)) c = table[(c ^ b) & 0xff] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

const fields = ["text", "input", "output", "stderr"];

function newText(text = "") {
  return { text, length: bytes(text), seq: 0 };
}

function newPart(id, kind, at) {
  return {
    id, kind, at, version: 1, ended: false, closed: 0, updated: 0, noted: 0, history: [],
    text: newText(), input: newText(), output: newText(), stderr: newText(),
  };
}

function note(history, text) {
  if (text && history[history.length - 1] !== text) history.push(text);
}

// Transcript is a conversation as its events came to it. apply and the others return false where the reader has lost
// something and has to ask again without a cursor.
export class Transcript {
  constructor() {
    this.reset({ seq: 0, messages: [], turns: [] });
  }

  // reset replaces all that is held by a snapshot's transcript.
  reset(snapshot, earlier = false) {
    this.title = snapshot.title || "";
    this.metadata = snapshot.metadata || {};
    this.seq = this.floor = snapshot.seq || 0;
    this.earlier = earlier;
    this.updated = this.truncated = 0;
    this.held = null;
    this.order = [];
    this.messages = new Map();
    this.turns = new Map();
    for (const m of snapshot.messages) this.adopt(m, 0);
    for (const t of snapshot.turns || []) this.turns.set(t.id, { ...t, requests: t.requests || [], updated: 0, answered: new Map(), version: 1 });
  }

  adopt(wire, floor) {
    const m = { ...wire, floor, seq: 0, updated: 0, closed: 0, version: 1, ended: !!wire.ended, parts: [] };
    for (const w of wire.parts) {
      const p = newPart(w.id, w.kind, w.at);
      for (const [k, v] of Object.entries(w)) if (!fields.includes(k)) p[k] = v;
      for (const f of fields) if (w[f]) p[f] = newText(w[f]);
      p.history = [...(w.history || [])];
      m.parts.push(p);
    }
    this.messages.set(m.id, m);
    this.order.push(m);
    return m;
  }

  // addPage puts a page of older messages before those held. It returns false where the page does not fit any more.
  addPage(page, before, cursorSeq) {
    if (page.seq < cursorSeq || this.order.length === 0 || this.order[0].id !== before) return false;
    if (page.transcript.messages.some((m) => this.messages.has(m.id))) return false;
    const held = this.order;
    this.order = [];
    for (const m of page.transcript.messages) this.adopt(m, page.seq);
    this.order.push(...held);
    this.earlier = !!page.earlier;
    for (const t of page.transcript.turns || []) {
      if (!this.turns.has(t.id) && t.state === "ended" && (t.endSeq || 0) <= cursorSeq) {
        this.turns.set(t.id, { ...t, requests: [], updated: 0, answered: new Map(), version: 1 });
      }
    }
    return true;
  }

  // batch folds the events of one delivery.
  batch(events) {
    return events.every((e) => this.apply(e));
  }

  apply(e) {
    if (e.more || this.held) {
      e = this.hold(e);
      if (!e) return true;
    }
    if (e.seq <= this.floor) return true;
    const ok = this.fold(e);
    if (ok) this.seq = Math.max(this.seq, e.seq);
    return ok;
  }

  // hold keeps the pieces of one operation until the last is there. Any other event ends the wait: they will come again.
  hold(e) {
    const h = this.held;
    const next = h && e.type === "part.append" && e.seq === h.first.seq && e.message === h.first.message && e.part === h.first.part &&
      (e.field || "text") === (h.first.field || "text") && (e.offset || 0) === (h.first.offset || 0) + h.length;
    if (!next) {
      this.held = e.more ? { first: e, text: e.text, length: bytes(e.text) } : null;
      return e.more ? null : e;
    }
    h.text += e.text;
    h.length += bytes(e.text);
    if (e.more) return null;
    this.held = null;
    return { ...h.first, text: h.text, more: false, note: e.note, history: e.history };
  }

  fold(e) {
    const turn = this.turns.get(e.turn);
    if (turn && turn.state === "ended") {
      if (e.seq > turn.endSeq) return true;
      if (e.type !== "part.append" && e.type !== "part.replace") return true;
    }
    switch (e.type) {
      case "message.add":
      case "message.start":
        this.start(e);
        return true;
      case "message.update":
      case "message.end":
        this.message(e);
        return true;
      case "turn.queue":
      case "turn.start":
      case "turn.update":
      case "turn.wait":
      case "turn.resume":
      case "turn.end":
        this.turn(e);
        return true;
      case "part.start":
      case "part.append":
      case "part.replace":
      case "part.update":
      case "part.end": {
        const m = this.messages.get(e.message);
        if (!m || e.seq <= m.floor) return true;
        return this.part(m, e);
      }
      case "conversation.update":
        if (e.seq > this.updated) {
          this.updated = e.seq;
          if (e.title !== undefined) this.title = e.title;
          for (const [k, v] of Object.entries(e.metadata || {})) {
            if (v === null) delete this.metadata[k];
            else this.metadata[k] = v;
          }
        }
        return true;
      case "conversation.delete":
        this.reset({ seq: this.seq, messages: [], turns: [] });
        return true;
    }
    return true; // a type that came after this page
  }

  start(e) {
    if (this.messages.has(e.message)) return;
    const m = {
      id: e.message, turn: e.turn || "", role: e.role, author: e.author, source: e.source, at: e.at,
      seq: e.seq, floor: 0, updated: 0, closed: 0, ended: false, parts: [], version: 1,
    };
    if (e.type === "message.add") {
      m.ended = true;
      (e.parts || []).forEach((w, i) => {
        const p = newPart(w.id || `p${i + 1}`, w.kind, e.at);
        Object.assign(p, { media: w.media, data: w.data, join: i > 0 ? "\n\n" : "", ended: true, closed: e.seq, noted: e.seq });
        if (w.text) p.text = newText(w.text);
        p.history = [...(w.history || [])];
        m.parts.push(p);
      });
    }
    this.messages.set(m.id, m);
    this.order.push(m);
  }

  message(e) {
    const m = this.messages.get(e.message);
    if (!m || e.seq <= m.floor) return;
    if (e.type === "message.end") {
      if (!m.ended && e.seq > m.closed) Object.assign(m, { closed: e.seq, ended: true, endAt: e.at, stopReason: e.reason, version: m.version + 1 });
    } else if (e.seq > m.updated) {
      Object.assign(m, { updated: e.seq, state: e.state, stateTurn: e.turn, stateReason: e.reason, version: m.version + 1 });
    }
  }

  turn(e) {
    let t = this.turns.get(e.turn);
    if (!t) {
      t = { id: e.turn, state: "running", requests: [], updated: 0, answered: new Map(), version: 0, firstSeq: e.first || e.seq };
      this.turns.set(e.turn, t);
    }
    if (e.type === "turn.wait") {
      const r = e.request;
      if (!r || e.seq <= (t.answered.get(r.id) || 0) || t.requests.some((o) => o.id === r.id)) return;
      t.requests = [...t.requests, { ...r, at: e.at, seq: e.seq }];
      if (t.state === "running") t.state = "waiting";
    } else if (e.type === "turn.resume") {
      const a = e.answer;
      if (!a || e.seq <= (t.answered.get(a.id) || 0)) return;
      t.answered.set(a.id, e.seq);
      t.requests = t.requests.filter((r) => r.id !== a.id || (r.seq || 0) >= e.seq);
      if (t.requests.length === 0 && t.state === "waiting") t.state = "running";
    } else if (e.type === "turn.end") {
      Object.assign(t, { state: "ended", outcome: e.outcome, reason: e.reason, error: e.error, usage: e.usage, endedAt: e.at, endSeq: e.seq, requests: [] });
      this.close(e);
    } else {
      if (e.seq <= t.updated) return;
      t.updated = e.seq;
      if (e.type === "turn.queue") Object.assign(t, { state: "queued", queuedAt: e.at });
      if (e.type === "turn.start") Object.assign(t, { state: t.requests.length ? "waiting" : "running", startedAt: e.at });
      for (const k of ["agent", "answers", "parent", "phase", "model", "step", "upstream"]) if (e[k]) t[k] = e[k];
    }
    t.version++;
  }

  // close ends all that a turn left open.
  close(e) {
    for (const m of this.order) {
      if (m.turn !== e.turn || e.seq <= m.floor) continue;
      if (!m.ended) Object.assign(m, { ended: true, endAt: e.at, version: m.version + 1 });
      for (const p of m.parts) {
        if (!p.ended) Object.assign(p, { closed: e.seq, ended: true, endAt: e.at, version: p.version + 1 });
        if (p.state === "running") {
          p.state = "failed";
          p.error ||= { code: e.outcome, message: `the turn ended: ${e.outcome}` };
          p.version++;
        }
      }
    }
  }

  part(m, e) {
    let p = m.parts.find((q) => q.id === e.part);
    if (e.type === "part.start") {
      if (!p) {
        p = newPart(e.part, e.kind, e.at);
        for (const k of ["name", "call", "mediaType", "join", "state", "media", "data", "title"]) if (e[k] !== undefined) p[k] = e[k];
        m.parts.push(p);
      }
      return true;
    }
    if (!p) return false;
    if (e.type === "part.update") {
      if (e.seq > p.updated) {
        p.updated = e.seq;
        for (const k of ["state", "name", "title", "media", "error", "data"]) {
          if (e[k] !== undefined && (e[k] !== "" || k === "title")) p[k] = e[k];
        }
        p.version++;
      }
      return true;
    }
    if (e.type === "part.end") {
      if (p.ended) return true;
      for (const [f, sum] of Object.entries(e.sums || {})) {
        if (fields.includes(f) && (p[f].length !== sum.length || crc32c(p[f].text) !== sum.crc)) return false;
      }
      Object.assign(p, { closed: e.seq, ended: true, endAt: e.at, version: p.version + 1 });
      return true;
    }
    return this.operate(p, e);
  }

  // operate changes one of a part's texts.
  operate(p, e) {
    const f = p[e.field || "text"];
    if (!f || e.seq <= f.seq) return true;
    if (p.ended && e.seq > p.closed && (e.type !== "part.replace" || e.text)) return true;
    if (e.type === "part.replace") {
      f.text = e.text || "";
      f.length = bytes(f.text);
    } else {
      const offset = e.offset || 0;
      if (offset > f.length) return false;
      const known = f.length - offset;
      let more = e.text || "";
      const length = bytes(more);
      if (known > 0) more = known < length ? decoder.decode(encoder.encode(more).subarray(known)) : "";
      f.text += more;
      f.length = Math.max(f.length, offset + length);
    }
    f.seq = e.seq;
    if ((e.history || e.note) && e.seq > p.noted) {
      p.noted = e.seq;
      if (e.history) p.history = [...e.history];
      else note(p.history, e.note);
    }
    p.version++;
    return true;
  }
}

// visible is what a message shows as its text.
export function visible(m) {
  let out = "";
  for (const p of m.parts) {
    if ((p.kind !== "text" && p.kind !== "status") || !p.text.text) continue;
    if (out) out += p.join || "";
    out += p.text.text;
  }
  return out;
}
