"""A conversation, for programs without asyncio."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _operations as operations
from ._protocol import Follower, OnDisconnect
from .errors import ClosedError
from .follow import AnswerStream, Follow
from .types import Access, Ack, ClientTool, Json, Media, State, Summary

if TYPE_CHECKING:
    from .client import Client



class Conversation:
    """A conversation of a gateway. It holds no state: ``follow`` and ``transcript`` read it."""

    def __init__(self, client: Client, id: str) -> None:
        self._client = client
        self.id = id

    def __repr__(self) -> str:
        return f"Conversation({self.id!r})"

    def _command(self, type: str, key: str | None = None, **fields: Any) -> Ack:
        return self._client._run(operations.command(self._client._settings, self.id, type, key, **fields))

    def info(self) -> Summary:
        """Return the conversation's title, metadata and access."""
        return self._client._run(operations.info(self._client._settings, self.id))

    def follow(self, *, on_disconnect: OnDisconnect | None = None) -> Follow:
        """Follow the conversation. The first state is a window of the newest messages.

        ``on_disconnect`` is called with the reason of each lost connection, and the seconds until the next attempt.
        """
        if self._client._closed:
            raise ClosedError
        return Follow(self._client, Follower(self._client._settings, self.id, on_disconnect))

    def ask(
        self,
        text: str = "",
        *,
        media: Sequence[Media] = (),
        agent: str | None = None,
        tools: Sequence[ClientTool] = (),
        key: str | None = None,
        on_disconnect: OnDisconnect | None = None,
    ) -> AnswerStream:
        """Send a message and follow its answer."""
        ack = self.send(text, media=media, agent=agent, tools=tools, key=key)
        return AnswerStream(self.follow(on_disconnect=on_disconnect), ack)

    def send(
        self,
        text: str = "",
        *,
        media: Sequence[Media] = (),
        id: str | None = None,
        agent: str | None = None,
        queue: bool | None = None,
        tools: Sequence[ClientTool] = (),
        key: str | None = None,
    ) -> Ack:
        """Send a message, which the turn ``Ack.turn`` answers. With ``queue`` it waits for the running turn instead of steering it.

        The agent may call ``tools`` during the turn, which therefore never joins a running one. A call is a request of the turn with
        the tool's name, and its arguments as data. Answer it with the result as text.
        """
        offered = operations.tools(tools)
        return self._command("send", key, message=operations.message(text, media, id), agent=agent, queue=queue, tools=offered)

    def inject(self, text: str = "", *, media: Sequence[Media] = (), role: str | None = None, key: str | None = None) -> Ack:
        """Add a message that no turn answers. Only callers that may speak as the agent can do this."""
        return self._command("inject", key, message=operations.message(text, media, None, role))

    def stop(self, turn: str, *, key: str | None = None) -> Ack:
        """Stop a turn. Its output so far is kept."""
        return self._command("stop", key, turn=turn)

    def answer(
        self, turn: str, request: str, *, decision: str | None = None, text: str | None = None, key: str | None = None
    ) -> Ack:
        """Answer a question of a turn with a decision (``approve``, ``deny`` or one of its options), a text or both."""
        return self._command("answer", key, turn=turn, request=request, decision=decision, text=text)

    def resend(self, message: str, *, text: str | None = None, agent: str | None = None, key: str | None = None) -> Ack:
        """Remove a message and all later ones, and send it again, or with another text."""
        return self._client._run(operations.resend(self._client._settings, self.id, message, text, agent, key))

    def truncate(self, after: str | None = None, *, keep_files: bool | None = None, key: str | None = None) -> Ack:
        """Remove the messages after one, or all. With ``keep_files`` it can be undone by ``restore(ack.seq)`` for 20 s."""
        return self._command("truncate", key, after=after, keepFiles=keep_files)

    def restore(self, seq: int, *, key: str | None = None) -> Ack:
        """Undo the truncate whose acknowledgement has this seq."""
        return self._command("restore", key, seq=seq)

    def update(self, *, title: str | None = None, metadata: Mapping[str, Json] | None = None, key: str | None = None) -> Ack:
        """Rename the conversation, or change keys of its metadata. The value None removes a key."""
        return self._command("update", key, title=title, metadata=metadata)

    def rename(self, title: str) -> Ack:
        return self.update(title=title)

    def share(self, subject: str, access: Access) -> Ack:
        """Give another user of the owner's tenant access, or change it; ``*`` means all of them."""
        return self._command("share", subject=subject, access=access)

    def unshare(self, subject: str) -> Ack:
        return self._command("unshare", subject=subject)

    def delete(self) -> Ack:
        """Delete the conversation and all its data permanently."""
        return self._command("delete")

    def mark_read(self, seq: int | None = None) -> None:
        """Record that the caller has read the conversation up to seq, or all of it."""
        self._client._run(operations.mark_read(self._client._settings, self.id, seq))

    def transcript(self, *, before: str | None = None, limit: int | None = None) -> State:
        """Return a window of the newest messages, or up to ``limit`` messages before one."""
        return self._client._run(operations.transcript(self._client._settings, self.id, before, limit))

    def upload(self, file: bytes | Path, *, name: str | None = None, mime: str | None = None, alt: str | None = None) -> Media:
        """Upload a file, which is held in memory. Pass the result to ``send`` or ``ask``."""
        content = file.read_bytes() if isinstance(file, Path) else file
        name = name or (file.name if isinstance(file, Path) else "file")
        mime = mime or mimetypes.guess_type(name)[0]
        return self._client._run(operations.upload(self._client._settings, self.id, content, name, mime, alt))

    def download(self, media: Media | str) -> bytes:
        """Return the bytes of a file of the gateway."""
        url = media if isinstance(media, str) else media.url or ""
        return self._client._run(operations.download(self._client._settings, self._client._base, url))
