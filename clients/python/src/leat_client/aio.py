"""The client for programs with asyncio or trio."""

from __future__ import annotations

import inspect
import mimetypes
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
import httpx

from . import _operations as operations
from ._protocol import (
    Close, Effect, Emit, Follower, GetToken, HttpRequest, HttpResponse, OnDisconnect, Open, Procedure, Read, Send, Settings, Sleep,
)  # fmt: skip
from ._transport import Options, base_url, limits, request_arguments, response_of, stream_timeout, token_failure, wrap
from .errors import ClosedError, ConnectionLostError, LeatError
from .types import Access, Ack, Agent, Answer, Json, Media, State, Summary

T = TypeVar("T")
AsyncToken = str | Callable[[], str | Awaitable[str]] | None


class _Channel:
    """Carries out the effects of one procedure. It holds at most one open stream."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._response: httpx.Response | None = None
        self._pieces: AsyncGenerator[bytes, None] | None = None
        self._closed = False
        self._scope: anyio.CancelScope | None = None  # of the effect that is being carried out

    async def run(self, procedure: Procedure[T]) -> T:
        effect = next(procedure, None)
        try:
            while effect is not None:
                effect = await self.step(procedure, effect)
        except StopIteration as end:
            result: T = end.value
            return result
        except _Returned as end:
            returned: T = end.value
            return returned
        raise AssertionError("a procedure without an effect")

    async def step(self, procedure: Procedure[Any], effect: Effect) -> Effect:
        """Carry out an effect, and return the next one."""
        self.check()
        result: Any = None
        failure: LeatError | None = None
        with anyio.CancelScope() as self._scope:
            try:
                result = await self._perform(effect)
            except LeatError as err:
                failure = err
        self._scope = None
        self.check()
        try:
            return procedure.throw(failure) if failure is not None else procedure.send(result)
        except StopIteration as end:
            raise _Returned(end.value) from None  # a coroutine can't raise StopIteration

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, GetToken):
            return await self._client._get_token()
        if isinstance(effect, Send):
            return await self._client._send(effect.request)
        if isinstance(effect, Open):
            return await self._open(effect.request)
        if isinstance(effect, Read):
            return await self._read()
        if isinstance(effect, Close):
            await self.disconnect()
        if isinstance(effect, Sleep):
            await anyio.sleep(effect.seconds)
        return None

    def check(self) -> None:
        if self._closed:
            raise ClosedError("the follower is closed")

    async def _open(self, request: HttpRequest) -> HttpResponse:
        http = self._client._http
        with wrap():
            built = http.build_request(**request_arguments(self._client._base, request), timeout=stream_timeout(self._client._options))
            self._response = response = await http.send(built, stream=True)
            body = await response.aread() if response.status_code != 200 else b""
            self._pieces = cast(AsyncGenerator[bytes, None], response.aiter_bytes())
            return response_of(response, body)

    async def _read(self) -> bytes:
        if self._pieces is None:
            # The caller cancelled an earlier wait, which ended the connection.
            raise ConnectionLostError("the wait was cancelled")
        with wrap():
            return await anext(self._pieces, b"")

    async def disconnect(self) -> None:
        response, pieces = self._response, self._pieces
        self._response = self._pieces = None
        with anyio.CancelScope(shield=True):
            if response is not None:
                await response.aclose()
            if pieces is not None:
                await pieces.aclose()

    def interrupt(self) -> None:
        """Wake the task that waits for this channel's effects."""
        self._closed = True
        if self._scope is not None:
            self._scope.cancel()


