"""A client for Leat, a streaming gateway for AI agents.

``Client`` is for ordinary programs, ``AsyncClient`` for asyncio and trio.
"""

from .async_client import AsyncClient
from .async_conversation import AsyncConversation
from .async_follow import AsyncAnswerStream, AsyncFollow
from .client import Client
from .conversation import Conversation
from .errors import (
    AuthenticationError, ClosedError, ConflictError, ConnectionLostError, DamagedError, DeletedError, ForbiddenError, InvalidError,
    LeatError, LimitError, NotFoundError, ProtocolError, ServerError, TokenError, UnavailableError,
)  # fmt: skip
from .follow import AnswerStream, Follow
from .types import (
    Ack, Agent, Answer, AnsweredRequest, Author, ClientTool, Event, Failure, Grant, Media, Message, Part, Request, State, Summary, Turn,
    Usage,
)  # fmt: skip

__version__ = "0.1.0"

__all__ = [
    "Ack", "Agent", "Answer", "AnswerStream", "AnsweredRequest", "AsyncAnswerStream", "AsyncClient", "AsyncConversation",
    "AsyncFollow", "AuthenticationError", "Author", "Client", "ClientTool", "ClosedError", "ConflictError", "ConnectionLostError",
    "Conversation", "DamagedError", "DeletedError", "Event", "Failure", "Follow", "ForbiddenError", "Grant", "InvalidError", "LeatError", "LimitError", "Media",
    "Message", "NotFoundError", "Part", "ProtocolError", "Request", "ServerError", "State", "Summary", "TokenError", "Turn",
    "UnavailableError", "Usage",
]  # fmt: skip
