"""Following conversations, for programs with asyncio or trio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import httpx

from ._operations import answer_of
from ._protocol import Close, Effect, Emit, Follower, GetToken, HttpRequest, HttpResponse, Open, Procedure, Read, Send, Sleep
from ._transport import request_arguments, response_of, stream_timeout, wrap
from .errors import ClosedError, ConnectionLostError, LeatError
from .types import Ack, Answer, State

if TYPE_CHECKING:
    from .async_client import AsyncClient

T = TypeVar("T")



class Channel:
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
        self._channel = Channel(client)
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
            answer = answer_of(state, ack)
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
