"""Typed documents of a transcript. A document is made again only if its record has changed."""

from __future__ import annotations

from typing import Any

from ._fold import FIELDS, Document, MessageRecord, PartRecord, Transcript, TurnRecord
from .types import AnsweredRequest, Author, Event, Failure, Media, Message, Part, Request, State, Turn, Usage, parse, parse_optional


def part_document(p: PartRecord) -> Document:
    """Return a part as JSON, without empty members."""
    result = {k: v for k, v in p.document.items() if k == "data" or not _is_empty(v)}
    result.update({f: p.texts[f].value for f in FIELDS if p.texts[f].length})
    if p.history:
        result["history"] = list(p.history)
    return result


def message_document(m: MessageRecord) -> Document:
    result = {k: v for k, v in m.document.items() if not _is_empty(v)}
    return {**result, "parts": [part_document(p) for p in m.parts.values()]}


def turn_document(t: TurnRecord) -> Document:
    result = {k: v for k, v in t.document.items() if not _is_empty(v)}
    if t.requests:
        result["requests"] = list(t.requests)
    if t.answered:
        result["answered"] = list(t.answered)
    return result


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value == "" or value == 0


def part_of(d: Document) -> Part:
    media, error = parse_optional(Media, d.get("media")), parse_optional(Failure, d.get("error"))
    return parse(Part, {**d, "media": media, "error": error, "history": tuple(d.get("history") or ())})


def message_of(d: Document) -> Message:
    parts = tuple(part_of(p) for p in d.get("parts") or ())
    return parse(Message, {**d, "parts": parts, "author": parse_optional(Author, d.get("author"))})


def turn_of(d: Document) -> Turn:
    requests = tuple(parse(Request, {**r, "options": tuple(r.get("options") or ())}) for r in d.get("requests") or ())
    answered = tuple(parse(AnsweredRequest, r) for r in d.get("answered") or ())
    error, usage = parse_optional(Failure, d.get("error")), parse_optional(Usage, d.get("usage"))
    return parse(Turn, {**d, "requests": requests, "answered": answered, "error": error, "usage": usage})


def event_of(d: Document) -> Event:
    return parse(Event, {**d, "body": d})


def state_of_page(page: Document) -> State:
    """Return a page of a transcript as a state."""
    transcript = page.get("transcript") or {}
    return State(
        title=transcript.get("title") or "", metadata=transcript.get("metadata") or {}, seq=page.get("seq") or 0,
        messages=tuple(map(message_of, transcript.get("messages") or ())), turns=tuple(map(turn_of, transcript.get("turns") or ())),
        earlier=bool(page.get("earlier")), cursor=page.get("cursor") or "",
    )  # fmt: skip


class States:
    """Makes the states of a transcript, which share what has not changed."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._messages: dict[str, tuple[MessageRecord, int, Message]] = {}
        self._turns: dict[str, tuple[TurnRecord, int, Turn]] = {}

    def make(self, cursor: str, events: list[Document] | None) -> State:
        """Return the state now. events are the changes that led to it, or None after a snapshot."""
        t = self._transcript
        messages, turns = self._messages, self._turns
        self._messages, self._turns = {}, {}
        for id, m in t.messages.items():
            known = messages.get(id)
            unchanged = known is not None and known[0] is m and known[1] == m.version
            self._messages[id] = known if known and unchanged else (m, m.version, message_of(message_document(m)))
        for id, turn in t.turns.items():
            entry = turns.get(id)
            unchanged = entry is not None and entry[0] is turn and entry[1] == turn.version
            self._turns[id] = entry if entry and unchanged else (turn, turn.version, turn_of(turn_document(turn)))
        return State(
            title=t.title, metadata=t.metadata, seq=t.seq, earlier=t.earlier, cursor=cursor, reset=events is None,
            messages=tuple(m for _, _, m in self._messages.values()), turns=tuple(x for _, _, x in self._turns.values()),
            events=tuple(map(event_of, events or ())),
        )  # fmt: skip
