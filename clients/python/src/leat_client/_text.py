"""Texts as the protocol counts them: in bytes of UTF-8."""

from __future__ import annotations


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def size(text: str) -> int:
    """Return the length in bytes of UTF-8."""
    return len(text) if text.isascii() else len(encode(text))


# White space as Go's strings.TrimSpace defines it; str.strip removes more.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def trim(text: str) -> str:
    return text.strip(_SPACE)


def _table() -> tuple[int, ...]:
    entries = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        entries.append(n)
    return tuple(entries)


_TABLE = _table()


def crc32c(text: str) -> int:
    """Return the CRC-32C of a text's UTF-8 bytes, as sent at a part's end."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in encode(text):
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Text:
    """One text of a part. Its pieces are joined only when somebody reads it, so that growing takes linear time."""

    __slots__ = ("_pieces", "length", "seq")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.seq = 0

    @property
    def value(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def replace(self, text: str) -> None:
        self._pieces = [text] if text else []
        self.length = size(text)

    def append(self, offset: int, text: str) -> bool:
        """Append what exceeds the length. It returns False if text is missing before the offset."""
        overlap = self.length - offset
        if overlap < 0:
            return False
        length = size(text)
        if overlap > 0:
            text = encode(text)[overlap:].decode("utf-8", "replace")
        if text:
            self._pieces.append(text)
        self.length = max(self.length, offset + length)
        return True