class _Returned(Exception):
    """A procedure has ended with a value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class AsyncFollow(AsyncIterator[State]):
    """The states of a conversation, from now on. Each ``anext`` waits for a change.

    After a disconnect it resumes at its cursor. A slow caller gets fewer states with larger changes. ``aclose`` ends an ``anext`` that
    waits in another task. If a wait is cancelled, for example by ``asyncio.timeout``, the next one continues without loss.
    """

    def __init__(self, client: AsyncClient, follower: Follower) -> None:
        self._channel = _Channel(client)
        self._procedure = follower.run()
        self._effect: Effect | None = None
        self._client = client
        client._follows.add(self)
        #: The newest state.
        self.state: State | None = None

    def __aiter__(self) -> AsyncFollow:
        return self

    async def __anext__(self) -> State:
        try:
            self._channel.check()
            if self._effect is None:
                self._effect = next(self._procedure)
            while True:
                # The effect is stored first: a cancelled one is carried out again by the next call.
                self._effect = await self._channel.step(self._procedure, self._effect)
                if isinstance(self._effect, Emit):
                    self.state = self._effect.state
                    return self.state
        except ClosedError:
            await self.aclose()
            raise StopAsyncIteration from None
        except Exception:
            await self.aclose()
            raise
        except BaseException:
            await self._channel.disconnect()
            raise

    async def wait_for(self, matches: Callable[[State], bool]) -> State:
        """Return the first state that matches."""
        if self.state is not None and matches(self.state):
            return self.state
        async for state in self:
            if matches(state):
                return state
        raise ClosedError("the follower is closed")

    async def aclose(self) -> None:
        self._channel.interrupt()
        self._client._follows.discard(self)
        await self._channel.disconnect()

    async def __aenter__(self) -> AsyncFollow:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


class AsyncAnswerStream(AsyncIterator[Answer]):
    """The answer to a message while it grows. It ends with the turn."""

    def __init__(self, follow: AsyncFollow, send: Callable[[], Awaitable[Ack]]) -> None:
        self._follow = follow
        self._send = send
        #: The gateway's acknowledgement of the message, once it is sent.
        self.ack: Ack | None = None
        self._newest: Answer | None = None

    def __aiter__(self) -> AsyncAnswerStream:
        return self

    async def _sent(self) -> Ack:
        # If this is cancelled, the message is sent again with the same key.
        self.ack = self.ack or await self._send()
        return self.ack

    async def __anext__(self) -> Answer:
        if self._newest is not None and self._newest.turn.ended:
            raise StopAsyncIteration
        ack = await self._sent()
        async for state in self._follow:
            answer = operations.answer_of(state, ack)
            if answer is not None:
                self._newest = answer
                if answer.turn.ended:
                    await self._follow.aclose()
                return answer
        raise StopAsyncIteration

    async def result(self) -> Answer:
        """Wait for the end of the turn and return the whole answer. ``turn.outcome`` says how it ended."""
        async for _ in self:
            pass
        if self._newest is None or not self._newest.turn.ended:
            raise ClosedError("the follower is closed")
        return self._newest

    async def aclose(self) -> None:
        """Stop following. It doesn't stop the turn."""
        await self._follow.aclose()

    async def __aenter__(self) -> AsyncAnswerStream:
        await self._sent()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


class AsyncClient:
    """A client of one gateway, for tasks of one event loop.

    ``url`` defaults to the environment variable LEAT_URL, and ``token`` to LEAT_API_TOKEN. A function as the token may be a coroutine
    function. It is called before each request, and once more after the gateway has refused its token; it should cache a token that is
    still valid.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: AsyncToken = None,
        subject: str | None = None,
        tenant: str | None = None,
        timeout: float = 40.0,
        max_retries: int = 3,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._base = base_url(url)
        self._token: AsyncToken = token if token is not None else os.environ.get("LEAT_API_TOKEN") or None
        self._options = Options(timeout)
        self._settings = Settings(subject, tenant, max_retries, callable(self._token))
        self._owns_http = http is None
        self._http = http or httpx.AsyncClient(limits=limits)
        self._follows: set[AsyncFollow] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"AsyncClient({self._base!r})"

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> AsyncClient:
        """Return a client with other options that shares the connections of this one."""
        other = AsyncClient(
            self._base, token=self._token, subject=self._settings.subject, tenant=self._settings.tenant,
            timeout=self._options.timeout if timeout is None else timeout, http=self._http,
        )  # fmt: skip
        other._settings = replace(self._settings, max_retries=self._settings.max_retries if max_retries is None else max_retries)
        return other

    async def aclose(self) -> None:
        """End all followers, and the connections unless ``http`` was passed."""
        self._closed = True
        for follow in list(self._follows):
            await follow.aclose()
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def _get_token(self) -> str | None:
        if not callable(self._token):
            return self._token
        try:
            token = self._token()
            return await token if inspect.isawaitable(token) else token
        except Exception as err:
            raise token_failure(err) from err

    async def _send(self, request: HttpRequest) -> HttpResponse:
        with wrap():
            response = await self._http.request(**request_arguments(self._base, request), timeout=self._options.timeout)
            return response_of(response, response.content)

    async def _run(self, procedure: Procedure[T]) -> T:
        if self._closed:
            raise ClosedError
        return await _Channel(self).run(procedure)

    async def agents(self) -> list[Agent]:
        """Return the agents that the gateway offers to the caller."""
        return await self._run(operations.agents(self._settings))

    async def conversations(self) -> list[Summary]:
        """Return the caller's conversations, most recently used first."""
        return await self._run(operations.conversations(self._settings))

    def conversation(self, id: str) -> AsyncConversation:
        """Return the conversation with the id, without a request."""
        return AsyncConversation(self, id)

    async def create(
        self,
        *,
        id: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        key: str | None = None,
    ) -> AsyncConversation:
        """Create a conversation. A call with the same ``key`` returns the conversation that the first one created."""
        return AsyncConversation(self, (await self._run(operations.create(self._settings, id, title, agent, metadata, key))).id)

    async def open(
        self, id: str, *, title: str | None = None, agent: str | None = None, metadata: Mapping[str, Json] | None = None
    ) -> AsyncConversation:
        """Return the conversation with the id. If it doesn't exist, it is created with the other arguments."""
        return AsyncConversation(self, (await self._run(operations.open_or_create(self._settings, id, title, agent, metadata))).id)


