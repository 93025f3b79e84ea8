"""What only the asynchronous client has: cancellation, tasks, coroutines as tokens, and trio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from gateway import Gateway
from leat_client import AsyncClient


async def ask(url: str) -> str:
    async with AsyncClient(url) as client:
        conversation = await client.create(title="Sums")
        async with conversation.ask("12 * 7") as stream:
            answer = await stream.result()
        state = await conversation.transcript()
        assert state.text(answer.turn.id) == answer.text
        assert (await conversation.resend(state.messages[0].id)).turn != answer.turn.id
        return answer.text


# trio warns of generators inside httpx that are left when a response is closed early.
@pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_answer(gateway: Gateway, backend: str) -> None:
    assert "**12 * 7 = 84**" in anyio.run(ask, gateway.url, backend=backend)


def test_cancelled_wait_loses_nothing(gateway: Gateway) -> None:
    async def run() -> None:
        async with AsyncClient(gateway.url) as client:
            conversation = await client.create()
            async with conversation.follow() as follow:
                await anext(follow)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(anext(follow), 0.05)
                await conversation.inject("one")
                state = await follow.wait_for(lambda s: len(s.messages) == 1)
                assert [m.text for m in state.messages] == ["one"]
                assert not state.reset, "it resumed at its cursor"

    asyncio.run(run())


def test_close_by_another_task(gateway: Gateway) -> None:
    async def run() -> None:
        async with AsyncClient(gateway.url) as client:
            follow = (await client.create()).follow()
            waiting = asyncio.Event()

            async def read() -> int:
                count = 0
                async for _ in follow:
                    count += 1
                    waiting.set()
                return count

            task = asyncio.create_task(read())
            await waiting.wait()
            await follow.aclose()
            assert await asyncio.wait_for(task, 30) == 1
            assert not client._follows

    asyncio.run(run())


def test_cancelled_task_closes_its_connection(gateway: Gateway) -> None:
    async def run() -> None:
        async with AsyncClient(gateway.url) as client:
            conversation = await client.create()
            waiting = asyncio.Event()

            async def read() -> None:
                async with conversation.follow() as follow:
                    async for _ in follow:
                        waiting.set()

            task = asyncio.create_task(read())
            await waiting.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not client._follows
            assert await conversation.info(), "the client is still usable"

    asyncio.run(run())


def test_token_coroutine(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway(token="the-secret-token-of-the-tests")
    tokens: Iterator[str] = iter(["old-token", *["the-secret-token-of-the-tests"] * 3])

    async def token() -> str:
        await asyncio.sleep(0)
        return next(tokens)

    async def run() -> Any:
        async with AsyncClient(gateway.url, token=token) as client:
            return await client.agents()

    assert [a.name for a in asyncio.run(run())] == ["demo"]
    assert len(list(tokens)) == 2, "the token was requested once more, after the refusal"
