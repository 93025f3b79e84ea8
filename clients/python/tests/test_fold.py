"""The vectors of package transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leat_client._documents import message_document, turn_document
from leat_client._fold import Transcript
from leat_client._text import crc32c

TESTDATA = Path(__file__).parents[3] / "transcript" / "testdata"
VECTORS: list[dict[str, Any]] = json.loads((TESTDATA / "vectors.json").read_text("utf-8"))
READERS: list[dict[str, Any]] = [json.loads(line) for line in (TESTDATA / "readers.json").read_text("utf-8").splitlines()]


def pick(document: dict[str, Any], keys: str) -> dict[str, Any]:
    return {key: document.get(key) or "" for key in keys.split()}


def flat(transcript: dict[str, Any]) -> dict[str, Any]:
    """Return what the vectors compare; transcript/testdata/README.md lists it."""
    return {
        "title": transcript.get("title") or "",
        "metadata": transcript.get("metadata") or {},
        "messages": [
            {
                **pick(m, "id turn role state"),
                "ended": bool(m.get("ended")),
                "parts": [
                    {
                        **pick(p, "id kind join state title text input output stderr"),
                        "ended": bool(p.get("ended")),
                        "url": (p.get("media") or {}).get("url") or "",
                        "history": p.get("history") or [],
                    }
                    for p in m["parts"]
                ],
            }
            for m in transcript["messages"]
        ],
        "turns": sorted(
            (
                {
                    **pick(t, "id state outcome phase"),
                    "upstream": t.get("upstream") or {},
                    "requests": [r["id"] for r in t.get("requests") or []],
                }
                for t in transcript["turns"]
            ),
            key=lambda t: str(t["id"]),
        ),
    }


def document(t: Transcript) -> dict[str, Any]:
    result: dict[str, Any] = {"seq": t.seq}
    if t.title:
        result["title"] = t.title
    if t.metadata:
        result["metadata"] = t.metadata
    result["messages"] = [message_document(m) for m in t.messages.values()]
    result["turns"] = [turn_document(turn) for turn in t.turns.values()]
    return result


def test_vectors_are_complete() -> None:
    assert len(VECTORS) >= 100
    assert len(READERS) >= 30


# The vectors named /log have truncates, which no reader is sent.
@pytest.mark.parametrize("vector", [v for v in VECTORS if not v["name"].endswith("/log")], ids=lambda v: str(v["name"]))
def test_vector(vector: dict[str, Any]) -> None:
    t = Transcript()
    for step in vector["steps"]:
        if "reset" in step:
            t = Transcript()
        elif "snapshot" in step:
            t.reset(step["snapshot"])
        elif "page" in step:
            page = {"transcript": step["page"], "seq": step["page"].get("seq") or 0}
            assert t.add_page(page, step["before"], step["cursor"])
        else:
            assert t.batch(step["events"]), t.fault
    assert flat(document(t)) == flat(vector["want"])


@pytest.mark.parametrize("reader", READERS, ids=lambda r: str(r["name"]))
def test_reader(reader: dict[str, Any]) -> None:
    t = Transcript()
    for step in reader["steps"]:
        t.fault = None
        if "snapshot" in step:
            t.reset(step["snapshot"])
        else:
            *events, last = step["events"]
            assert all([t.apply(e) for e in events])
            assert t.apply(last) == ("fault" not in step)
        assert (t.fault.kind if t.fault else None) == step.get("fault")
    assert document(t) == reader["want"]


def test_crc32c() -> None:
    assert crc32c("123456789") == 0xE3069283
    assert crc32c("") == 0
