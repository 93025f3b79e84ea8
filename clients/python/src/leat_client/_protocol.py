"""What the client does, without its input and output.

Each procedure is a generator: it yields effects, and gets their results. The sync and the async client run the same procedures, and
differ only in how they carry out an effect. A failed effect is thrown into the generator as a LeatError.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote

from ._backoff import LONGEST, Backoff
from ._documents import States
from ._fold import Document, Fault, Transcript
from ._sse import EventReader
from .errors import ConnectionLostError, LeatError, ProtocolError, error_of_frame, error_of_response
from .types import State

log = logging.getLogger("leat_client")

T = TypeVar("T")

PROTOCOL = "leat/1"
# The longest time without a byte before a stream counts as dead, in seconds. The gateway sends a heartbeat every 15 s.
SILENCE = 45.0
# A connection that lasted so long was a success, even if it delivered only heartbeats.
LASTING = 10.0


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str  # with the query
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True)
class HttpResponse:
    status: int
    headers: Mapping[str, str]  # with names in lower case
    body: bytes


@dataclass(frozen=True)
class GetToken:
    """Effect: the token, or None."""


@dataclass(frozen=True)
class Send:
    """Effect: send a request and return its HttpResponse."""

    request: HttpRequest


@dataclass(frozen=True)
class Open:
    """Effect: send a request whose response is a stream. The result has a body only if the status isn't 200."""

    request: HttpRequest


@dataclass(frozen=True)
class Read:
    """Effect: the next bytes of the open stream; none at its end."""


@dataclass(frozen=True)
class Close:
    """Effect: close the open stream."""


@dataclass(frozen=True)
class Sleep:
    """Effect: wait for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Emit:
    """Effect: pass a state to the caller, and continue when the caller asks for the next one."""

    state: State


Effect = GetToken | Send | Open | Read | Close | Sleep | Emit
Procedure = Generator[Effect, Any, T]
OnDisconnect = Callable[[LeatError, float], None]


@dataclass(frozen=True)
class Settings:
    """How requests are made. max_retries limits the retries of a call; a followed conversation isn't limited."""

    subject: str | None = None
    tenant: str | None = None
    max_retries: int = 3
    renews_token: bool = False


def conversation_path(id: str, suffix: str = "") -> str:
    return f"/api/conversations/{quote(id, safe='')}{suffix}"


def _authorized(settings: Settings, request: HttpRequest, token: str | None) -> HttpRequest:
    headers = dict(request.headers)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if settings.subject:
        headers["Leat-Subject"] = settings.subject
    if settings.tenant:
        headers["Leat-Tenant"] = settings.tenant
    return replace(request, headers=headers)


def call(settings: Settings, request: HttpRequest) -> Procedure[HttpResponse]:
    """Send a request that may be repeated, and return its response.

    It retries temporary failures, unless the gateway asks for a long wait. A refused token is renewed once in addition to the retries,
    since a request with a refused token had no effect.
    """
    backoff = Backoff()
    is_renewed = False
    while True:
        try:
            token = yield GetToken()
            response: HttpResponse = yield Send(_authorized(settings, request, token))
            if 200 <= response.status < 300:
                return response
            raise error_of_response(response.status, response.headers, response.body)
        except LeatError as err:
            if err.status == 401 and settings.renews_token and not is_renewed:
                is_renewed = True
                continue
            if not err.temporary or backoff.failures >= settings.max_retries or err.retry_after > LONGEST:
                raise
            wait = backoff.next(err.retry_after)
        yield Sleep(wait)


