"""A client for Leat, a streaming gateway for AI agents.

``Client`` is for ordinary programs, ``AsyncClient`` for asyncio and trio.
"""

from .aio import AsyncAnswerStream, AsyncClient, AsyncConversation, AsyncFollow
from .client import AnswerStream, Client, Conversation, Follow
from .errors import (
    AuthenticationError, ClosedError, ConflictError, ConnectionLostError, DamagedError, DeletedError, ForbiddenError, InvalidError,
    LeatError, LimitError, NotFoundError, ProtocolError, ServerError, TokenError, UnavailableError,
)  # fmt: skip
from .types import (
    Ack, Agent, Answer, Author, Event, Failure, Grant, Media, Message, Part, Request, State, Summary, Turn, Usage,
)  # fmt: skip

__version__ = "0.1.0"

__all__ = [
    "Ack", "Agent", "Answer", "AnswerStream", "AsyncAnswerStream", "AsyncClient", "AsyncConversation", "AsyncFollow",
    "AuthenticationError", "Author", "Client", "ClosedError", "ConflictError", "ConnectionLostError", "Conversation", "DamagedError",
    "DeletedError", "Event", "Failure", "Follow", "ForbiddenError", "Grant", "InvalidError", "LeatError", "LimitError", "Media",
    "Message", "NotFoundError", "Part", "ProtocolError", "Request", "ServerError", "State", "Summary", "TokenError", "Turn",
    "UnavailableError", "Usage",
]  # fmt: skip
