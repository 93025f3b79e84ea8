"""The client of LangGraph for Python against the gateway at LEAT_URL. ../langgraph_test.go runs it."""

import asyncio
import os
import urllib.request
import uuid

from langgraph_sdk import get_client, get_sync_client

URL, TOKEN, GATES = (os.environ["LEAT_" + name] for name in ("URL", "TOKEN", "GATES"))
client = get_client(url=URL + "/langgraph", api_key=TOKEN)
MODES = ["values", "messages-tuple", "updates"]


def ask(text):
    return {"messages": [{"role": "user", "content": text, "id": str(uuid.uuid4())}]}


def open_gate(name):
    urllib.request.urlopen(f"{GATES}/{name}").close()


def text_of(content):
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def answer_of(messages):
    return "\n\n".join(filter(None, (text_of(m["content"]) for m in messages if m["type"] == "ai")))


async def read(stream):
    """Folds a stream: the texts of the pieces by message, and the last state."""
    pieces, values, events = {}, None, []
    async for part in stream:
        events.append(part.event)
        if part.event == "values":
            values = part.data
        elif part.event == "messages":
            piece = part.data[0]
            if piece["type"] == "remove":
                del pieces[piece["id"]]
            else:
                pieces[piece["id"]] = pieces.get(piece["id"], "") + text_of(piece["content"])
    return pieces, values, events


async def answers():
    agents = await client.assistants.search(limit=100)
    assert "plain" in [a["assistant_id"] for a in agents], agents
    thread = (await client.threads.create(metadata={"purpose": "test"}))["thread_id"]
    for agent, want in {"plain": "re: go", "thinker": "It is noon.", "replacing": "It is ten.", "status": "On it.\n\nNow playing"}.items():
        pieces, values, events = await read(client.runs.stream(thread, agent, input=ask("go"), stream_mode=MODES))
        assert "\n\n".join(pieces.values()) == want, (agent, pieces)
        assert events[0] == "metadata" and events[-1] == "end", events
        assert values == (await client.threads.get_state(thread))["values"]
    found = await client.threads.search(metadata={"purpose": "test"})
    assert thread in [t["thread_id"] for t in found], found
    history = await client.threads.get_history(thread, limit=20)
    assert [len(s["values"]["messages"]) for s in history][-1] == 1


async def interrupts():
    thread = (await client.threads.create())["thread_id"]
    _, values, _ = await read(client.runs.stream(thread, "approval", input=ask("files?"), stream_mode=MODES))
    assert values["__interrupt__"][0]["value"]["action_requests"][0]["description"] == "Run ls?", values
    assert (await client.threads.get(thread))["status"] == "interrupted"
    result = await client.runs.wait(thread, "approval", command={"resume": {"decisions": [{"type": "approve"}]}})
    assert answer_of(result["messages"]) == "I need to look. There is one file.", result


async def joins():
    """A client that joins a run in the middle, one that has it from its beginning, and one that waits for it."""
    gate = str(uuid.uuid4())
    thread = (await client.threads.create())["thread_id"]
    run = (await client.runs.create(thread, "long", input=ask(gate)))["run_id"]
    joins = [asyncio.create_task(read(client.runs.join_stream(thread, run, stream_mode=MODES))) for _ in range(2)]
    waits = asyncio.create_task(client.runs.join(thread, run))
    open_gate(gate)
    open_gate(gate + "-end")
    text = answer_of((await waits)["messages"])
    assert text.count("word") == 200, text
    for pieces, values, _ in await asyncio.gather(*joins):
        assert "".join(pieces.values()) == answer_of(values["messages"]) == text


async def ends():
    thread = (await client.threads.create())["thread_id"]
    try:
        await client.runs.wait(thread, "failing", input=ask("go"))
        raise AssertionError("a failed run has no error")
    except Exception as e:  # the type is one of the client's own
        assert "The model is busy." in str(e), e
    run = (await client.runs.create(thread, "long", input=ask("never opened")))["run_id"]
    await client.runs.cancel(thread, run)
    assert (await client.runs.get(thread, run))["status"] == "interrupted"
    result = await client.runs.wait(None, "plain", input=ask("no thread"))
    assert answer_of(result["messages"]) == "re: no thread", result
    await client.threads.delete(thread)


def synchronous():
    with get_sync_client(url=URL + "/langgraph", api_key=TOKEN) as c:
        thread = c.threads.create()["thread_id"]
        parts = list(c.runs.stream(thread, "plain", input=ask("hello"), stream_mode="values"))
        assert answer_of(parts[-2].data["messages"]) == "re: hello", parts


async def main():
    for case in (answers, interrupts, joins, ends):
        await case()
    synchronous()


asyncio.run(main())