def call_json(settings: Settings, request: HttpRequest) -> Procedure[Document]:
    """Send a request that may be repeated, and return the JSON object of its response."""
    response = yield from call(settings, request)
    try:
        document = json.loads(response.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ProtocolError(f"invalid response to {request.method} {request.path}: not a JSON object")
    return document


def json_request(method: str, path: str, document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> HttpRequest:
    body = json.dumps(document, ensure_ascii=False).encode()
    return HttpRequest(method, path, {"Content-Type": "application/json", **(headers or {})}, body)


# What the frames that move the cursor carry.
_CONTENTS = {"snapshot": "transcript", "batch": "events"}


class _Resync(Exception):
    """A frame didn't apply: the stream continues with a snapshot."""


class Follower:
    """Follows a conversation until it is closed, or until an error that a retry can't solve.

    The cursor advances only with a frame that was applied. A frame that was interrupted is dropped with its connection, and delivered
    again on the next one.
    """

    def __init__(self, settings: Settings, id: str, on_disconnect: OnDisconnect | None) -> None:
        self._settings = settings
        self._id = id
        self._on_disconnect = on_disconnect
        self._transcript = Transcript()
        self._states = States(self._transcript)
        self._cursor = ""
        self._backoff = Backoff()
        self._is_resyncing = False  # a frame didn't apply, and no batch has applied since then
        self._is_accepted = False  # the gateway has accepted the token of this connection

    def run(self) -> Procedure[None]:
        is_renewed = False
        while True:
            begin = time.monotonic()
            try:
                yield from self._connect()
                error: LeatError = ConnectionLostError("the gateway closed the stream")
            except LeatError as err:
                error = err
            except _Resync:
                error = ConnectionLostError("the stream doesn't fit the transcript; it is loaded again")
                self._cursor, self._is_resyncing = "", True
                fault = self._transcript.fault
                if fault is not None and fault.kind == "mismatch":
                    yield from self._report(fault)
            yield Close()
            if self._is_accepted:
                is_renewed = False
                if time.monotonic() - begin >= LASTING and not self._is_resyncing:
                    self._backoff.reset()
            if error.status == 401 or error.reason == "expired":
                if not self._settings.renews_token or is_renewed:
                    raise error
                is_renewed = True
            elif not error.temporary:
                raise error
            wait = self._backoff.next(min(error.retry_after, LONGEST))
            if self._on_disconnect is not None:
                self._on_disconnect(error, wait)
            yield Sleep(wait)

    def _connect(self) -> Procedure[None]:
        """Read one connection to its end."""
        self._is_accepted = False
        token = yield GetToken()
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": self._cursor} if self._cursor else {})}
        request = HttpRequest("GET", conversation_path(self._id, "/events"), headers)
        response: HttpResponse = yield Open(_authorized(self._settings, request, token))
        if response.status != 200:
            raise error_of_response(response.status, response.headers, response.body)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise ProtocolError(f"invalid response to GET {request.path}: not an event stream")
        reader = EventReader()
        while True:
            piece: bytes = yield Read()
            if not piece:
                return
            for data in reader.feed(piece):
                yield from self._take(data)

    def _take(self, data: str) -> Procedure[None]:
        try:
            frame = json.loads(data)
        except ValueError:
            frame = None
        if not isinstance(frame, dict):
            raise ProtocolError("invalid frame: not a JSON object")
        kind = frame.get("type")
        if kind == "hello":
            if frame.get("protocol") != PROTOCOL:
                raise ProtocolError(f"the gateway's protocol is {frame.get('protocol')!r}, not {PROTOCOL!r}")
            self._is_accepted = True
        elif kind == "error":
            raise error_of_frame(frame)
        elif kind in _CONTENTS and not (isinstance(frame.get("cursor"), str) and isinstance(frame.get(_CONTENTS[kind]), (dict, list))):
            raise ProtocolError(f"invalid frame: a {kind} without a cursor or {_CONTENTS[kind]}")
        elif kind == "snapshot":
            self._transcript.reset(frame["transcript"], bool(frame.get("earlier")))
            yield from self._advance(frame["cursor"], None)
        elif kind == "batch":
            if not self._transcript.batch(frame["events"]):
                raise _Resync
            self._is_resyncing = False
            yield from self._advance(frame["cursor"], frame["events"])

    def _advance(self, cursor: str, events: list[Document] | None) -> Procedure[None]:
        self._cursor = cursor
        if not self._is_resyncing:
            self._backoff.reset()
        yield Emit(self._states.make(cursor, events))

    def _report(self, fault: Fault) -> Procedure[None]:
        """Tell the gateway, and so its operator, that a text differs from its log."""
        log.warning("a text of conversation %s differs from the gateway's log; it is loaded again", self._id)
        path = conversation_path(self._id, "/mismatches")
        try:
            yield from call(replace(self._settings, max_retries=0), json_request("POST", path, {"client": "python", **fault.report}))
        except LeatError as err:
            log.warning("the report of a mismatch was not delivered: %s", err)
