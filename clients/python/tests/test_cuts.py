"""Both clients keep an answer whole, whatever happens to their connections."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway import Gateway, Proxy
from leat_client import AsyncClient, Client, LeatError, State
from leat_client._documents import message_of, turn_of

CUTS = 25
WORDS = ("plain words ", "ä é ß ", "漢字と", "😀👩\u200d🚀 ", "\n\n")


class Reader:
    """What a test keeps of the states that a client has returned."""

    def __init__(self) -> None:
        self.losses = 0
        self.texts: list[str] = []
        self.turns_back = 0
        self.newest = State()
        self.changed = threading.Event()

    def lose(self, error: LeatError, wait: float) -> None:
        self.losses += 1
        self.changed.set()

    def take(self, state: State) -> None:
        self.newest = state
        text = state.text(state.turns[0].id) if state.turns else ""
        if self.texts and not text.startswith(self.texts[-1]):
            self.turns_back += 1
        self.texts.append(text)
        self.changed.set()

    def has_ended(self) -> bool:
        return bool(self.newest.turns) and all(t.ended for t in self.newest.turns)


def follow_sync(url: str, id: str, reader: Reader) -> None:
    with Client(url) as client, client.conversation(id).follow(on_disconnect=reader.lose) as follow:
        for state in follow:
            reader.take(state)
            if reader.has_ended():
                return


def follow_async(url: str, id: str, reader: Reader) -> None:
    async def run() -> None:
        async with AsyncClient(url) as client, client.conversation(id).follow(on_disconnect=reader.lose) as follow:
            async for state in follow:
                reader.take(state)
                if reader.has_ended():
                    return

    asyncio.run(run())


BOTH = pytest.mark.parametrize("run", [follow_sync, follow_async], ids=["sync", "async"])


def assert_equal_to_gateway(gateway: Gateway, id: str, state: State) -> None:
    transcript = gateway.get(f"/api/conversations/{id}/transcript")["transcript"]
    assert state.messages == tuple(map(message_of, transcript["messages"]))
    assert state.turns == tuple(map(turn_of, transcript["turns"]))


@BOTH
@pytest.mark.usefixtures("impatient")
def test_cuts(gateway: Gateway, run: Callable[[str, str, Reader], None]) -> None:
    proxy = Proxy(gateway.url, seed=7, mean=4000)
    with Client(gateway.url) as client:
        id = client.create().id
    reader = Reader()
    expected: list[str] = []

    def frames() -> Iterator[dict[str, Any]]:
        while reader.losses < CUTS:
            for _ in range(20):
                expected.append(WORDS[len(expected) % len(WORDS)] + f"{len(expected)} ")
                yield {"type": "chunk", "text": expected[-1]}
            # The amount of text must not depend on the machine's speed.
            assert reader.changed.wait(60), "the client does nothing"
            reader.changed.clear()
        proxy.mend()
        yield {"type": "done"}

    outcome: dict[str, Any] = {}
    producer = threading.Thread(target=lambda: outcome.update(gateway.push(id, frames())))
    producer.start()
    run(proxy.url, id, reader)
    producer.join()
    proxy.close()
    assert outcome["outcome"] == "completed"
    assert reader.losses >= CUTS
    assert reader.texts[-1] == "".join(expected)
    assert reader.turns_back == 0
    assert_equal_to_gateway(gateway, id, reader.newest)


@BOTH
@pytest.mark.usefixtures("impatient")
def test_killed_gateway(start_gateway: Callable[..., Gateway], run: Callable[[str, str, Reader], None]) -> None:
    gateway = start_gateway(agent="demo")
    with Client(gateway.url) as client:
        conversation = client.create()
        conversation.send("long 2000")
    reader = Reader()

    def kill() -> None:
        deadline = time.monotonic() + 60
        while not any(reader.texts) and time.monotonic() < deadline:
            reader.changed.wait(1)
            reader.changed.clear()
        gateway.kill()
        gateway.start()

    killer = threading.Thread(target=kill)
    killer.start()
    run(gateway.url, conversation.id, reader)
    killer.join()
    assert reader.losses > 0
    assert reader.newest.turns[0].outcome == "interrupted"
    assert reader.turns_back == 0
    assert reader.texts[-1] != ""
    assert_equal_to_gateway(gateway, conversation.id, reader.newest)


def test_two_clients(gateway: Gateway) -> None:
    readers = Reader(), Reader()
    with Client(gateway.url) as client:
        id = client.create().id
        client.conversation(id).send("What is 2 + 2?")
    threads = [threading.Thread(target=run, args=(gateway.url, id, r)) for run, r in zip((follow_sync, follow_async), readers, strict=True)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert readers[0].newest.messages == readers[1].newest.messages
    assert "**2 + 2 = 4**" in readers[0].texts[-1]
    assert_equal_to_gateway(gateway, id, readers[0].newest)
