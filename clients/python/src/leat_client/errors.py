"""The errors of the client. Each class stands for a group of the gateway's reasons, listed in docs/protocol.md."""

from __future__ import annotations

import json
from collections.abc import Mapping

_MAX_RETRY_AFTER = 24 * 60 * 60.0


class LeatError(Exception):
    """The gateway's refusal of a request, or the reason why it can't be reached.

    The message is for people and may change. Programs use the class or ``reason``.
    """

    def __init__(
        self,
        message: str,
        reason: str = "",
        status: int = 0,
        retry_after: float = 0.0,
        rejected: bool = False,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        #: The HTTP status; 0 if the error came in a stream, or if there was no response.
        self.status = status
        #: Seconds until a retry is useful; 0 if unknown.
        self.retry_after = retry_after
        #: The gateway understood the command and refused it, so that it had no effect.
        self.rejected = rejected
        #: The header X-Request-Id of the response, if the gateway or a proxy in front of it has set one.
        self.request_id = request_id

    @property
    def temporary(self) -> bool:
        """The same request may succeed later."""
        if self.reason == "damaged":
            return False
        if self.status == 0:
            return self.reason in ("unavailable", "internal", "timeout", "busy", "draining")
        return self.status in (408, 429) or (self.status >= 500 and self.status != 501)


class InvalidError(LeatError):
    """The request is malformed, too large, or names something that the gateway doesn't have (400, 405, 406, 413, 415, 422, 426)."""


class AuthenticationError(LeatError):
    """The token is missing, wrong or expired (401)."""


class ForbiddenError(LeatError):
    """The caller may not do this (403)."""


class NotFoundError(LeatError):
    """The conversation, message, turn or request doesn't exist, or the caller has no access to it (404)."""


class DeletedError(NotFoundError):
    """The conversation was deleted."""


class ConflictError(LeatError):
    """The id exists already, a turn is unfinished, or the turn has ended (409)."""


class LimitError(LeatError):
    """Too many requests, or a quota is reached (429)."""


class ServerError(LeatError):
    """A fault of the gateway or an agent's upstream (500, 502)."""


class DamagedError(ServerError):
    """The conversation is damaged on disk and can't be read."""


class UnavailableError(LeatError):
    """The gateway is stopping, busy, or too slow (503, 504)."""


class ConnectionLostError(LeatError):
    """There is no connection to the gateway, or it was interrupted."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "network")

    @property
    def temporary(self) -> bool:
        return True


class TokenError(ConnectionLostError):
    """The function that returns the token has failed. It is retried like a lost connection."""


class ProtocolError(LeatError):
    """The server isn't a Leat gateway, or speaks another version of the protocol."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "protocol")


class ClosedError(LeatError):
    """The client was closed."""

    def __init__(self, message: str = "the client is closed") -> None:
        super().__init__(message, "closed")


_BY_REASON: dict[str, type[LeatError]] = {
    "deleted": DeletedError, "damaged": DamagedError, "expired": AuthenticationError, "unauthorized": AuthenticationError,
    "not_found": NotFoundError, "unknown": NotFoundError, "unavailable": UnavailableError, "draining": UnavailableError,
    "internal": ServerError, "forbidden": ForbiddenError, "timeout": UnavailableError,
}  # fmt: skip

_BY_STATUS: dict[int, type[LeatError]] = {
    401: AuthenticationError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError, 429: LimitError,
    500: ServerError, 502: ServerError, 503: UnavailableError, 504: UnavailableError,
}  # fmt: skip


def error_of_frame(frame: Mapping[str, object]) -> LeatError:
    """Return the error of a stream's last frame."""
    reason = str(frame.get("reason") or "internal")
    milliseconds = frame.get("retryAfter")
    wait = milliseconds / 1000 if isinstance(milliseconds, (int, float)) else 0.0
    return _BY_REASON.get(reason, ServerError)(str(frame.get("error") or reason), reason, retry_after=_limited(wait))


def error_of_response(status: int, headers: Mapping[str, str], body: bytes) -> LeatError:
    """Return the error of a response that isn't a success. A body that isn't the gateway's JSON comes from a proxy."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("error"), str):
        document = {}
    reason = str(document.get("reason") or "")
    fallback = ServerError if status >= 500 else InvalidError
    kind = _BY_STATUS.get(status, fallback)
    if reason in ("deleted", "damaged"):
        kind = _BY_REASON[reason]
    try:
        wait = float(headers.get("retry-after", "0"))
    except ValueError:
        wait = 0.0
    if isinstance(document.get("retryAfter"), (int, float)):
        wait = document["retryAfter"] / 1000
    return kind(
        str(document.get("error") or f"the server answered with status {status}"),
        reason, status, _limited(wait), document.get("rejected") is True, headers.get("x-request-id"),
    )  # fmt: skip


def _limited(seconds: float) -> float:
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER)
