"""close ends a thread that waits for the gateway."""

from __future__ import annotations

import threading

import pytest

from gateway import Gateway
from leat_client import Client


@pytest.mark.parametrize("by", ["follow", "client"])
def test_close_by_another_thread(gateway: Gateway, by: str) -> None:
    client = Client(gateway.url)
    follow = client.create().follow()
    waiting = threading.Event()
    count = 0

    def read() -> None:
        nonlocal count
        for _ in follow:
            count += 1
            waiting.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert waiting.wait(60)
    (follow if by == "follow" else client).close()
    reader.join(60)
    assert not reader.is_alive()
    assert count == 1
    client.close()
