"""The client for programs without asyncio."""

from __future__ import annotations

import mimetypes
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import _operations as operations
from ._protocol import (
    Close, Effect, Emit, Follower, GetToken, HttpRequest, HttpResponse, OnDisconnect, Open, Procedure, Read, Send, Settings, Sleep,
)  # fmt: skip
from ._transport import Options, base_url, limits, request_arguments, response_of, stream_timeout, token_failure, wrap
from .errors import ClosedError, ConnectionLostError, LeatError
from .types import Access, Ack, Agent, Answer, Json, Media, State, Summary

T = TypeVar("T")
Token = str | Callable[[], str] | None


class _Channel:
    """Carries out the effects of one procedure. It holds at most one open stream."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._response: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._closed = Event()

    def run(self, procedure: Procedure[T]) -> T:
        effect = next(procedure, None)
        try:
            while effect is not None:
                effect = self.step(procedure, effect)
        except StopIteration as end:
            result: T = end.value
            return result
        raise AssertionError("a procedure without an effect")

    def step(self, procedure: Procedure[Any], effect: Effect) -> Effect:
        """Carry out an effect, and return the next one."""
        try:
            result = self._perform(effect)
        except LeatError as err:
            return procedure.throw(err)
        return procedure.send(result)

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, GetToken):
            return self._client._get_token()
        if isinstance(effect, Send):
            return self._client._send(effect.request)
        if isinstance(effect, Open):
            return self._open(effect.request)
        if isinstance(effect, Read):
            return self._read()
        if isinstance(effect, Close):
            self.disconnect()
        if isinstance(effect, Sleep):
            self._closed.wait(effect.seconds)
        self.check()
        return None

    def check(self) -> None:
        if self._closed.is_set():
            raise ClosedError("the follower is closed")

    def _open(self, request: HttpRequest) -> HttpResponse:
        http = self._client._http
        with wrap():
            built = http.build_request(**request_arguments(self._client._base, request), timeout=stream_timeout(self._client._options))
            response = http.send(built, stream=True)
            self._response = response
            self.check()
            body = response.read() if response.status_code != 200 else b""
            self._pieces = response.iter_bytes()
            return response_of(response, body)

    def _read(self) -> bytes:
        self.check()
        try:
            with wrap():
                return next(self._pieces, b"")
        except ConnectionLostError:
            self.check()  # close has broken the connection
            raise

    def disconnect(self) -> None:
        response, self._response, self._pieces = self._response, None, iter(())
        if response is not None:
            response.close()

    def interrupt(self) -> None:
        """Wake the thread that waits for this channel's effects. Any thread may call it."""
        self._closed.set()
        response = self._response
        stream = response.extensions.get("network_stream") if response is not None else None
        connection = stream.get_extra_info("socket") if stream is not None else None
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # the connection has ended already


class Follow(Iterator[State]):
    """The states of a conversation, from now on. Each call of ``next`` waits for a change.

    After a disconnect it resumes at its cursor. A slow caller gets fewer states with larger changes. ``close`` may be called by any
    thread, and ends a ``next`` that waits.
    """

    def __init__(self, client: Client, follower: Follower) -> None:
        self._channel = _Channel(client)
        self._procedure = follower.run()
        self._effect: Effect | None = None
        self._client = client
        client._follows.add(self)
        #: The newest state.
        self.state: State | None = None

    def __iter__(self) -> Follow:
        return self

    def __next__(self) -> State:
        try:
            self._channel.check()
            effect = next(self._procedure) if self._effect is None else self._channel.step(self._procedure, self._effect)
            while not isinstance(effect, Emit):
                effect = self._channel.step(self._procedure, effect)
        except ClosedError:
            self._release()
            raise StopIteration from None
        except BaseException:
            self._release()
            raise
        self._effect = effect
        self.state = effect.state
        return effect.state

    def wait_for(self, matches: Callable[[State], bool]) -> State:
        """Return the first state that matches."""
        for state in self if self.state is None or not matches(self.state) else iter((self.state,)):
            if matches(state):
                return state
        raise ClosedError("the follower is closed")

    def close(self) -> None:
        self._channel.interrupt()
        self._client._follows.discard(self)

    def _release(self) -> None:
        self._channel.disconnect()
        self.close()

    def __enter__(self) -> Follow:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._release()


