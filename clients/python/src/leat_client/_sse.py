"""Parsing server-sent events."""

from __future__ import annotations

import codecs


class EventReader:
    """Parses the subset of server-sent events that the gateway uses: data lines and comments.

    The input may be split at any byte. The reader keeps what is incomplete.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line: list[str] = []
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of each event that the piece completes."""
        *lines, rest = self._decoder.decode(piece).split("\n")
        events: list[str] = []
        for line in lines:
            # Joined once a line: a large frame arrives in many pieces, and joining each of them would take quadratic time.
            self._line.append(line)
            self._end_line("".join(self._line), events)
            self._line = []
        if rest:
            self._line.append(rest)
        return events

    def _end_line(self, line: str, events: list[str]) -> None:
        line = line.removesuffix("\r")
        if line.startswith("data:"):
            self._data.append(line[6:] if line.startswith("data: ") else line[5:])
        elif not line and self._data:
            events.append("\n".join(self._data))
            self._data = []
