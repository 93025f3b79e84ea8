"""The official client of Letta for Python against the gateway at LEAT_URL. ../letta_test.go runs it."""

import os
import random
import urllib.request
import uuid

from letta_client import APIError, APIStatusError, Letta

url, token, gates = os.environ["LEAT_URL"], os.environ["LEAT_TOKEN"], os.environ["LEAT_GATES"]
client = Letta(base_url=url + "/letta", api_key=token, max_retries=0)
long = "".join("word" + "ö" * (i % 7) + " 🌍\n" for i in range(200))


def open_gate(name):
    with urllib.request.urlopen(urllib.request.Request(f"{gates}/{name}", method="POST")) as r:
        assert r.status == 204


class Run:
    """What a program has of a run: texts by their otid, and calls by their id."""

    def __init__(self, agent):
        self.conversation = client.conversations.create(agent_id="agent-" + agent).id
        self.id, self.seq, self.stop, self.texts, self.calls, self.returns, self.requests = None, 0, None, {}, {}, {}, []

    def take(self, m):
        self.id = m.run_id or self.id if hasattr(m, "run_id") else self.id
        seq = getattr(m, "seq_id", None)
        if seq and m.message_type != "ping":
            assert seq > self.seq, (seq, self.seq)
            self.seq = seq
        if m.message_type == "assistant_message":
            self.texts[m.otid] = self.texts.get(m.otid, "") + m.content
        elif m.message_type == "tool_call_message":
            name, arguments = self.calls.get(m.tool_call.tool_call_id, ("", ""))
            self.calls[m.tool_call.tool_call_id] = (m.tool_call.name or name, arguments + (m.tool_call.arguments or ""))
        elif m.message_type == "tool_return_message":
            self.returns[m.tool_call_id] = (m.status, m.tool_return)
        elif m.message_type == "approval_request_message":
            self.requests.append(m.tool_call)
        elif m.message_type == "stop_reason":
            self.stop = m.stop_reason

    def read(self, stream, enough=lambda: False):
        with stream:
            for m in stream:
                self.take(m)
                if enough():
                    break
        return self

    def send(self, *messages):
        return client.conversations.messages.create(self.conversation, messages=messages, streaming=True, stream_tokens=True, background=True)

    def ask(self, text):
        return self.send({"role": "user", "content": text, "otid": str(uuid.uuid4())})

    def resume(self):
        return client.runs.messages.stream(self.id, starting_after=self.seq)

    @property
    def text(self):
        return "".join(self.texts.values())


def plain():
    assert {"plain", "long"} <= {a.name for a in client.agents.list(limit=2)}
    run = Run("plain")
    run.read(run.ask("hi"))
    assert (run.text, run.stop) == ("re: hi", "end_turn")
    assert client.runs.retrieve(run.id).status == "completed"
    messages = list(client.conversations.messages.list(run.conversation, order="asc", limit=1))
    assert [(m.message_type, m.content) for m in messages] == [("user_message", "hi"), ("assistant_message", "re: hi")]
    whole = client.agents.messages.create("agent-plain", messages=[{"role": "user", "content": "whole"}])
    assert [m.content for m in whole.messages] == ["re: whole"]


def tools():
    run = Run("tools")
    run.read(run.ask("work"))
    assert sorted(run.calls.values()) == [("clock", '{"zone":"UTC"}'), ("shell", '{"command":"ls"}')]
    assert sorted(run.returns.values()) == [("success", "a\nb\n"), ("success", "noon")]
    assert run.text == "Done."


def approval():
    run = Run("approval")
    run.read(run.ask("look"))
    assert (run.stop, [(c.name, c.arguments) for c in run.requests]) == ("requires_approval", [("shell", '{"command":"ls"}')])
    try:
        run.ask("hello?")
        raise AssertionError("a message is accepted while the agent waits")
    except APIStatusError as e:
        assert e.status_code == 409 and "PENDING_APPROVAL" in e.message, e
    decision = {"type": "approval", "tool_call_id": run.requests[0].tool_call_id, "approve": True}
    run.read(run.send({"type": "approval", "approvals": [decision]}))
    assert (run.stop, run.text) == ("end_turn", "I need to look. There is one file.")
    assert run.returns == {run.requests[0].tool_call_id: ("success", "file")}


def failure():
    run = Run("failing")
    try:
        run.read(run.ask("hi"))
        raise AssertionError("the failure isn't raised")
    except APIError as e:
        assert "The model is busy." in e.message, e
    assert (run.text, client.runs.retrieve(run.id).status) == ("so far", "failed")


def stop():
    run = Run("long")
    stopped = []

    def enough():
        if run.text and not stopped:
            stopped.append(client.conversations.cancel(run.conversation))
        return False

    run.read(run.ask(str(uuid.uuid4())), enough)
    assert run.stop == "cancelled" and long.startswith(run.text) and run.text != long
    assert client.runs.retrieve(run.id).status == "cancelled"


def cuts():
    gate, run = str(uuid.uuid4()), Run("long")
    open_gate(gate)
    left = random.randrange(2, 20)

    def enough():
        nonlocal left
        left -= 1
        return left <= 0

    run.read(run.ask(gate), enough)
    for _ in range(19):
        left = random.randrange(1, 20)
        run.read(run.resume(), lambda: enough() or run.text == long)
    open_gate(gate + "-end")
    run.read(run.resume())
    assert (run.text, run.stop) == (long, "end_turn")
    assert list(client.conversations.messages.list(run.conversation, order="asc"))[1].content == long


for case in (plain, tools, approval, failure, stop, cuts):
    case()
    print("ok", case.__name__)
