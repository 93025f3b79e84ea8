"""Both clients against a real gateway. The asynchronous one runs each operation through asyncio."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import leat_client
from gateway import Gateway
from leat_client import (
    AuthenticationError,
    Client,
    ClientTool,
    ClosedError,
    ConflictError,
    ConnectionLostError,
    DeletedError,
    InvalidError,
    NotFoundError,
)


def test_answer(gateway: Gateway) -> None:
    with Client(gateway.url) as client:
        assert [a.name for a in client.agents()] == ["demo"]
        conversation = client.create(title="Sums")
        with conversation.ask("12 * 7") as stream:
            answer = stream.result()
        assert answer.turn.outcome == "completed"
        assert "**12 * 7 = 84**" in answer.text
        assert conversation.transcript().text(answer.turn.id) == answer.text
        assert conversation.info().title == "Sums"


def test_conversations(gateway: Gateway) -> None:
    with Client(gateway.url) as client:
        first = client.open("mine", title="One", metadata={"color": "red"})
        assert client.open("mine", title="Two").info().title == "One"
        assert client.create(key="k").id == client.create(key="k").id
        with pytest.raises(ConflictError) as conflict:
            client.create(id="mine")
        assert (conflict.value.status, conflict.value.reason) == (409, "conflict")
        first.rename("Renamed")
        first.update(metadata={"pinned": True, "color": None})
        first.mark_read()
        listed = {c.id: c for c in client.conversations()}
        assert listed["mine"].title == "Renamed"
        assert dict(listed["mine"].metadata) == {"pinned": True}
        first.delete()
        with pytest.raises(NotFoundError):
            first.info()
        with pytest.raises(NotFoundError):
            next(first.follow())


def test_deleted_while_followed(gateway: Gateway) -> None:
    with Client(gateway.url) as client:
        conversation = client.create()
        with conversation.follow() as follow:
            next(follow)
            conversation.delete()
            with pytest.raises(DeletedError):
                for _ in follow:
                    pass


def test_stop(start_gateway: Callable[..., Gateway]) -> None:
    with Client(start_gateway(agent="demo").url) as client:
        conversation = client.create()
        with conversation.ask("long 5000") as stream:
            for answer in stream:
                if answer.text and not answer.turn.ended:
                    conversation.stop(answer.turn.id)
        assert answer.turn.outcome == "cancelled"
        assert answer.text
        with pytest.raises(NotFoundError):
            conversation.stop("nothing")


def test_approval(gateway: Gateway) -> None:
    with Client(gateway.url) as client:
        conversation = client.create()
        with conversation.ask("ask launch") as stream:
            for answer in stream:
                for request in answer.requests:
                    assert request.kind == "approval"
                    assert request.options == ("approve", "deny")
                    conversation.answer(answer.turn.id, request.id, decision="approve")
        assert answer.turn.outcome == "completed"
        assert answer.requests == ()
        with pytest.raises(ConflictError) as refused:
            conversation.answer(answer.turn.id, "approve", decision="deny")
        assert refused.value.rejected


# A plugin that calls the first tool which the client offers, and answers with its result.
TOOL_CALLER = """
import json, sys

def say(**line):
    print(json.dumps(line), flush=True)

for line in map(json.loads, sys.stdin):
    if line["type"] == "hello":
        say(type="ready", protocol=1)
    elif line["type"] == "turn":
        tool = line["tools"][0]
        request = {"id": "call", "kind": "input", "tool": tool["name"], "data": tool}
        say(type="turn.wait", turn=line["turn"], request=request)
    elif line["type"] == "answer":
        say(type="text", turn=line["turn"], text=line["answer"]["text"])
        say(type="turn.end", turn=line["turn"], outcome="completed")
