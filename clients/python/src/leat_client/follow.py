"""Following conversations, for programs without asyncio."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from ._operations import answer_of
from ._protocol import Close, Effect, Emit, Follower, GetToken, HttpRequest, HttpResponse, Open, Procedure, Read, Send, Sleep
from ._transport import request_arguments, response_of, stream_timeout, wrap
from .errors import ClosedError, ConnectionLostError, LeatError
from .types import Ack, Answer, State

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")



class Channel:
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
        self._channel = Channel(client)
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
            answer = answer_of(state, self.ack)
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
