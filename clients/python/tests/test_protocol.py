"""The procedures of the protocol against a server that the test writes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from leat_client import (
    AuthenticationError,
    Client,
    ConnectionLostError,
    DamagedError,
    LeatError,
    LimitError,
    ProtocolError,
    TokenError,
    UnavailableError,
)

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits of the client, which end at once."""
    taken: list[float] = []

    class Clock:
        def wait(self, seconds: float) -> None:
            taken.append(seconds)

        def is_set(self) -> bool:
            return False

        def set(self) -> None:
            pass

    monkeypatch.setattr("leat_client.follow.Event", Clock)
    return taken


def connect(*answers: httpx.Response | Handler | Exception, **options: Any) -> tuple[Client, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        answer = answers[min(len(requests), len(answers) - 1)]
        requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    return Client("http://gateway", http=httpx.Client(transport=httpx.MockTransport(handle)), **options), requests


def refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, json={"error": f"it is {reason}", "reason": reason}, headers=headers)


def stream(*frames: dict[str, Any]) -> httpx.Response:
    data = "".join(f"data: {json.dumps(f)}\n\n" for f in ({"type": "hello", "protocol": "leat/1"}, *frames))
    return httpx.Response(200, content=data.encode(), headers={"Content-Type": "text/event-stream"})


def snapshot(cursor: str, text: str, seq: int) -> dict[str, Any]:
    part = {"id": "p", "kind": "text", "text": text}
    transcript = {"seq": seq, "messages": [{"id": "m", "role": "assistant", "parts": [part]}], "turns": []}
    return {"type": "snapshot", "cursor": cursor, "transcript": transcript}


def batch(cursor: str, **event: Any) -> dict[str, Any]:
    return {"type": "batch", "cursor": cursor, "seq": event["seq"], "events": [{"message": "m", "part": "p", **event}]}


def append(cursor: str, seq: int, offset: int, text: str) -> dict[str, Any]:
    return batch(cursor, seq=seq, type="part.append", offset=offset, text=text)


def test_retries_keep_the_key(waits: list[float]) -> None:
    ack = httpx.Response(200, json={"seq": 3, "turn": "t"})
    client, requests = connect(httpx.ReadError("broken"), refusal(503, "draining", {"Retry-After": "4"}), ack)
    assert client.conversation("a/b").send("hi").turn == "t"
    assert len({json.loads(r.content)["key"] for r in requests}) == 1
    assert requests[0].url.raw_path == b"/api/conversations/a%2Fb/commands"
    assert len(waits) == 2
    assert 4 <= waits[1] <= 6


def test_a_long_wait_is_left_to_the_caller(waits: list[float]) -> None:
    client, requests = connect(refusal(429, "rate_limited", {"Retry-After": "30", "X-Request-Id": "r7"}))
    with pytest.raises(LimitError) as limited:
        client.conversation("c").send("hi")
    assert (limited.value.reason, limited.value.retry_after, limited.value.request_id) == ("rate_limited", 30, "r7")
    assert (len(requests), waits) == (1, [])


def test_retries_are_limited() -> None:
    client, requests = connect(refusal(503, "unavailable"), max_retries=2)
    with pytest.raises(UnavailableError):
        client.agents()
    assert len(requests) == 3
    with pytest.raises(UnavailableError):
        client.with_options(max_retries=0).agents()
    assert len(requests) == 4


def test_token_is_requested_again_once() -> None:
    tokens: Iterator[str] = iter("abcd")
    client, requests = connect(refusal(401, "unauthorized"), token=lambda: next(tokens))
    with pytest.raises(AuthenticationError):
        client.agents()
    assert [r.headers["Authorization"] for r in requests] == ["Bearer a", "Bearer b"]


def test_failing_token_function() -> None:
    def token() -> str:
        raise RuntimeError("hunter2")

    client, requests = connect(httpx.Response(200), token=token, max_retries=1)
    with pytest.raises(TokenError) as failed:
        client.agents()
    assert "hunter2" not in str(failed.value)
    assert requests == []


def test_stream_resumes_at_its_cursor_with_a_new_token() -> None:
    tokens: Iterator[str] = iter("abcd")
    expired = {"type": "error", "error": "expired", "reason": "expired"}
    client, requests = connect(
        stream(snapshot("c1", "He", 1), append("c2", 2, 2, "l"), expired),
        stream(append("c3", 3, 3, "lo")),
        token=lambda: next(tokens),
    )
    follow = client.conversation("c").follow()
    texts = [next(follow).messages[0].text for _ in range(3)]
    assert texts == ["He", "Hel", "Hello"]
    assert [r.headers.get("Last-Event-ID") for r in requests] == [None, "c2"]
    assert [r.headers["Authorization"] for r in requests] == ["Bearer a", "Bearer b"]