"""


def test_tools(start_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(f"#!{sys.executable}\n{TOOL_CALLER}")
    script.chmod(0o700)
    with Client(start_gateway(agent=f"plugin:{script}").url) as client:
        conversation = client.create()
        tool = ClientTool("map", "shows a map", {"type": "object"})
        with conversation.ask("go", tools=[tool]) as stream:
            for answer in stream:
                for request in answer.requests:
                    assert (request.kind, request.tool) == ("input", "map")
                    assert request.data == {"name": "map", "description": "shows a map", "parameters": {"type": "object"}}
                    conversation.answer(answer.turn.id, request.id, text="Graz")
        assert answer.text == "Graz"
        with pytest.raises(InvalidError, match="two words"):
            conversation.send("go", tools=[ClientTool("two words")])


def test_failed_turn(gateway: Gateway) -> None:
    with Client(gateway.url) as client, client.create().ask("error please") as stream:
        answer = stream.result()
        assert answer.turn.outcome == "failed"
        assert answer.turn.error is not None
        assert answer.turn.error.message


def test_resend_truncate_restore(gateway: Gateway) -> None:
    with Client(gateway.url) as client:
        conversation = client.create()
        for text in ("1 + 1", "2 + 2", "3 + 3"):
            conversation.ask(text).result()
        second = [m for m in conversation.transcript().messages if m.role == "user"][1]
        ack = conversation.resend(second.id, text="5 + 5")
        with conversation.follow() as follow:
            state = follow.wait_for(lambda s: (t := s.turn(ack.turn or "")) is not None and t.ended)
        assert [m.text for m in state.messages if m.role == "user"] == ["1 + 1", "5 + 5"]
        truncated = conversation.truncate(keep_files=True)
        assert conversation.transcript().messages == ()
        conversation.restore(truncated.seq)
        assert [m.text for m in conversation.transcript().messages if m.role == "user"] == ["1 + 1", "5 + 5"]


def test_pages(gateway: Gateway) -> None:
    with Client(gateway.url) as client:
        conversation = client.create()
        for i in range(12):
            conversation.inject(f"note {i}")
        newest = conversation.transcript()
        page = conversation.transcript(before=newest.messages[10].id, limit=4)
        assert [m.text for m in page.messages] == [f"note {i}" for i in range(6, 10)]
        assert page.earlier


def test_files(gateway: Gateway, tmp_path: Path) -> None:
    path = tmp_path / "beach.txt"
    path.write_bytes(b"sand\x00")
    with Client(gateway.url) as client:
        conversation = client.create()
        media = conversation.upload(path, alt="A beach")
        assert (media.name, media.size) == ("beach.txt", 5)
        with conversation.ask("Look!", media=[media]) as stream:
            answer = stream.result()
        shown = [p.media for m in answer.state.messages for p in m.parts if p.kind == "media"]
        assert shown[0] is not None
        assert conversation.download(shown[0]) == b"sand\x00"
        with pytest.raises(ValueError, match="isn't a file of the gateway"):
            conversation.download("http://example.com/api/x")


def test_errors(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway(token="the-secret-token-of-the-tests")
    with Client(gateway.url, token="wrong-token", max_retries=0) as client:
        with pytest.raises(AuthenticationError) as refused:
            client.agents()
        assert refused.value.status == 401
        assert "wrong-token" not in repr(client) + repr(refused.value)
    with Client(gateway.url, token="the-secret-token-of-the-tests") as client:
        with pytest.raises(InvalidError) as unknown:
            client.create().send("hi", agent="nobody")
        assert (unknown.value.status, unknown.value.reason) == (400, "unknown_agent")
        with pytest.raises(InvalidError):
            client.create().send("")
    gateway.stop()
    with Client(gateway.url, max_retries=0) as client, pytest.raises(ConnectionLostError):
        client.agents()
    with pytest.raises(ClosedError):
        client.agents()


def test_both_clients_have_the_same_interface() -> None:
    for sync, other in (("Client", "AsyncClient"), ("Conversation", "AsyncConversation")):
        names = {n: f for n, f in vars(getattr(leat_client, sync)).items() if not n.startswith("_") and inspect.isfunction(f)}
        for name, function in names.items():
            twin = getattr(getattr(leat_client, other), "aclose" if name == "close" else name)
            assert list(inspect.signature(function).parameters) == list(inspect.signature(twin).parameters), name
            assert function.__doc__ == twin.__doc__ or name in ("ask", "close"), name
