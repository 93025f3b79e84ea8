"""The official client of OpenAI for Python against the gateway at LEAT_URL. ../responses_server_test.go runs it."""

import os
import random
import urllib.request
import uuid

from openai import APIStatusError, OpenAI

url, token, gates = os.environ["LEAT_URL"], os.environ["LEAT_TOKEN"], os.environ["LEAT_GATES"]
client = OpenAI(base_url=url + "/v1", api_key=token, max_retries=0)
long = "".join("word" + "ö" * (i % 7) + " 🌍\n" for i in range(200))


def open_gate(name):
    with urllib.request.urlopen(urllib.request.Request(f"{gates}/{name}", method="POST")) as r:
        assert r.status == 204


def final(**request):
    with client.responses.stream(**request) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def refused(status, call):
    try:
        call()
    except APIStatusError as e:
        assert e.status_code == status, e
        return e
    raise AssertionError(f"not refused with {status}")


def plain():
    r = client.responses.create(model="plain", input="hi")
    assert (r.status, r.output_text) == ("completed", "re: hi")
    assert final(model="plain", input="again", previous_response_id=r.id).output_text == "re: again"
    assert [i.content[0].text for i in client.responses.input_items.list(r.id)] == ["hi"]
    assert refused(404, lambda: client.responses.create(model="nobody", input="hi")).code == "model_not_found"


def reasoning_and_tools():
    r = final(model="thinker", input="when?")
    assert [i.type for i in r.output] == ["reasoning", "message"]
    assert r.output[0].summary[0].text == "hm, let me see"
    r = final(model="tools", input="go")
    assert sorted(i.name for i in r.output if i.type == "mcp_call") == ["clock", "shell"]
    assert r.output_text == "Done."


def failure():
    r = client.responses.create(model="failing", input="hi")
    assert (r.status, r.error.code, r.output_text) == ("failed", "overloaded_error", "so far")


def stop():
    r = client.responses.create(model="long", input=str(uuid.uuid4()), background=True)
    for e in client.responses.retrieve(r.id, stream=True):
        if e.type == "response.output_text.delta":
            break
    assert client.responses.cancel(r.id).status == "cancelled"
    assert client.responses.retrieve(r.id).status == "cancelled"


def waits():
    r = final(model="approval", input="look")
    answer = {"type": "mcp_approval_response", "approval_request_id": r.output[-1].id, "approve": True}
    assert final(model="approval", input=[answer], previous_response_id=r.id).output_text == "There is one file."
    r = final(model="client-tool", input="where?")
    output = {"type": "function_call_output", "call_id": r.output[-1].call_id, "output": "Berlin"}
    assert final(model="client-tool", input=[output], previous_response_id=r.id).output_text == "You are at Berlin."


def cuts():
    gate = str(uuid.uuid4())
    open_gate(gate)
    id = client.responses.create(model="long", input=gate, background=True).id
    last, text = -1, ""
    for n in range(21):
        left = random.randrange(1, 40) if n < 20 else None
        if n == 20:
            open_gate(gate + "-end")
        after = {"starting_after": last} if last >= 0 else {}
        with client.responses.retrieve(id, stream=True, **after) as stream:
            for e in stream:
                assert e.sequence_number > last
                last = e.sequence_number
                if e.type == "response.output_text.delta":
                    text += e.delta
                if left is not None:
                    left -= 1
                if left == 0 or text == long and n < 20:
                    break
        if text == long and n < 20:
            # Everything was received before the last cut. A reader that is cut now has the end of the text only.
            last, text = -1, ""
    assert text == long
    assert client.responses.retrieve(id).output_text == long


def conversations():
    c = client.conversations.create(metadata={"a": "b"})
    r = client.responses.create(model="plain", input="hi", conversation=c.id)
    assert r.conversation.id == c.id
    items = list(client.conversations.items.list(c.id, order="asc", limit=1))
    assert [i.content[0].text for i in items] == ["hi", "re: hi"]
    assert client.conversations.delete(c.id).deleted
    refused(404, lambda: client.conversations.retrieve(c.id))


for case in (plain, reasoning_and_tools, failure, stop, waits, cuts, conversations):
    case()
    print("ok", case.__name__)
