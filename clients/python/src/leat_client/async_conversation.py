"""A conversation, for programs with asyncio or trio."""

from __future__ import annotations

import mimetypes
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from . import _operations as operations
from ._protocol import Follower, OnDisconnect
from .async_follow import AsyncAnswerStream, AsyncFollow
from .errors import ClosedError
from .types import Access, Ack, ClientTool, Json, Media, State, Summary

if TYPE_CHECKING:
    from .async_client import AsyncClient



class AsyncConversation:
    """A conversation of a gateway. It holds no state: ``follow`` and ``transcript`` read it."""

    def __init__(self, client: AsyncClient, id: str) -> None:
        self._client = client
        self.id = id

    def __repr__(self) -> str:
        return f"AsyncConversation({self.id!r})"

    async def _command(self, type: str, key: str | None = None, **fields: Any) -> Ack:
        return await self._client._run(operations.command(self._client._settings, self.id, type, key, **fields))

    async def info(self) -> Summary:
        """Return the conversation's title, metadata and access."""
        return await self._client._run(operations.info(self._client._settings, self.id))

    def follow(self, *, on_disconnect: OnDisconnect | None = None) -> AsyncFollow:
        """Follow the conversation. The first state is a window of the newest messages.

        ``on_disconnect`` is called with the reason of each lost connection, and the seconds until the next attempt.
        """
        if self._client._closed:
            raise ClosedError
        return AsyncFollow(self._client, Follower(self._client._settings, self.id, on_disconnect))

    def ask(
        self,
        text: str = "",
        *,
        media: Sequence[Media] = (),
        agent: str | None = None,
        tools: Sequence[ClientTool] = (),
        key: str | None = None,
        on_disconnect: OnDisconnect | None = None,
    ) -> AsyncAnswerStream:
        """Send a message and follow its answer. The message is sent when the first answer is awaited, or the ``async with`` entered."""
        key = key or uuid.uuid4().hex
        return AsyncAnswerStream(self.follow(on_disconnect=on_disconnect), lambda: self.send(text, media=media, agent=agent, tools=tools, key=key))

    async def send(
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
        return await self._command("send", key, message=operations.message(text, media, id), agent=agent, queue=queue, tools=offered)

    async def inject(self, text: str = "", *, media: Sequence[Media] = (), role: str | None = None, key: str | None = None) -> Ack:
        """Add a message that no turn answers. Only callers that may speak as the agent can do this."""
        return await self._command("inject", key, message=operations.message(text, media, None, role))

    async def stop(self, turn: str, *, key: str | None = None) -> Ack:
        """Stop a turn. Its output so far is kept."""
        return await self._command("stop", key, turn=turn)

    async def answer(
        self, turn: str, request: str, *, decision: str | None = None, text: str | None = None, key: str | None = None
    ) -> Ack:
        """Answer a question of a turn with a decision (``approve``, ``deny`` or one of its options), a text or both."""
        return await self._command("answer", key, turn=turn, request=request, decision=decision, text=text)

    async def resend(self, message: str, *, text: str | None = None, agent: str | None = None, key: str | None = None) -> Ack:
        """Remove a message and all later ones, and send it again, or with another text."""
        return await self._client._run(operations.resend(self._client._settings, self.id, message, text, agent, key))

    async def truncate(self, after: str | None = None, *, keep_files: bool | None = None, key: str | None = None) -> Ack:
        """Remove the messages after one, or all. With ``keep_files`` it can be undone by ``restore(ack.seq)`` for 20 s."""
        return await self._command("truncate", key, after=after, keepFiles=keep_files)

    async def restore(self, seq: int, *, key: str | None = None) -> Ack:
        """Undo the truncate whose acknowledgement has this seq."""
        return await self._command("restore", key, seq=seq)

    async def update(self, *, title: str | None = None, metadata: Mapping[str, Json] | None = None, key: str | None = None) -> Ack:
        """Rename the conversation, or change keys of its metadata. The value None removes a key."""
        return await self._command("update", key, title=title, metadata=metadata)

    async def rename(self, title: str) -> Ack:
        return await self.update(title=title)

    async def share(self, subject: str, access: Access) -> Ack:
        """Give another user of the owner's tenant access, or change it; ``*`` means all of them."""
        return await self._command("share", subject=subject, access=access)

    async def unshare(self, subject: str) -> Ack:
        return await self._command("unshare", subject=subject)

    async def delete(self) -> Ack:
        """Delete the conversation and all its data permanently."""
        return await self._command("delete")

    async def mark_read(self, seq: int | None = None) -> None:
        """Record that the caller has read the conversation up to seq, or all of it."""
        await self._client._run(operations.mark_read(self._client._settings, self.id, seq))

    async def transcript(self, *, before: str | None = None, limit: int | None = None) -> State:
        """Return a window of the newest messages, or up to ``limit`` messages before one."""
        return await self._client._run(operations.transcript(self._client._settings, self.id, before, limit))

    async def upload(self, file: bytes | Path, *, name: str | None = None, mime: str | None = None, alt: str | None = None) -> Media:
        """Upload a file, which is held in memory. Pass the result to ``send`` or ``ask``."""
        content = await anyio.to_thread.run_sync(file.read_bytes) if isinstance(file, Path) else file
        name = name or (file.name if isinstance(file, Path) else "file")
        mime = mime or mimetypes.guess_type(name)[0]
        return await self._client._run(operations.upload(self._client._settings, self.id, content, name, mime, alt))

    async def download(self, media: Media | str) -> bytes:
        """Return the bytes of a file of the gateway."""
        url = media if isinstance(media, str) else media.url or ""
        return await self._client._run(operations.download(self._client._settings, self._client._base, url))
