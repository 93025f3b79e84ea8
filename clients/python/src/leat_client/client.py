"""The client for programs without asyncio."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

import httpx

from . import _operations as operations
from ._protocol import HttpRequest, HttpResponse, Procedure, Settings
from ._transport import Options, base_url, limits, request_arguments, response_of, token_failure, wrap
from .conversation import Conversation
from .errors import ClosedError
from .follow import Channel, Follow
from .types import Agent, Json, Summary

T = TypeVar("T")
Token = str | Callable[[], str] | None



class Client:
    """A client of one gateway. Its methods may be called by several threads.

    ``url`` defaults to the environment variable LEAT_URL, and ``token`` to LEAT_API_TOKEN. A function as the token is called before each
    request, and once more after the gateway has refused its token; it should cache a token that is still valid.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: Token = None,
        subject: str | None = None,
        tenant: str | None = None,
        timeout: float = 40.0,
        max_retries: int = 3,
        http: httpx.Client | None = None,
    ) -> None:
        self._base = base_url(url)
        self._token: Token = token if token is not None else os.environ.get("LEAT_API_TOKEN") or None
        self._options = Options(timeout)
        self._settings = Settings(subject, tenant, max_retries, callable(self._token))
        self._owns_http = http is None
        self._http = http or httpx.Client(limits=limits)
        self._follows: set[Follow] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"Client({self._base!r})"

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> Client:
        """Return a client with other options that shares the connections of this one."""
        other = Client(
            self._base, token=self._token, subject=self._settings.subject, tenant=self._settings.tenant,
            timeout=self._options.timeout if timeout is None else timeout, http=self._http,
        )  # fmt: skip
        other._settings = replace(self._settings, max_retries=self._settings.max_retries if max_retries is None else max_retries)
        return other

    def close(self) -> None:
        """End all followers, and the connections unless ``http`` was passed."""
        self._closed = True
        for follow in list(self._follows):
            follow.close()
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _get_token(self) -> str | None:
        if not callable(self._token):
            return self._token
        try:
            return self._token()
        except Exception as err:
            raise token_failure(err) from err

    def _send(self, request: HttpRequest) -> HttpResponse:
        with wrap():
            response = self._http.request(**request_arguments(self._base, request), timeout=self._options.timeout)
            return response_of(response, response.content)

    def _run(self, procedure: Procedure[T]) -> T:
        if self._closed:
            raise ClosedError
        return Channel(self).run(procedure)

    def agents(self) -> list[Agent]:
        """Return the agents that the gateway offers to the caller."""
        return self._run(operations.agents(self._settings))

    def conversations(self) -> list[Summary]:
        """Return the caller's conversations, most recently used first."""
        return self._run(operations.conversations(self._settings))

    def conversation(self, id: str) -> Conversation:
        """Return the conversation with the id, without a request."""
        return Conversation(self, id)

    def create(
        self,
        *,
        id: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        key: str | None = None,
    ) -> Conversation:
        """Create a conversation. A call with the same ``key`` returns the conversation that the first one created."""
        return Conversation(self, self._run(operations.create(self._settings, id, title, agent, metadata, key)).id)

    def open(
        self, id: str, *, title: str | None = None, agent: str | None = None, metadata: Mapping[str, Json] | None = None
    ) -> Conversation:
        """Return the conversation with the id. If it doesn't exist, it is created with the other arguments."""
        return Conversation(self, self._run(operations.open_or_create(self._settings, id, title, agent, metadata)).id)
