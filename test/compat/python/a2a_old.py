"""The official client of Agent2Agent for Python, protocol 0.3, against the gateway at LEAT_URL. ../a2a_test.go runs it.

One environment has one version of a package, so the old one is in the folder a2a-0 of the environment."""

import asyncio
import os
import random
import sys
import urllib.parse
import uuid

sys.path.insert(0, os.path.join(sys.prefix, "a2a-0"))

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, A2AClientJSONRPCError
from a2a.types import Message, Part, Role, TaskIdParams, TaskQueryParams, TextPart

url, token, gates = os.environ["LEAT_URL"], os.environ["LEAT_TOKEN"], os.environ["LEAT_GATES"]
words = ["word" + "ö" * (i % 7) + " 🌍\n" for i in range(200)]
long, long_before = "".join(words), "".join(words[:20])  # up to the gate

NOT_FOUND, NOT_CANCELABLE, UNSUPPORTED = -32001, -32002, -32004


async def open_gate(name):
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"{gates}/{name}")).status_code == 204


async def connect(agent, base=url, **config):
    # Without connections that are kept, each request has the bytes of a connection to itself.
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120, limits=httpx.Limits(max_keepalive_connections=0))
    return await ClientFactory.connect(f"{base}/a2a/{agent}", ClientConfig(httpx_client=http, **config))


def text_of(task):
    return "".join(p.root.text for a in task.artifacts or [] if a.artifact_id == "answer" for p in a.parts)


def note_of(task):
    return "".join(p.root.text for p in task.status.message.parts if p.root.kind == "text") if task.status.message else ""


def result(task):
    return task.status.state.value, text_of(task)


async def read(events, enough=lambda task: False):
    """Reads a stream, which must end with one status that is final. The client applies the updates to the task itself."""
    task, final = None, False
    async for task, update in events:
        assert not final, update
        final = getattr(update, "final", False)
        if enough(task):
            await events.aclose()
            return task
    assert final, task
    return task


def message(text, **fields):
    return Message(message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], **fields)


async def ask(client, text, enough=lambda task: False, **fields):
    return await read(client.send_message(message(text, **fields)), enough)


async def get(client, id):
    return await client.get_task(TaskQueryParams(id=id))


async def refused(code, work):
    try:
        await work
    except A2AClientJSONRPCError as e:
        assert e.error.code == code, e
        return
    raise AssertionError(f"not refused with {code}")


async def plain():
    client = await connect("plain")
    assert (client._card.protocol_version, client._card.preferred_transport) == ("0.3.0", "JSONRPC"), client._card
    assert "bearer" in client._card.security_schemes, client._card
    t = await ask(client, "hi")
    assert result(t) == ("completed", "re: hi"), t
    again = await ask(client, "again", context_id=t.context_id)
    assert (again.context_id, text_of(again)) == (t.context_id, "re: again")
    got = await get(client, t.id)
    assert result(got) == ("completed", "re: hi")
    assert [(m.role, m.parts[0].root.text) for m in got.history] == [(Role.user, "hi")], got
    async for whole, _ in (await connect("plain", streaming=False)).send_message(message("whole")):
        assert result(whole) == ("completed", "re: whole")
    async for begun, _ in (await connect("plain", streaming=False, polling=True)).send_message(message("later")):
        while begun.status.state.value in ("submitted", "working"):
            begun = await get(client, begun.id)
        assert result(begun) == ("completed", "re: later")
    await refused(NOT_FOUND, get(client, "nothing"))
    await refused(NOT_FOUND, read(client.resubscribe(TaskIdParams(id="nothing"))))


async def kinds():
    for agent, text in {"tools": "Done.", "thinker": "It is noon.", "status": "On it.\n\nNow playing", "replacing": "It is ten."}.items():
        t = await ask(await connect(agent), "hi")
        assert result(t) == ("completed", text), (agent, t)
    t = await ask(await connect("failing"), "hi")
    assert (*result(t), note_of(t)) == ("failed", "so far", "The model is busy."), t
    large = "größer 🌍\n" * 20_000
    t = await ask(await connect("plain"), large)
    assert result(t) == ("completed", "re: " + large), len(text_of(t))


