"""The gateway's operations as procedures, shared by both clients."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode, urlsplit

from ._documents import state_of_page
from ._fold import Document
from ._protocol import HttpRequest, Procedure, Settings, call, call_json, conversation_path, json_request
from .errors import ConflictError, NotFoundError
from .types import Ack, Agent, Answer, ClientTool, Grant, Json, Media, Message, State, Summary, parse

# The gateway returns at most so many messages in a page.
PAGE_LIMIT = 200


def _present(**members: Any) -> Document:
    return {key: value for key, value in members.items() if value is not None}


def summary_of(document: Document) -> Summary:
    return parse(Summary, {**document, "grants": tuple(parse(Grant, g) for g in document.get("grants") or ())})


def agents(s: Settings) -> Procedure[list[Agent]]:
    document = yield from call_json(s, HttpRequest("GET", "/api/agents"))
    return [parse(Agent, {**a, "suggestions": tuple(a.get("suggestions") or ())}) for a in document["agents"]]


def conversations(s: Settings) -> Procedure[list[Summary]]:
    document = yield from call_json(s, HttpRequest("GET", "/api/conversations"))
    return [summary_of(c) for c in document["conversations"]]


def create(
    s: Settings, id: str | None, title: str | None, agent: str | None, metadata: Mapping[str, Json] | None, key: str | None
) -> Procedure[Summary]:
    body = _present(id=id, title=title, agent=agent, metadata=metadata)
    request = json_request("POST", "/api/conversations", body, {"Idempotency-Key": key or uuid.uuid4().hex})
    document = yield from call_json(s, request)
    return summary_of(document["conversation"])


def open_or_create(
    s: Settings, id: str, title: str | None, agent: str | None, metadata: Mapping[str, Json] | None
) -> Procedure[Summary]:
    try:
        return (yield from info(s, id))
    except NotFoundError:
        pass
    try:
        return (yield from create(s, id, title, agent, metadata, None))
    except ConflictError:
        # Another client has created it in the meantime, or it belongs to another user and info fails again.
        return (yield from info(s, id))


def info(s: Settings, id: str) -> Procedure[Summary]:
    document = yield from call_json(s, HttpRequest("GET", conversation_path(id)))
    return summary_of(document["conversation"])


def mark_read(s: Settings, id: str, seq: int | None) -> Procedure[None]:
    yield from call(s, json_request("POST", conversation_path(id, "/read"), _present(seq=seq)))


def command(s: Settings, id: str, type: str, key: str | None, **fields: Any) -> Procedure[Ack]:
    """Execute a command. All retries have the same key, so that it takes effect at most once."""
    body = {"type": type, "key": key or uuid.uuid4().hex, **_present(**fields)}
    document = yield from call_json(s, json_request("POST", conversation_path(id, "/commands"), body))
    return parse(Ack, document)


def message(text: str, media: Sequence[Media], id: str | None = None, role: str | None = None) -> Document:
    parts = [{"kind": "media", "media": _present(**asdict(m))} for m in media]
    return _present(id=id, role=role, text=text or None, parts=parts or None)


def tools(offered: Sequence[ClientTool]) -> list[Document] | None:
    return [_present(**asdict(t)) for t in offered] or None


def transcript(s: Settings, id: str, before: str | None, limit: int | None) -> Procedure[State]:
    query = urlencode(_present(before=before, limit=limit))
    document = yield from call_json(s, HttpRequest("GET", conversation_path(id, "/transcript") + (f"?{query}" if query else "")))
    return state_of_page(document)


def resend(s: Settings, id: str, message_id: str, text: str | None, agent: str | None, key: str | None) -> Procedure[Ack]:
    """Remove a message and all later ones, and send it again, or with another text."""
    page = yield from transcript(s, id, None, None)
    messages = list(page.messages)
    while messages and page.earlier and not any(m.id == message_id for m in messages[1:]):
        page = yield from transcript(s, id, messages[0].id, PAGE_LIMIT)
        messages = [*page.messages, *messages]
    position = next((i for i, m in enumerate(messages) if m.id == message_id), None)
    if position is None:
        raise NotFoundError(f"the conversation has no message {message_id}", "unknown", 404)
    new = _copy(messages[position], text)
    # The files of the message must outlive the truncate.
    yield from command(s, id, "truncate", None, after=messages[position - 1].id if position else None, keepFiles=True)
    return (yield from command(s, id, "send", key, message=new, agent=agent))


def _copy(m: Message, text: str | None) -> Document:
    """Return a message to send again. Another text replaces all of its texts, and its files stay."""
    parts = [_present(kind="text", text=text)] if text is not None else []
    for p in m.parts:
        if p.kind == "text" and text is not None:
            continue
        media = _present(**asdict(p.media)) if p.media else None
        parts.append(_present(kind=p.kind, text=p.text or None, media=media, data=p.data))
    return {"parts": parts}


def upload(s: Settings, id: str, content: bytes, name: str, mime: str | None, alt: str | None) -> Procedure[Media]:
    path = conversation_path(id, "/files?" + urlencode(_present(name=name, alt=alt)))
    request = HttpRequest("POST", path, {"Content-Type": mime or "application/octet-stream"}, content)
    document = yield from call_json(s, request)
    return parse(Media, document["media"])


def download(s: Settings, base: str, url: str) -> Procedure[bytes]:
    """Return the bytes of a file. Only the gateway gets the token, so a URL of another server is refused."""
    at, own = urlsplit(url), urlsplit(base)
    if at.netloc and (at.scheme, at.netloc) != (own.scheme, own.netloc):
        raise ValueError(f"{url} isn't a file of the gateway")
    path = at.path if not at.netloc else at.path.removeprefix(own.path)
    response = yield from call(s, HttpRequest("GET", path + (f"?{at.query}" if at.query else "")))
    return response.body


def answer_of(state: State, ack: Ack) -> Answer | None:
    """Return the answer to a sent message in a state; None if the state is older than the message."""
    turn = state.turn(ack.turn or "")
    if turn is None:
        if state.seq >= ack.seq:
            raise NotFoundError(f"the turn {ack.turn} was removed", "unknown")
        return None
    return Answer(turn, state.text(turn.id), state)
