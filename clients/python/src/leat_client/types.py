"""The documents of the protocol as immutable dataclasses. Absent values are None, and times are epoch milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

Json = Any
Role = Literal["user", "assistant", "system"]
PartKind = Literal["text", "reasoning", "tool", "status", "media", "data"]
TurnState = Literal["queued", "running", "waiting", "ended"]
Outcome = Literal["completed", "failed", "cancelled", "interrupted"]
Access = Literal["read", "write"]

T = TypeVar("T")


_members: dict[type[Any], tuple[tuple[str, str], ...]] = {}


def _names(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Return the names of a dataclass's fields with their keys in JSON."""
    if kind not in _members:
        _members[kind] = tuple((f.name, f.metadata.get("key") or _camel_case(f.name)) for f in fields(kind))
    return _members[kind]


def _camel_case(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def parse(kind: type[T], document: Mapping[str, Any]) -> T:
    """Return a dataclass with those members of a JSON object that it knows."""
    return kind(**{name: document[key] for name, key in _names(kind) if key in document})


def parse_optional(kind: type[T], document: Mapping[str, Any] | None) -> T | None:
    return None if document is None else parse(kind, document)


@dataclass(frozen=True, slots=True)
class Author:
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """A file that a message shows. Pass the media of an upload to a message unchanged."""

    url: str | None = None
    mime: str | None = None
    name: str | None = None
    size: int | None = None
    alt: str | None = None


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that this client runs if the agent asks for it. ``parameters`` is a JSON schema of its arguments."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    message: str = ""
    code: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a turn has used, in tokens."""

    model: str | None = None
    input: int = 0
    output: int = 0
    cache_read: int = field(default=0, metadata={"key": "cache_read"})
    cache_write: int = field(default=0, metadata={"key": "cache_write"})
    reasoning: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A question that a turn waits on."""

    id: str
    kind: Literal["approval", "input"]
    tool: str | None = None
    part: str | None = None
    prompt: str | None = None
    options: tuple[str, ...] = ()
    data: Json = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A question of a turn with its answer. ``prompt`` and ``text``, which is of the answer, have at most 1,000 characters.

    ``by`` is the subject of the user who answered, and ``at`` the time of the answer.
    """

    id: str
    kind: Literal["approval", "input"]
    tool: str | None = None
    part: str | None = None
    prompt: str | None = None
    decision: str | None = None
    text: str | None = None
    by: str | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message. ``history`` has the notes of a status part, oldest first."""

    id: str
    kind: PartKind
    text: str = ""
    input: str = ""
    output: str = ""
    stderr: str = ""
    name: str | None = None
    call: str | None = None
    media_type: str | None = None
    join: str = ""
    state: Literal["running", "done", "failed", "denied"] | None = None
    title: str | None = None
    media: Media | None = None
    error: Failure | None = None
    data: Json = None
    at: int | None = None
    end_at: int | None = None
    ended: bool = False
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """What one author wrote. ``turn`` of an assistant's message is the turn that wrote it."""

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    turn: str | None = None
    author: Author | None = None
    source: str | None = None
    at: int | None = None
    end_at: int | None = None
    state: Literal["started", "queued", "steered", "joined", "rejected"] | None = None
    state_turn: str | None = None
    state_reason: str | None = None
    ended: bool = False
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The visible text: the texts and statuses, each after its join."""
        result = ""
        for p in self.parts:
            if p.kind in ("text", "status") and p.text:
                result += (p.join if result else "") + p.text
        return result


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of an agent."""

    id: str
    state: TurnState
    agent: str | None = None
    answers: str | None = None
    parent: str | None = None
    source: str | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    by: str | None = None
    error: Failure | None = None
    usage: Usage | None = None
    phase: str | None = None
    step: int | None = None
    model: str | None = None
    upstream: Mapping[str, str] | None = None
    requests: tuple[Request, ...] = ()
    #: The requests that were open when they were answered, in the order of the answers: the newest 100.
    answered: tuple[AnsweredRequest, ...] = ()
    queued_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    first_seq: int | None = None
    end_seq: int | None = None

    @property
    def ended(self) -> bool:
        return self.state == "ended"


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of a conversation's log. ``body`` is all of it as JSON."""

    seq: int
    type: str
    body: Mapping[str, Json]
    turn: str | None = None
    message: str | None = None
    part: str | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A conversation at one moment. States share the messages and turns that have not changed."""

    title: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])
    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()
    #: The seq of the newest event.
    seq: int = 0
    #: There are messages before the first one here.
    earlier: bool = False
    #: The position of this state, to follow the conversation from later. It is empty in a transcript that was read by page.
    cursor: str = ""
    #: The changes since the previous state. After a snapshot, which replaces everything, it is empty and ``reset`` is true.
    events: tuple[Event, ...] = ()
    reset: bool = False

    def turn(self, id: str) -> Turn | None:
        return next((t for t in self.turns if t.id == id), None)

    def message(self, id: str) -> Message | None:
        return next((m for m in self.messages if m.id == id), None)

    def text(self, turn: str) -> str:
        """Return the visible text of a turn's answer. Its messages are separated by blank lines."""
        texts = (m.text for m in self.messages if m.turn == turn and m.role == "assistant")
        return "\n\n".join(text for text in texts if text)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a message so far. It is complete when its turn has ended."""

    turn: Turn
    text: str
    state: State

    @property
    def requests(self) -> tuple[Request, ...]:
        """The questions that the turn waits on."""
        return self.turn.requests


@dataclass(frozen=True, slots=True)
class Ack:
    """Confirms a command. ``seq`` is that of its event; the ids are those of the message and turn that it concerns."""

    seq: int = 0
    message: str | None = None
    turn: str | None = None
    state: str | None = None
    repeated: bool = False
    already_ended: bool = field(default=False, metadata={"key": "already_ended"})
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that the gateway offers to the caller. ``state`` is its last known health."""

    name: str
    kind: str = ""
    default: bool = False
    steers: bool = False
    sessions: bool = False
    description: str | None = None
    suggestions: tuple[str, ...] = ()
    state: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Access for another user; ``*`` means all users of the owner's tenant."""

    subject: str
    access: Access


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list."""

    id: str
    title: str = ""
    agent: str | None = None
    created_at: str = ""
    updated_at: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])
    owner: str | None = None
    access: Access | None = None
    grants: tuple[Grant, ...] = ()
    unread: bool = False
    read: int = 0
    waiting: bool = False