class AnswerStream(Iterator[Answer]):
    """The answer to a message while it grows. It ends with the turn."""

    def __init__(self, follow: Follow, ack: Ack) -> None:
        self._follow = follow
        #: The gateway's acknowledgement of the message.
        self.ack = ack
        self._newest: Answer | None = None

    def __iter__(self) -> AnswerStream:
        return self

    def __next__(self) -> Answer:
        if self._newest is not None and self._newest.turn.ended:
            raise StopIteration
        for state in self._follow:
            answer = operations.answer_of(state, self.ack)
            if answer is not None:
                self._newest = answer
                if answer.turn.ended:
                    self._follow._release()
                return answer
        raise StopIteration

    def result(self) -> Answer:
        """Wait for the end of the turn and return the whole answer. ``turn.outcome`` says how it ended."""
        for _ in self:
            pass
        if self._newest is None or not self._newest.turn.ended:
            raise ClosedError("the follower is closed")
        return self._newest

    def close(self) -> None:
        """Stop following. It doesn't stop the turn."""
        self._follow.close()

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._follow._release()


class Client:
    """A client of one gateway. Its methods may be called by several threads.

    ``url`` defaults to the environment variable LEAT_URL, and ``token`` to LEAT_API_TOKEN. A function as the token is called before each
    request, and once more after the gateway has refused its token; it should cache a token that is still valid.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: Token = None,
        subject: str | None = None,
        tenant: str | None = None,
        timeout: float = 40.0,
        max_retries: int = 3,
        http: httpx.Client | None = None,
    ) -> None:
        self._base = base_url(url)
        self._token: Token = token if token is not None else os.environ.get("LEAT_API_TOKEN") or None
        self._options = Options(timeout)
        self._settings = Settings(subject, tenant, max_retries, callable(self._token))
        self._owns_http = http is None
        self._http = http or httpx.Client(limits=limits)
        self._follows: set[Follow] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"Client({self._base!r})"

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> Client:
        """Return a client with other options that shares the connections of this one."""
        other = Client(
            self._base, token=self._token, subject=self._settings.subject, tenant=self._settings.tenant,
            timeout=self._options.timeout if timeout is None else timeout, http=self._http,
        )  # fmt: skip
        other._settings = replace(self._settings, max_retries=self._settings.max_retries if max_retries is None else max_retries)
        return other

    def close(self) -> None:
        """End all followers, and the connections unless ``http`` was passed."""
        self._closed = True
        for follow in list(self._follows):
            follow.close()
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _get_token(self) -> str | None:
        if not callable(self._token):
            return self._token
        try:
            return self._token()
        except Exception as err:
            raise token_failure(err) from err

    def _send(self, request: HttpRequest) -> HttpResponse:
        with wrap():
            response = self._http.request(**request_arguments(self._base, request), timeout=self._options.timeout)
            return response_of(response, response.content)

    def _run(self, procedure: Procedure[T]) -> T:
        if self._closed:
            raise ClosedError
        return _Channel(self).run(procedure)

    def agents(self) -> list[Agent]:
        """Return the agents that the gateway offers to the caller."""
        return self._run(operations.agents(self._settings))

    def conversations(self) -> list[Summary]:
        """Return the caller's conversations, most recently used first."""
        return self._run(operations.conversations(self._settings))

    def conversation(self, id: str) -> Conversation:
        """Return the conversation with the id, without a request."""
        return Conversation(self, id)

    def create(
        self,
        *,
        id: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        key: str | None = None,
    ) -> Conversation:
        """Create a conversation. A call with the same ``key`` returns the conversation that the first one created."""
        return Conversation(self, self._run(operations.create(self._settings, id, title, agent, metadata, key)).id)

    def open(
        self, id: str, *, title: str | None = None, agent: str | None = None, metadata: Mapping[str, Json] | None = None
    ) -> Conversation:
        """Return the conversation with the id. If it doesn't exist, it is created with the other arguments."""
        return Conversation(self, self._run(operations.open_or_create(self._settings, id, title, agent, metadata)).id)


