"""The parser of server-sent events, over all ways to split its input in three."""

from __future__ import annotations

from leat_client._sse import EventReader

STREAM = ": hi\r\ndata: a\r\n\r\ndata:b\ndata: ä😀\n\nid: 7\ndata: {\"x\":\"漢\"}\nretry: 5\n\n\n: ping\n\ndata: unfinished\n".encode()
EVENTS = ["a", "b\nä😀", '{"x":"漢"}']


def test_every_split() -> None:
    for i in range(len(STREAM) + 1):
        for j in range(i, len(STREAM) + 1):
            reader = EventReader()
            events = [e for piece in (STREAM[:i], STREAM[i:j], STREAM[j:]) for e in reader.feed(piece)]
            assert events == EVENTS, (i, j)


def test_single_bytes() -> None:
    reader = EventReader()
    assert [e for byte in STREAM for e in reader.feed(bytes([byte]))] == EVENTS


def test_line_separators_of_unicode_are_text() -> None:
    assert EventReader().feed("data: a\u2028b\x85c\x0cd\n\n".encode()) == ["a\u2028b\x85c\x0cd"]