class AsyncConversation:
    """A conversation of a gateway. It holds no state: ``follow`` and ``transcript`` read it."""

    def __init__(self, client: AsyncClient, id: str) -> None:
        self._client = client
        self.id = id

    def __repr__(self) -> str:
        return f"AsyncConversation({self.id!r})"

    async def _command(self, type: str, key: str | None = None, **fields: Any) -> Ack:
        return await self._client._run(operations.command(self._client._settings, self.id, type, key, **fields))

    async def info(self) -> Summary:
        """Return the conversation's title, metadata and access."""
        return await self._client._run(operations.info(self._client._settings, self.id))

    def follow(self, *, on_disconnect: OnDisconnect | None = None) -> AsyncFollow:
        """Follow the conversation. The first state is a window of the newest messages.

        ``on_disconnect`` is called with the reason of each lost connection, and the seconds until the next attempt.
        """
        if self._client._closed:
            raise ClosedError
        return AsyncFollow(self._client, Follower(self._client._settings, self.id, on_disconnect))

    def ask(
        self,
        text: str = "",
        *,
        media: Sequence[Media] = (),
        agent: str | None = None,
        key: str | None = None,
        on_disconnect: OnDisconnect | None = None,
    ) -> AsyncAnswerStream:
        """Send a message and follow its answer. The message is sent when the first answer is awaited, or the ``async with`` entered."""
        key = key or uuid.uuid4().hex
        return AsyncAnswerStream(self.follow(on_disconnect=on_disconnect), lambda: self.send(text, media=media, agent=agent, key=key))

    async def send(
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
        return await self._command("send", key, message=operations.message(text, media, id), agent=agent, queue=queue)

    async def inject(self, text: str = "", *, media: Sequence[Media] = (), role: str | None = None, key: str | None = None) -> Ack:
        """Add a message that no turn answers. Only callers that may speak as the agent can do this."""
        return await self._command("inject", key, message=operations.message(text, media, None, role))

    async def stop(self, turn: str, *, key: str | None = None) -> Ack:
        """Stop a turn. Its output so far is kept."""
        return await self._command("stop", key, turn=turn)

    async def answer(
        self, turn: str, request: str, *, decision: str | None = None, text: str | None = None, key: str | None = None
    ) -> Ack:
        """Answer a question of a turn with a decision (``approve``, ``deny`` or one of its options), a text or both."""
        return await self._command("answer", key, turn=turn, request=request, decision=decision, text=text)

    async def resend(self, message: str, *, text: str | None = None, agent: str | None = None, key: str | None = None) -> Ack:
        """Remove a message and all later ones, and send it again, or with another text."""
        return await self._client._run(operations.resend(self._client._settings, self.id, message, text, agent, key))

    async def truncate(self, after: str | None = None, *, keep_files: bool | None = None, key: str | None = None) -> Ack:
        """Remove the messages after one, or all. With ``keep_files`` it can be undone by ``restore(ack.seq)`` for 20 s."""
        return await self._command("truncate", key, after=after, keepFiles=keep_files)

    async def restore(self, seq: int, *, key: str | None = None) -> Ack:
        """Undo the truncate whose acknowledgement has this seq."""
        return await self._command("restore", key, seq=seq)

    async def update(self, *, title: str | None = None, metadata: Mapping[str, Json] | None = None, key: str | None = None) -> Ack:
        """Rename the conversation, or change keys of its metadata. The value None removes a key."""
        return await self._command("update", key, title=title, metadata=metadata)

    async def rename(self, title: str) -> Ack:
        return await self.update(title=title)

    async def share(self, subject: str, access: Access) -> Ack:
        """Give another user of the owner's tenant access, or change it; ``*`` means all of them."""
        return await self._command("share", subject=subject, access=access)

    async def unshare(self, subject: str) -> Ack:
        return await self._command("unshare", subject=subject)

    async def delete(self) -> Ack:
        """Delete the conversation and all its data permanently."""
        return await self._command("delete")

    async def mark_read(self, seq: int | None = None) -> None:
        """Record that the caller has read the conversation up to seq, or all of it."""
        await self._client._run(operations.mark_read(self._client._settings, self.id, seq))

    async def transcript(self, *, before: str | None = None, limit: int | None = None) -> State:
        """Return a window of the newest messages, or up to ``limit`` messages before one."""
        return await self._client._run(operations.transcript(self._client._settings, self.id, before, limit))

    async def upload(self, file: bytes | Path, *, name: str | None = None, mime: str | None = None, alt: str | None = None) -> Media:
        """Upload a file, which is held in memory. Pass the result to ``send`` or ``ask``."""
        content = await anyio.to_thread.run_sync(file.read_bytes) if isinstance(file, Path) else file
        name = name or (file.name if isinstance(file, Path) else "file")
        mime = mime or mimetypes.guess_type(name)[0]
        return await self._client._run(operations.upload(self._client._settings, self.id, content, name, mime, alt))

    async def download(self, media: Media | str) -> bytes:
        """Return the bytes of a file of the gateway."""
        url = media if isinstance(media, str) else media.url or ""
        return await self._client._run(operations.download(self._client._settings, self._client._base, url))
