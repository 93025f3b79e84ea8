"""The official client of Agent2Agent for Python, protocol 1.0, against the gateway at LEAT_URL. ../a2a_test.go runs it."""

import asyncio
import os
import random
import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest, TaskState
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

url, token, gates = os.environ["LEAT_URL"], os.environ["LEAT_TOKEN"], os.environ["LEAT_GATES"]
words = ["word" + "ö" * (i % 7) + " 🌍\n" for i in range(200)]
long, long_before = "".join(words), "".join(words[:20])  # up to the gate



async def open_gate(name):
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"{gates}/{name}")).status_code == 204


async def connect(agent, polling=False, streaming=True):
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120)
    return await create_client(f"{url}/a2a/{agent}/", ClientConfig(httpx_client=http, polling=polling, streaming=streaming))


class Task:
    """What a program has of a task: its artifacts, with the updates applied, and its last status."""

    def __init__(self):
        self.id, self.context, self.state, self.note, self.artifacts = None, None, None, "", {}

    @property
    def text(self):
        return self.artifacts.get("answer", "")

    def whole(self, t):
        self.id, self.context = t.id, t.context_id
        self.artifacts = {a.artifact_id: "".join(p.text for p in a.parts) for a in t.artifacts}
        self.status(t.status)
        return self

    def status(self, s):
        self.state, self.note = TaskState.Name(s.state)[len("TASK_STATE_"):].lower(), "".join(p.text for p in s.message.parts)

    async def read(self, events, enough=lambda task: False):
        async for e in events:
            match e.WhichOneof("payload"):
                case "task":
                    self.whole(e.task)
                case "status_update":
                    self.status(e.status_update.status)
                case "artifact_update":
                    a = e.artifact_update.artifact
                    text = "".join(p.text for p in a.parts)
                    self.artifacts[a.artifact_id] = self.artifacts.get(a.artifact_id, "") + text if e.artifact_update.append else text
            if enough(self):
                await events.aclose()
                break
        return self


def message(text, **fields):
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **fields))


async def ask(client, text, enough=lambda task: False, **fields):
    return await Task().read(client.send_message(message(text, **fields)), enough)


async def get(client, id):
    return Task().whole(await client.get_task(GetTaskRequest(id=id)))


async def refused(error, work):
    try:
        await work
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


async def plain():
    client = await connect("plain")
    assert "bearer" in client._card.security_schemes, client._card
    t = await ask(client, "hi")
    assert (t.state, t.text) == ("completed", "re: hi"), vars(t)
    again = await ask(client, "again", context_id=t.context)
    assert (again.context, again.text) == (t.context, "re: again")
    assert (await get(client, t.id)).text == "re: hi"
    waiting = await ask(await connect("plain", streaming=False), "whole")
    assert (waiting.state, waiting.text) == ("completed", "re: whole")
    await refused(TaskNotFoundError, get(client, "nothing"))


async def kinds():
    for agent, text in {"tools": "Done.", "thinker": "It is noon.", "status": "On it.\n\nNow playing", "replacing": "It is ten."}.items():
        t = await ask(await connect(agent), "hi")
        assert (t.state, t.text) == ("completed", text), (agent, vars(t))
    t = await ask(await connect("failing"), "hi")
    assert (t.state, t.text, t.note) == ("failed", "so far", "The model is busy."), vars(t)


async def approval():
    client = await connect("approval")
    t = await ask(client, "hi")
    assert (t.state, t.text, t.note) == ("input_required", "I need to look. ", "Run ls?"), vars(t)
    done = await ask(client, "approve", task_id=t.id, context_id=t.context)
    assert (done.id, done.state, done.text) == (t.id, "completed", "I need to look. There is one file."), vars(done)
    await refused(UnsupportedOperationError, ask(client, "approve", task_id=t.id))


async def stop():
    client = await connect("long")
    t = await ask(client, str(uuid.uuid4()), lambda t: t.text == long_before)
    stopped = await client.cancel_task(CancelTaskRequest(id=t.id))
    assert TaskState.Name(stopped.status.state) == "TASK_STATE_CANCELED"
    assert (await get(client, t.id)).text == long_before
    await refused(TaskNotCancelableError, client.cancel_task(CancelTaskRequest(id=t.id)))


async def reload():
    """A client leaves, and two subscribe at once."""
    client, gate = await connect("long"), str(uuid.uuid4())
    t = await ask(client, gate, lambda t: t.text == long_before)
    begun = [asyncio.Event(), asyncio.Event()]

    async def subscribe(seen):
        return await Task().read((await connect("long")).subscribe(SubscribeToTaskRequest(id=t.id)), lambda t: seen.set() if t.text == long_before else False)

    readers = [asyncio.create_task(subscribe(seen)) for seen in begun]
    for seen in begun:
        await seen.wait()
    await open_gate(gate)
    await open_gate(gate + "-end")
    for reader in readers:
        assert ((await reader).state, (await reader).text) == ("completed", long)
    assert (await get(client, t.id)).text == long
    await refused(UnsupportedOperationError, Task().read(client.subscribe(SubscribeToTaskRequest(id=t.id))))


async def cuts():
    client, gate = await connect("long"), str(uuid.uuid4())
    t = await ask(client, gate, lambda t: t.text == long_before)
    await open_gate(gate)
    for _ in range(20):
        left = random.randrange(1, 4)

        def enough(t):
            nonlocal left
            left -= 1
            return left <= 0 or t.text == long

        cut = await Task().read(client.subscribe(SubscribeToTaskRequest(id=t.id)), enough)
        assert long.startswith(cut.text), cut.text
    whole = asyncio.Event()
    rest = asyncio.create_task(Task().read(client.subscribe(SubscribeToTaskRequest(id=t.id)), lambda t: whole.set() if t.id else False))
    await whole.wait()
    await open_gate(gate + "-end")
    assert ((await rest).state, (await rest).text) == ("completed", long)


async def main():
    for case in (plain, kinds, approval, stop, reload, cuts):
        await case()
        print("ok", case.__name__)


asyncio.run(main())
