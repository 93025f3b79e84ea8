// Code generated from clients/ts/src/transcript.ts by npm run page. DO NOT EDIT.

// The reader's fold of the native protocol: it turns events into a conversation. It follows the rules of docs/protocol.md like
// package transcript in Go. It has no imports at run time, because a Go test runs the compiled file against that package. Every
// change of a message, part or turn increases its `version`, so that only changed ones have to be drawn or copied.
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const ascii = /^[\x00-\x7f]*$/;
const bytes = (text) => (ascii.test(text) ? text.length : encoder.encode(text).length);
const table = new Uint32Array(256).map((_, n) => {
    for (let k = 0; k < 8; k++)
        n = n & 1 ? (n >>> 1) ^ 0x82f63b78 : n >>> 1;
    return n >>> 0;
});
/** The CRC-32C of a text's UTF-8 bytes, as sent at a part's end. */
export function crc32c(text) {
    let c = 0xffffffff;
    for (const b of encoder.encode(text))
        c = table[(c ^ b) & 0xff] ^ (c >>> 8);
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
// The limits of a history: the newest notes are kept. They must equal those of the gateway's fold.
const maxNotes = 200;
const maxNotesBytes = 32 << 10;
// White space as Go's strings.TrimSpace defines it; String.trim differs.
const space = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/g;
// note adds an entry to a history, or with extend replaces the last entry.
function note(history, text, extend = false) {
    text = text.replace(space, "");
    if (!text)
        return;
    if (extend)
        history.pop();
    if (history[history.length - 1] !== text)
        history.push(text);
    let i = history.length;
    for (let size = 0; i > 0 && history.length - i < maxNotes; i--) {
        size += bytes(history[i - 1]);
        if (size > maxNotesBytes && i < history.length)
            break;
    }
    history.splice(0, i);
}
// The limits of a turn's answered requests, in entries and in characters. They must equal those of the gateway's fold.
const maxAnswered = 100;
const maxAnsweredText = 1000;
// answerEntry returns the entry for an answer, without empty members.
function answerEntry(r, a, at) {
    return {
        id: r.id, kind: r.kind, ...(r.tool && { tool: r.tool }), ...(r.part && { part: r.part }), ...(r.prompt && { prompt: firstCharacters(r.prompt, maxAnsweredText) }),
        ...(a.decision && { decision: a.decision }), ...(a.text && { text: firstCharacters(a.text, maxAnsweredText) }), ...(a.by && { by: a.by }), ...(at && { at }),
    };
}
// firstCharacters returns the first n characters of a text. One outside of the Basic Multilingual Plane has two units.
function firstCharacters(text, n) {
    let i = 0;
    for (; n > 0 && i < text.length; n--)
        i += text.codePointAt(i) > 0xffff ? 2 : 1;
    return text.slice(0, i);
}
function newTurn(t) {
    return { ...t, requests: t.requests ?? [], answered: t.answered ?? [], updated: 0, answeredAt: new Map(), version: 1 };
}
/**
 * A conversation, folded from its events. apply and batch return false if events are missing or a text is wrong: the reader then
 * has to subscribe again without a cursor, and `fault` has the reason.
 */
export class Transcript {
    title = "";
    metadata = {};
    /** The seq of the last applied event; after reset, the snapshot's. */
    seq = 0;
    /** There are messages before the first one here. */
    earlier = false;
    order = [];
    messages = new Map();
    turns = new Map();
    fault = null;
    floor = 0; // events up to here are in the snapshot
    updated = 0;
    pieces = null;
    /** Replaces everything with a snapshot's transcript. */
    reset(snapshot, earlier = false) {
        this.title = snapshot.title || "";
        this.metadata = { ...snapshot.metadata };
        this.seq = this.floor = snapshot.seq || 0;
        this.earlier = earlier;
        this.updated = 0;
        this.pieces = null;
        this.fault = null;
        this.order = [];
        this.messages = new Map();
        this.turns = new Map();
        for (const m of snapshot.messages)
            this.addMessage(m, 0);
        for (const t of snapshot.turns || [])
            this.turns.set(t.id, newTurn(t));
    }
    addMessage(wire, floor) {
        const m = { ...wire, floor, updated: 0, closed: 0, version: 1, ended: !!wire.ended, parts: [] };
        for (const w of wire.parts) {
            const { text, input, output, stderr, history, ...members } = w;
            const p = { ...newPart(w.id, w.kind, w.at), ...members, ended: !!w.ended, history: [...(history || [])] };
            const texts = { text, input, output, stderr };
            for (const f of fields)
                if (texts[f])
                    p[f] = newText(texts[f]);
            m.parts.push(p);
        }
        this.messages.set(m.id, m);
        this.order.push(m);
    }
    /** Inserts a page of older messages at the beginning. It returns false if the page no longer fits. */
    addPage(page, before, cursorSeq) {
        if (page.seq < cursorSeq || this.order[0]?.id !== before)
            return false;
        if (page.transcript.messages.some((m) => this.messages.has(m.id)))
            return false;
        const newer = this.order;
        this.order = [];
        for (const m of page.transcript.messages)
            this.addMessage(m, page.seq);
        this.order.push(...newer);
        this.earlier = !!page.earlier;
        // A turn that ended after the cursor will still arrive as events. They would be ignored if the turn were already ended here.
        const older = (page.transcript.turns || []).filter((t) => !this.turns.has(t.id) && t.state === "ended" && (t.endSeq || 0) <= cursorSeq);
        this.turns = new Map([...older.map((t) => [t.id, newTurn(t)]), ...this.turns]);
        return true;
    }
    /** Folds the events of one delivery. */
    batch(events) {
        return events.every((e) => this.apply(e));
    }
    apply(event) {
        let e = event;
        if (this.pieces || e.more) {
            e = this.mergePieces(e);
            if (!e)
                return true;
        }
        if (e.seq <= this.floor)
            return true;
        const ok = this.fold(e);
        if (ok)
            this.seq = Math.max(this.seq, e.seq);
        return ok;
    }
    // mergePieces collects the pieces of one operation until the last has arrived. Any other event discards them, because the gateway
    // then sends them again.
    mergePieces(e) {
        const h = this.pieces;
        if (!h || e.type !== "part.append" || e.seq !== h.first.seq || e.message !== h.first.message || e.part !== h.first.part ||
            (e.field || "text") !== (h.first.field || "text") || (e.offset || 0) !== offsetOf(h.first) + h.length) {
            this.pieces = null;
            if ((e.type !== "part.append" && e.type !== "part.replace") || !e.more)
                return e;
            this.pieces = { first: e, text: e.text, length: bytes(e.text) };
            return null;
        }
        h.text += e.text;
        h.length += bytes(e.text);
        if (e.more)
            return null;
        this.pieces = null;
        const operation = { ...h.first, text: h.text, more: false };
        delete operation.note;
        delete operation.history;
        delete operation.extend;
        if (e.note)
            operation.note = e.note;
        if (e.extend)
            operation.extend = e.extend;
        if (e.history)
            operation.history = e.history;
        return operation;
    }
    fold(e) {
        const turn = e.turn ? this.turns.get(e.turn) : undefined;
        if (turn && turn.state === "ended") {
            if (e.seq > (turn.endSeq || 0))
                return true;
            if (e.type !== "part.append" && e.type !== "part.replace")
                return true;
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
                if (!m || e.seq <= m.floor)
                    return true;
                const p = m.parts.find((q) => q.id === e.part);
                const version = p?.version;
                const ok = this.part(m, p, e);
                if (!p || p.version !== version)
                    m.version++;
                return ok;
            }
            case "conversation.update":
                if (e.seq > this.updated) {
                    this.updated = e.seq;
                    if (e.title !== undefined)
                        this.title = e.title;
                    for (const [k, v] of Object.entries(e.metadata || {})) {
                        if (v === null)
                            delete this.metadata[k];
                        else
                            this.metadata[k] = v;
                    }
                }
                return true;
            case "conversation.delete":
                this.order = [];
                this.messages.clear();
                this.turns.clear();
                this.earlier = false;
                return true;
        }
        return true; // a type that is newer than this reader
    }
    start(e) {
        if (this.messages.has(e.message))
            return;
        const m = {
            id: e.message, turn: e.turn, role: e.role, author: e.author, source: e.source, at: e.at,
            floor: 0, updated: 0, closed: 0, ended: false, parts: [], version: 1,
        };
        if (e.type === "message.add") {
            m.ended = true;
            m.endAt = e.at;
            (e.parts || []).forEach((w, i) => {
                const p = newPart(w.id || `p${i + 1}`, w.kind, e.at);
                Object.assign(p, { endAt: e.at, media: w.media, data: w.data, join: i > 0 ? "\n\n" : "", ended: true, closed: e.seq, noted: e.seq });
                if (w.text)
                    p.text = newText(w.text);
                p.history = [...(w.history || [])];
                m.parts.push(p);
            });
        }
        this.messages.set(m.id, m);
        this.order.push(m);
    }
    message(e) {
        const m = this.messages.get(e.message);
        if (!m || e.seq <= m.floor)
            return;
        if (e.type === "message.end") {
            if (!m.ended && e.seq > m.closed)
                Object.assign(m, { closed: e.seq, ended: true, endAt: e.at, stopReason: e.reason, version: m.version + 1 });
        }
        else if (e.seq > m.updated) {
            Object.assign(m, { updated: e.seq, state: e.state, stateTurn: e.turn, stateReason: e.reason, version: m.version + 1 });
        }
    }
    turn(e) {
        let t = this.turns.get(e.turn);
        if (!t) {
            t = { ...newTurn({ id: e.turn, state: "running", firstSeq: e.first || e.seq }), version: 0 };
            this.turns.set(e.turn, t);
        }
        if (e.type === "turn.wait") {
            const r = e.request;
            if (!r || e.seq <= (t.answeredAt.get(r.id) || 0) || t.requests.some((o) => o.id === r.id))
                return;
            t.requests = [...t.requests, { ...r, ...(e.at && { at: e.at }), seq: e.seq }];
            if (t.state === "running")
                t.state = "waiting";
        }
        else if (e.type === "turn.resume") {
            const a = e.answer;
            if (!a || e.seq <= (t.answeredAt.get(a.id) || 0))
                return;
            t.answeredAt.set(a.id, e.seq);
            const request = t.requests.find((r) => r.id === a.id && (r.seq || 0) < e.seq);
            if (request)
                t.answered = [...t.answered, answerEntry(request, a, e.at)].slice(-maxAnswered);
            t.requests = t.requests.filter((r) => r.id !== a.id || (r.seq || 0) >= e.seq);
            if (t.requests.length === 0 && t.state === "waiting")
                t.state = "running";
        }
        else if (e.type === "turn.end") {
            Object.assign(t, { state: "ended", outcome: e.outcome, reason: e.reason, by: e.by, error: e.error, usage: e.usage, endedAt: e.at, endSeq: e.seq, requests: [] });
            this.close(e);
        }
        else {
            if (e.seq <= t.updated)
                return;
            t.updated = e.seq;
            if (e.type === "turn.queue")
                Object.assign(t, { state: "queued", queuedAt: e.at });
            if (e.type === "turn.start")
                Object.assign(t, { state: t.requests.length ? "waiting" : "running", startedAt: e.at });
            if (e.type === "turn.update")
                copyPresent(t, e, ["phase", "step", "model", "upstream"]);
            else
                copyPresent(t, e, ["agent", "answers", "parent", "source"]);
        }
        t.version++;
    }
    // close ends everything that a turn left open.
    close(e) {
        for (const m of this.order) {
            if (m.turn !== e.turn || e.seq <= m.floor)
                continue;
            m.version++;
            if (!m.ended)
                Object.assign(m, { ended: true, endAt: e.at });
            for (const p of m.parts) {
                if (!p.ended)
                    Object.assign(p, { closed: e.seq, ended: true, endAt: e.at, version: p.version + 1 });
                if (p.state === "running") {
                    p.state = "failed";
                    p.error ||= { code: e.outcome, message: `the turn ended: ${e.outcome}` };
                    p.version++;
                }
            }
        }
    }
    part(m, p, e) {
        if (e.type === "part.start") {
            if (!p) {
                p = newPart(e.part, e.kind, e.at);
                copyPresent(p, e, ["name", "call", "mediaType", "join", "state", "media", "data", "title"]);
                m.parts.push(p);
            }
            return true;
        }
        if (!p)
            return this.fail({ kind: "gap", seq: e.seq, message: m.id, part: e.part });
        if (e.type === "part.update") {
            if (e.seq > p.updated) {
                p.updated = e.seq;
                copyPresent(p, e, ["state", "name", "media", "error", "data"]);
                if (e.title !== undefined)
                    p.title = e.title;
                p.version++;
            }
            return true;
        }
        if (e.type === "part.end") {
            if (p.ended)
                return true;
            for (const f of fields) {
                const want = e.sums?.[f];
                if (!want)
                    continue;
                const have = { length: p[f].length, crc: crc32c(p[f].text) };
                if (have.length !== want.length || have.crc !== want.crc) {
                    return this.fail({ kind: "mismatch", seq: e.seq, message: m.id, part: p.id, field: f, have, want, ...(e.turn && { turn: e.turn }) });
                }
            }
            Object.assign(p, { closed: e.seq, ended: true, endAt: e.at, version: p.version + 1 });
            return true;
        }
        return this.operate(m, p, e);
    }
    // operate appends to or replaces one of a part's texts.
    operate(m, p, e) {
        const f = p[e.field || "text"];
        if (!f || e.seq <= f.seq)
            return true;
        if (p.ended && e.seq > p.closed && (e.type !== "part.replace" || e.text))
            return true;
        if (e.type === "part.replace") {
            f.text = e.text || "";
            f.length = bytes(f.text);
        }
        else {
            const offset = e.offset || 0;
            if (offset > f.length)
                return this.fail({ kind: "gap", seq: e.seq, message: m.id, part: p.id });
            const overlap = f.length - offset;
            let added = e.text || "";
            const length = bytes(added);
            if (overlap > 0)
                added = overlap < length ? decoder.decode(encoder.encode(added).subarray(overlap)) : "";
            f.text += added;
            f.length = Math.max(f.length, offset + length);
        }
        f.seq = e.seq;
        if ((e.history || e.note) && e.seq > p.noted) {
            p.noted = e.seq;
            if (e.history)
                p.history = [...e.history];
            else
                note(p.history, e.note, e.extend);
        }
        p.version++;
        return true;
    }
    fail(fault) {
        this.fault = fault;
        return false;
    }
}
const offsetOf = (e) => (e.type === "part.append" && e.offset) || 0;
// copyPresent copies the present keys. Data may have any value; other empty values mean absent.
function copyPresent(to, from, keys) {
    for (const k of keys) {
        const v = from[k];
        if (v !== undefined && (k === "data" || (v !== "" && v !== 0)))
            to[k] = v;
    }
}
/** Returns the visible text of a message. */
export function visibleText(m) {
    let text = "";
    for (const p of m.parts) {
        if ((p.kind !== "text" && p.kind !== "status") || !p.text.text)
            continue;
        if (text)
            text += p.join || "";
        text += p.text.text;
    }
    return text;
}
const partKeys = ["id", "kind", "name", "call", "mediaType", "join", "state", "title", "media", "error", "data", "at", "endAt", "ended"];
const messageKeys = ["id", "turn", "role", "author", "source", "at", "endAt", "state", "stateTurn", "stateReason", "ended", "stopReason"];
const turnKeys = ["id", "agent", "answers", "parent", "source", "state", "outcome", "reason", "by", "error", "usage", "phase", "step", "model", "upstream", "queuedAt", "startedAt", "endedAt", "firstSeq", "endSeq"];
// copyNonEmpty copies the keys with non-empty values.
function copyNonEmpty(from, keys) {
    const result = {};
    for (const k of keys) {
        const v = from[k];
        if (v !== undefined && (k === "data" || (v !== "" && v !== 0 && v !== false)))
            result[k] = v;
    }
    return result;
}
export function partDocument(p) {
    const result = copyNonEmpty(p, partKeys);
    for (const f of fields)
        if (p[f].text)
            result[f] = p[f].text;
    if (p.history.length)
        result["history"] = [...p.history];
    return result;
}
/** Returns the message as a document of the protocol. It is a copy, which later events don't change. */
export function messageDocument(m) {
    return { ...copyNonEmpty(m, messageKeys), parts: m.parts.map(partDocument) };
}
/** Returns the turn as a document of the protocol. It is a copy, which later events don't change. */
export function turnDocument(t) {
    const result = copyNonEmpty(t, turnKeys);
    if (t.requests.length)
        result.requests = t.requests.map(({ seq: _, ...r }) => r);
    if (t.answered.length)
        result.answered = t.answered;
    return result;
}