class Conversation:
    """A conversation of a gateway. It holds no state: ``follow`` and ``transcript`` read it."""

    def __init__(self, client: Client, id: str) -> None:
        self._client = client
        self.id = id

    def __repr__(self) -> str:
        return f"Conversation({self.id!r})"

    def _command(self, type: str, key: str | None = None, **fields: Any) -> Ack:
        return self._client._run(operations.command(self._client._settings, self.id, type, key, **fields))

    def info(self) -> Summary:
        """Return the conversation's title, metadata and access."""
        return self._client._run(operations.info(self._client._settings, self.id))

    def follow(self, *, on_disconnect: OnDisconnect | None = None) -> Follow:
        """Follow the conversation. The first state is a window of the newest messages.

        ``on_disconnect`` is called with the reason of each lost connection, and the seconds until the next attempt.
        """
        if self._client._closed:
            raise ClosedError
        return Follow(self._client, Follower(self._client._settings, self.id, on_disconnect))

    def ask(
        self,
        text: str = "",
        *,
        media: Sequence[Media] = (),
        agent: str | None = None,
        key: str | None = None,
        on_disconnect: OnDisconnect | None = None,
    ) -> AnswerStream:
        """Send a message and follow its answer."""
        ack = self.send(text, media=media, agent=agent, key=key)
        return AnswerStream(self.follow(on_disconnect=on_disconnect), ack)

    def send(
        self,
        text: str = "",
        *,
        media: Sequence[Media] = (),
        id: str | None = None,
        agent: str | None = None,
        queue: bool | None = None,
        key: str | None = None,
    ) -> Ack:
        """Send a message, which the turn ``Ack.turn`` answers. With ``queue`` it waits for the running turn instead of steering it."""
        return self._command("send", key, message=operations.message(text, media, id), agent=agent, queue=queue)

    def inject(self, text: str = "", *, media: Sequence[Media] = (), role: str | None = None, key: str | None = None) -> Ack:
        """Add a message that no turn answers. Only callers that may speak as the agent can do this."""
        return self._command("inject", key, message=operations.message(text, media, None, role))

    def stop(self, turn: str, *, key: str | None = None) -> Ack:
        """Stop a turn. Its output so far is kept."""
        return self._command("stop", key, turn=turn)

    def answer(
        self, turn: str, request: str, *, decision: str | None = None, text: str | None = None, key: str | None = None
    ) -> Ack:
        """Answer a question of a turn with a decision (``approve``, ``deny`` or one of its options), a text or both."""
        return self._command("answer", key, turn=turn, request=request, decision=decision, text=text)

    def resend(self, message: str, *, text: str | None = None, agent: str | None = None, key: str | None = None) -> Ack:
        """Remove a message and all later ones, and send it again, or with another text."""
        return self._client._run(operations.resend(self._client._settings, self.id, message, text, agent, key))

    def truncate(self, after: str | None = None, *, keep_files: bool | None = None, key: str | None = None) -> Ack:
        """Remove the messages after one, or all. With ``keep_files`` it can be undone by ``restore(ack.seq)`` for 20 s."""
        return self._command("truncate", key, after=after, keepFiles=keep_files)

    def restore(self, seq: int, *, key: str | None = None) -> Ack:
        """Undo the truncate whose acknowledgement has this seq."""
        return self._command("restore", key, seq=seq)

    def update(self, *, title: str | None = None, metadata: Mapping[str, Json] | None = None, key: str | None = None) -> Ack:
        """Rename the conversation, or change keys of its metadata. The value None removes a key."""
        return self._command("update", key, title=title, metadata=metadata)

    def rename(self, title: str) -> Ack:
        return self.update(title=title)

    def share(self, subject: str, access: Access) -> Ack:
        """Give another user of the owner's tenant access, or change it; ``*`` means all of them."""
        return self._command("share", subject=subject, access=access)

    def unshare(self, subject: str) -> Ack:
        return self._command("unshare", subject=subject)

    def delete(self) -> Ack:
        """Delete the conversation and all its data permanently."""
        return self._command("delete")

    def mark_read(self, seq: int | None = None) -> None:
        """Record that the caller has read the conversation up to seq, or all of it."""
        self._client._run(operations.mark_read(self._client._settings, self.id, seq))

    def transcript(self, *, before: str | None = None, limit: int | None = None) -> State:
        """Return a window of the newest messages, or up to ``limit`` messages before one."""
        return self._client._run(operations.transcript(self._client._settings, self.id, before, limit))

    def upload(self, file: bytes | Path, *, name: str | None = None, mime: str | None = None, alt: str | None = None) -> Media:
        """Upload a file, which is held in memory. Pass the result to ``send`` or ``ask``."""
        content = file.read_bytes() if isinstance(file, Path) else file
        name = name or (file.name if isinstance(file, Path) else "file")
        mime = mime or mimetypes.guess_type(name)[0]
        return self._client._run(operations.upload(self._client._settings, self.id, content, name, mime, alt))

    def download(self, media: Media | str) -> bytes:
        """Return the bytes of a file of the gateway."""
        url = media if isinstance(media, str) else media.url or ""
        return self._client._run(operations.download(self._client._settings, self._client._base, url))
