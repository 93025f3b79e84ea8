"""The reader's fold: it turns events into a conversation, by the rules of docs/protocol.md, like package transcript in Go.

Events and documents are JSON objects here. _documents.py makes the typed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._text import Text, crc32c, size, trim

Document = dict[str, Any]
FIELDS = ("text", "input", "output", "stderr")

# The limits of a history: the newest notes are kept. They must equal those of the gateway's fold.
_MAX_NOTES = 200
_MAX_NOTES_SIZE = 32 << 10

# The limits of a turn's answered requests, in entries and in characters. They must equal those of the gateway's fold.
_MAX_ANSWERED = 100
_MAX_ANSWERED_TEXT = 1000

_PART_KEYS = ("name", "call", "mediaType", "join", "state", "media", "data", "title")
_UPDATE_KEYS = ("state", "name", "media", "error", "data")


@dataclass(frozen=True)
class Fault:
    """Why the reader has to connect again without a cursor. A mismatch has the report for the gateway, without its client."""

    kind: str
    report: Mapping[str, Any]


class PartRecord:
    __slots__ = ("closed", "document", "history", "noted", "texts", "updated", "version")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.texts = {f: Text() for f in FIELDS}
        self.history: list[str] = []
        self.version = 1
        # The seqs of its end, its last update and its last note.
        self.closed = self.updated = self.noted = 0


class MessageRecord:
    __slots__ = ("closed", "document", "floor", "parts", "updated", "version")

    def __init__(self, document: Document, floor: int = 0) -> None:
        self.document = document
        self.floor = floor  # the events up to this seq are included: the message is from a page
        self.parts: dict[str, PartRecord] = {}
        self.version = 1
        self.closed = self.updated = 0


class TurnRecord:
    __slots__ = ("answered", "answered_at", "asked", "document", "requests", "updated", "version")

    def __init__(self, document: Document) -> None:
        self.document = {k: v for k, v in document.items() if k not in ("requests", "answered")}
        self.requests: list[Document] = list(document.get("requests") or [])
        self.answered: list[Document] = list(document.get("answered") or [])
        self.asked: dict[str, int] = {}  # the seq of each open request
        self.answered_at: dict[str, int] = {}  # the seq of each answer, by the id of its request
        self.version = 1
        self.updated = 0


def put(document: Document, **members: Any) -> None:
    """Set members, and remove those whose value is empty."""
    for key, value in members.items():
        if value is None or value == "" or value is False or value == 0:
            document.pop(key, None)
        else:
            document[key] = value


def copy_present(to: Document, event: Document, keys: Iterable[str]) -> None:
    """Copy the members that are present. Data may have any value; other empty values mean absent."""
    for key in keys:
        if key in event and (key == "data" or (event[key] != "" and event[key] != 0)):
            to[key] = event[key]


def add_note(history: list[str], text: str, extend: bool) -> None:
    """Add a note to a history; with extend it replaces the last one."""
    text = trim(text)
    if not text:
        return
    if extend and history:
        history.pop()
    if not history or history[-1] != text:
        history.append(text)
    kept = total = 0
    while kept < min(len(history), _MAX_NOTES):
        total += size(history[-1 - kept])
        if total > _MAX_NOTES_SIZE and kept > 0:
            break
        kept += 1
    del history[: len(history) - kept]


class Transcript:
    """A conversation, folded from its events.

    ``apply`` and ``batch`` return False if events are missing or a text is wrong. The reader then has to connect again without a
    cursor, and ``fault`` has the reason.
    """

    def __init__(self) -> None:
        self.title = ""
        self.metadata: Document = {}
        self.seq = 0
        self.earlier = False
        self.messages: dict[str, MessageRecord] = {}  # in order
        self.turns: dict[str, TurnRecord] = {}
        self.fault: Fault | None = None
        self._floor = 0  # events up to this seq are in the snapshot
        self._updated = 0
        self._pieces: Document | None = None  # the operation whose pieces are arriving

    def reset(self, snapshot: Document, earlier: bool = False) -> None:
        """Replace everything with a snapshot's transcript."""
        self.title = snapshot.get("title") or ""
        self.metadata = dict(snapshot.get("metadata") or {})
        self.seq = self._floor = snapshot.get("seq") or 0
        self.earlier = earlier
        self.fault = self._pieces = None
        self._updated = 0
        self.messages = {m["id"]: _message_record(m, 0) for m in snapshot.get("messages") or []}
        self.turns = {t["id"]: TurnRecord(t) for t in snapshot.get("turns") or []}

    def add_page(self, page: Document, before: str, cursor_seq: int) -> bool:
        """Insert a page of older messages at the beginning. It returns False if the page no longer fits."""
        transcript = page["transcript"]
        older = transcript.get("messages") or []
        if page["seq"] < cursor_seq or next(iter(self.messages), None) != before or any(m["id"] in self.messages for m in older):
            return False
        self.messages = {**{m["id"]: _message_record(m, page["seq"]) for m in older}, **self.messages}
        self.earlier = bool(page.get("earlier"))
        # A turn that ended after the cursor still arrives as events, which would be ignored if it were already ended here.
        ended = [
            t for t in transcript.get("turns") or []
            if t["id"] not in self.turns and t["state"] == "ended" and (t.get("endSeq") or 0) <= cursor_seq
        ]  # fmt: skip
        self.turns = {**{t["id"]: TurnRecord(t) for t in ended}, **self.turns}
        return True

    def batch(self, events: Iterable[Document]) -> bool:
        """Fold the events of one delivery."""
        return all(self.apply(e) for e in events)

    def apply(self, event: Document) -> bool:
        if self._pieces is not None or event.get("more"):
            merged = self._merge_pieces(event)
            if merged is None:
                return True
            event = merged
        if event["seq"] <= self._floor:
            return True
        if not self._fold(event):
            return False
        self.seq = max(self.seq, event["seq"])
        return True

    def _merge_pieces(self, e: Document) -> Document | None:
        """Collect the pieces of one operation until the last has arrived.

        Any other event discards them, because the gateway then sends them again.
        """
        first = self._pieces
        if (
            first is None or e["type"] != "part.append" or e["seq"] != first["seq"] or e["message"] != first["message"]
            or e["part"] != first["part"] or _field(e) != _field(first)
            or (e.get("offset") or 0) != _offset(first) + sum(map(size, first["pieces"]))
        ):  # fmt: skip
            self._pieces = None
            if e["type"] not in ("part.append", "part.replace") or not e.get("more"):
                return e
            self._pieces = {**e, "pieces": [e.get("text") or ""]}
            return None
        first["pieces"].append(e.get("text") or "")
        if e.get("more"):
            return None
        self._pieces = None
        result = {k: v for k, v in first.items() if k not in ("pieces", "more", "note", "history", "extend")}
        result["text"] = "".join(first["pieces"])
        copy_present(result, e, ("note", "history", "extend"))
        return result

    def _fold(self, e: Document) -> bool:
        kind: str = e["type"]
        turn = self.turns.get(e.get("turn") or "")
        if turn and turn.document["state"] == "ended":
            if e["seq"] > (turn.document.get("endSeq") or 0) or kind not in ("part.append", "part.replace"):
                return True
        if kind in ("message.add", "message.start"):
            self._start_message(e)
        elif kind in ("message.update", "message.end"):
            self._update_message(e)
        elif kind in ("turn.queue", "turn.start", "turn.update", "turn.wait", "turn.resume", "turn.end"):
            self._update_turn(e)
        elif kind in ("part.start", "part.append", "part.replace", "part.update", "part.end"):
            return self._update_part(e)
        elif kind == "conversation.update":
            self._update_conversation(e)
        elif kind == "conversation.delete":
            self.messages, self.turns, self.earlier = {}, {}, False
        return True  # also for types that are newer than this reader

    def _update_conversation(self, e: Document) -> None:
        if e["seq"] <= self._updated:
            return
        self._updated = e["seq"]
        if "title" in e:
            self.title = e["title"]
        metadata = {**self.metadata, **(e.get("metadata") or {})}
        self.metadata = {k: v for k, v in metadata.items() if v is not None}

    def _start_message(self, e: Document) -> None:
        if e["message"] in self.messages:
            return
        m = MessageRecord({"id": e["message"], "role": e["role"]})
        copy_present(m.document, e, ("turn", "author", "source", "at"))
        if e["type"] == "message.add":
            put(m.document, ended=True, endAt=e.get("at"))
            for i, new in enumerate(e.get("parts") or []):
                p = PartRecord({"id": new.get("id") or f"p{i + 1}", "kind": new["kind"], "ended": True})
                put(p.document, at=e.get("at"), endAt=e.get("at"), join="\n\n" if i else "")
                copy_present(p.document, new, ("media", "data"))
                p.closed = p.noted = e["seq"]
                p.texts["text"].replace(new.get("text") or "")
                p.history = list(new.get("history") or [])
                m.parts[p.document["id"]] = p
        self.messages[e["message"]] = m

    def _update_message(self, e: Document) -> None:
        m = self.messages.get(e["message"])
        if m is None or e["seq"] <= m.floor:
            return
        if e["type"] == "message.end":
            if not m.document.get("ended") and e["seq"] > m.closed:
                m.closed = e["seq"]
                put(m.document, ended=True, endAt=e.get("at"), stopReason=e.get("reason"))
                m.version += 1
        elif e["seq"] > m.updated:
            m.updated = e["seq"]
            put(m.document, state=e.get("state"), stateTurn=e.get("turn"), stateReason=e.get("reason"))
            m.version += 1

    def _update_turn(self, e: Document) -> None:
        kind, seq = e["type"], e["seq"]
        t = self.turns.get(e["turn"])
        if t is None:
            t = self.turns[e["turn"]] = TurnRecord({"id": e["turn"], "state": "running", "firstSeq": e.get("first") or seq})
        if kind == "turn.wait":
            r = e.get("request")
            if not r or seq <= t.answered_at.get(r["id"], 0) or any(o["id"] == r["id"] for o in t.requests):
                return
            t.requests = [*t.requests, {**r, **({"at": e["at"]} if e.get("at") else {})}]
            t.asked[r["id"]] = seq
            if t.document["state"] == "running":
                t.document["state"] = "waiting"
        elif kind == "turn.resume":
            a = e.get("answer")
            if not a or seq <= t.answered_at.get(a["id"], 0):
                return
            t.answered_at[a["id"]] = seq
            asked = [r for r in t.requests if r["id"] == a["id"] and t.asked.get(r["id"], 0) < seq]
            if asked:
                t.answered = [*t.answered, _answer_entry(asked[0], a, e.get("at"))][-_MAX_ANSWERED:]
                t.requests = [r for r in t.requests if r not in asked]
            if not t.requests and t.document["state"] == "waiting":
                t.document["state"] = "running"
        elif kind == "turn.end":
            ended = {key: e.get(key) for key in ("outcome", "reason", "by", "error", "usage")}
            put(t.document, state="ended", endedAt=e.get("at"), endSeq=seq, **ended)
            t.requests = []
            self._close(e)
        elif seq > t.updated:
            t.updated = seq
            if kind == "turn.update":
                copy_present(t.document, e, ("phase", "step", "model", "upstream"))
            else:
                if kind == "turn.queue":
                    put(t.document, state="queued", queuedAt=e.get("at"))
                else:
                    put(t.document, state="waiting" if t.requests else "running", startedAt=e.get("at"))
                copy_present(t.document, e, ("agent", "answers", "parent", "source"))
        else:
            return
        t.version += 1

    def _close(self, e: Document) -> None:
        """End everything that a turn left open."""
        for m in self.messages.values():
            if m.document.get("turn") != e["turn"] or e["seq"] <= m.floor:
                continue
            m.version += 1
            if not m.document.get("ended"):
                put(m.document, ended=True, endAt=e.get("at"))
            for p in m.parts.values():
                if not p.document.get("ended"):
                    p.closed = e["seq"]
                    put(p.document, ended=True, endAt=e.get("at"))
                    p.version += 1
                if p.document.get("state") == "running":
                    p.document["state"] = "failed"
                    p.document.setdefault("error", {"code": e["outcome"], "message": f"the turn ended: {e['outcome']}"})
                    p.version += 1

    def _update_part(self, e: Document) -> bool:
        m = self.messages.get(e["message"])
        if m is None or e["seq"] <= m.floor:
            return True
        p = m.parts.get(e["part"])
        if p is None:
            if e["type"] != "part.start":
                return self._gap(e)
            p = m.parts[e["part"]] = PartRecord({"id": e["part"], "kind": e["kind"]})
            copy_present(p.document, e, (*_PART_KEYS, "at"))
            m.version += 1
            return True
        version = p.version
        applied = True
        if e["type"] == "part.update":
            if e["seq"] > p.updated:
                p.updated = e["seq"]
                copy_present(p.document, e, _UPDATE_KEYS)
                if "title" in e:
                    put(p.document, title=e["title"])
                p.version += 1
        elif e["type"] == "part.end":
            applied = self._end_part(p, e)
        elif e["type"] != "part.start":
            applied = self._operate(p, e)
        m.version += p.version - version
        return applied

    def _end_part(self, p: PartRecord, e: Document) -> bool:
        if p.document.get("ended"):
            return True
        for name, want in (e.get("sums") or {}).items():
            if name not in p.texts:
                continue
            text = p.texts[name]
            have = {"length": text.length, "crc": crc32c(text.value)}
            if have != {"length": want["length"], "crc": want["crc"]}:
                report = {"message": e["message"], "part": e["part"], "field": name, "seq": e["seq"], "have": have, "want": want}
                self.fault = Fault("mismatch", {**report, **({"turn": e["turn"]} if e.get("turn") else {})})
                return False
        p.closed = e["seq"]
        put(p.document, ended=True, endAt=e.get("at"))
        p.version += 1
        return True

    def _operate(self, p: PartRecord, e: Document) -> bool:
        """Append to or replace one of a part's texts."""
        f = p.texts.get(_field(e))
        text = e.get("text") or ""
        if f is None or e["seq"] <= f.seq:
            return True
        if p.document.get("ended") and e["seq"] > p.closed and (e["type"] != "part.replace" or text):
            return True
        if e["type"] == "part.replace":
            f.replace(text)
        elif not f.append(e.get("offset") or 0, text):
            return self._gap(e)
        f.seq = e["seq"]
        if (e.get("history") or e.get("note")) and e["seq"] > p.noted:
            p.noted = e["seq"]
            if e.get("history"):
                p.history = list(e["history"])
            else:
                add_note(p.history, e["note"], bool(e.get("extend")))
        p.version += 1
        return True

    def _gap(self, e: Document) -> bool:
        self.fault = Fault("gap", {"message": e["message"], "part": e["part"], "seq": e["seq"]})
        return False


def _field(e: Document) -> str:
    return e.get("field") or "text"


def _offset(e: Document) -> int:
    return (e.get("offset") or 0) if e["type"] == "part.append" else 0


def _answer_entry(r: Document, a: Document, at: int | None) -> Document:
    """Return the entry for an answer, without empty members."""
    result: Document = {"id": r["id"], "kind": r["kind"]}
    put(
        result, tool=r.get("tool"), part=r.get("part"), prompt=(r.get("prompt") or "")[:_MAX_ANSWERED_TEXT],
        decision=a.get("decision"), text=(a.get("text") or "")[:_MAX_ANSWERED_TEXT], by=a.get("by"), at=at,
    )  # fmt: skip
    return result


def _message_record(m: Document, floor: int) -> MessageRecord:
    record = MessageRecord({k: v for k, v in m.items() if k != "parts"}, floor)
    for w in m.get("parts") or []:
        p = PartRecord({k: v for k, v in w.items() if k not in FIELDS and k != "history"})
        for f in FIELDS:
            p.texts[f].replace(w.get(f) or "")
        p.history = list(w.get("history") or [])
        record.parts[w["id"]] = p
    return record