async def approval():
    client = await connect("approval")
    t = await ask(client, "hi")
    assert (*result(t), note_of(t)) == ("input-required", "I need to look. ", "Run ls?"), t
    assert result(await get(client, t.id)) == ("input-required", "I need to look. ")
    done = await ask(client, "approve", task_id=t.id, context_id=t.context_id)
    assert (done.id, *result(done)) == (t.id, "completed", "I need to look. There is one file."), done
    await refused(UNSUPPORTED, ask(client, "approve", task_id=t.id))


async def stop():
    client = await connect("long")
    t = await ask(client, str(uuid.uuid4()), lambda t: text_of(t) == long_before)
    assert result(await client.cancel_task(TaskIdParams(id=t.id))) == ("canceled", long_before)
    assert result(await get(client, t.id)) == ("canceled", long_before)
    await refused(NOT_CANCELABLE, client.cancel_task(TaskIdParams(id=t.id)))


async def reload():
    """A client leaves, and two subscribe at once."""
    client, gate = await connect("long"), str(uuid.uuid4())
    t = await ask(client, gate, lambda t: text_of(t) == long_before)
    begun = [asyncio.Event(), asyncio.Event()]

    async def subscribe(seen):
        return await read((await connect("long")).resubscribe(TaskIdParams(id=t.id)), lambda t: seen.set() if text_of(t) == long_before else False)

    readers = [asyncio.create_task(subscribe(seen)) for seen in begun]
    for seen in begun:
        await seen.wait()
    await open_gate(gate)
    await open_gate(gate + "-end")
    for reader in readers:
        assert result(await reader) == ("completed", long)
    assert text_of(await get(client, t.id)) == long
    await refused(UNSUPPORTED, read(client.resubscribe(TaskIdParams(id=t.id))))


class Cutter:
    """A proxy of TCP whose connections break after some bytes of the gateway."""

    def __init__(self):
        self.budget, self.cuts = None, 0

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        target = urllib.parse.urlsplit(url)
        gateway_reader, gateway = await asyncio.open_connection(target.hostname, target.port)
        requests = asyncio.create_task(self.copy(reader, gateway, None))
        if await self.copy(gateway_reader, writer, self.budget):
            self.cuts += 1
        requests.cancel()
        gateway.close()

    async def copy(self, reader, writer, budget):
        """Reports whether the budget was used up."""
        try:
            while data := await reader.read(65536):
                if budget is not None and len(data) >= budget:
                    writer.write(data[:budget])
                    await writer.drain()
                    return True
                budget = None if budget is None else budget - len(data)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # connections are meant to break
        finally:
            writer.close()
        return False


async def cuts():
    """20 connections break at random. The client subscribes again after each, and has the whole text in the end."""
    cutter, gate = Cutter(), str(uuid.uuid4())
    client = await connect("long", await cutter.start())
    t = await ask(client, gate, lambda t: text_of(t) == long_before)

    def check(t):
        assert long.startswith(text_of(t)), t

    for n in range(20):
        if n == 5:
            await open_gate(gate)
        cutter.budget = random.randrange(1, 600 if n < 5 else 3000)  # there is less before the gate
        try:
            await read(client.resubscribe(TaskIdParams(id=t.id)), check)
        except (A2AClientError, httpx.HTTPError):
            assert cutter.cuts == n + 1, cutter.cuts
        else:
            raise AssertionError("not cut")
    cutter.budget = None
    begun = asyncio.Event()
    rest = asyncio.create_task(read(client.resubscribe(TaskIdParams(id=t.id)), lambda t: begun.set()))
    await begun.wait()
    await open_gate(gate + "-end")
    assert result(await rest) == ("completed", long)
    assert text_of(await get(client, t.id)) == long


async def main():
    for case in (plain, kinds, approval, stop, reload, cuts):
        await case()
        print("ok", case.__name__, flush=True)


asyncio.run(main())