def test_interrupted_frame_is_dropped() -> None:
    whole = stream(snapshot("c1", "He", 1), append("c2", 2, 2, "llo")).content
    client, requests = connect(
        httpx.Response(200, content=whole[:-9], headers={"Content-Type": "text/event-stream"}),
        stream(append("c2", 2, 2, "llo")),
    )
    follow = client.conversation("c").follow()
    assert [next(follow).messages[0].text for _ in range(2)] == ["He", "Hello"]
    assert requests[1].headers["Last-Event-ID"] == "c1"


def test_gap_is_loaded_again(waits: list[float]) -> None:
    client, requests = connect(stream(snapshot("c1", "He", 1), append("c2", 2, 9, "x")), stream(snapshot("c3", "Hello", 2)))
    follow = client.conversation("c").follow()
    states = [next(follow), next(follow)]
    assert [s.messages[0].text for s in states] == ["He", "Hello"]
    assert states[1].reset
    assert "Last-Event-ID" not in requests[1].headers
    assert len(waits) == 1


def test_mismatch_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    end = batch("c2", seq=2, type="part.end", sums={"text": {"length": 9, "crc": 1}})
    client, requests = connect(stream(snapshot("c1", "He", 1), end), httpx.Response(204), stream(snapshot("c3", "Hello", 2)))
    follow = client.conversation("c").follow()
    with caplog.at_level(logging.WARNING):
        assert [next(follow).messages[0].text for _ in range(2)] == ["He", "Hello"]
    assert requests[1].url.path == "/api/conversations/c/mismatches"
    report = json.loads(requests[1].content)
    assert report["want"] == {"length": 9, "crc": 1}
    assert report["have"]["length"] == 2
    assert "differs" in caplog.text
    assert "He" not in caplog.text.replace("HTTP", "")


def test_waits_grow_until_data_arrives(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    broken = httpx.ConnectError("refused")
    lost: list[LeatError] = []
    client, _ = connect(broken, broken, stream(), stream(snapshot("c1", "He", 1)), stream(append("c2", 2, 2, "y")))
    follow = client.conversation("c").follow(on_disconnect=lambda err, wait: lost.append(err))
    next(follow)
    next(follow)
    assert waits == [0.5, 0.75, 1.125, 0.5]
    assert all(isinstance(err, ConnectionLostError) for err in lost)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (stream({"type": "error", "error": "broken", "reason": "damaged"}), DamagedError),
        (httpx.Response(200, text="<html>"), ProtocolError),
        (stream({"type": "snapshot", "cursor": "c1"}), ProtocolError),
        (httpx.Response(200, content=b'data: {"type":"hello","protocol":"leat/9"}\n\n', headers={"Content-Type": "text/event-stream"}), ProtocolError),
        (refusal(404, "not_found"), LeatError),
    ],
    ids=["damaged", "html", "empty", "version", "not-found"],
)  # fmt: skip
def test_permanent_errors_end_a_stream(answer: httpx.Response, error: type[LeatError]) -> None:
    client, requests = connect(answer)
    with pytest.raises(error):
        next(client.conversation("c").follow())
    assert len(requests) == 1


def test_states_share_what_has_not_changed() -> None:
    two = snapshot("c1", "He", 1)
    two["transcript"]["messages"].append({"id": "n", "role": "user", "ended": True, "parts": []})
    client, _ = connect(stream(two, append("c2", 2, 2, "y")))
    follow = client.conversation("c").follow()
    first, second = next(follow), next(follow)
    assert first.messages[1] is second.messages[1]
    assert first.messages[0].text == "He"
    assert second.messages[0].text == "Hey"
    assert [e.type for e in second.events] == ["part.append"]


def test_unknown_keys_and_types_are_ignored() -> None:
    client, _ = connect(stream({"type": "new"}, {**snapshot("c1", "He", 1), "new": 1}, batch("c2", seq=2, type="part.new")))
    follow = client.conversation("c").follow()
    assert [next(follow).messages[0].text for _ in range(2)] == ["He", "He"]


def test_acting_for_a_user() -> None:
    client, requests = connect(httpx.Response(200, json={"agents": []}), token="t", subject="ada", tenant="acme")
    client.agents()
    assert (requests[0].headers["Leat-Subject"], requests[0].headers["Leat-Tenant"]) == ("ada", "acme")
    assert "Bearer" not in repr(client)
