"""What both clients need of httpx."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from ._protocol import SILENCE, HttpRequest, HttpResponse
from .errors import ClosedError, ConnectionLostError, TokenError

# A followed conversation has a connection of its own, so their number is not limited.
limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)


@dataclass(frozen=True)
class Options:
    timeout: float  # seconds of an ordinary request, without progress


def base_url(url: str | None) -> str:
    base = (url or os.environ.get("LEAT_URL") or "http://127.0.0.1:31337").rstrip("/")
    return base if "://" in base else f"http://{base}"


def request_arguments(base: str, request: HttpRequest) -> dict[str, Any]:
    # A compressed stream would arrive in blocks.
    headers = {"Accept-Encoding": "identity", **request.headers}
    return {"method": request.method, "url": base + request.path, "headers": headers, "content": request.body}


def stream_timeout(options: Options) -> httpx.Timeout:
    return httpx.Timeout(options.timeout, read=SILENCE)


def response_of(response: httpx.Response, body: bytes) -> HttpResponse:
    return HttpResponse(response.status_code, {k.lower(): v for k, v in response.headers.items()}, body)


@contextmanager
def wrap() -> Iterator[None]:
    """Raise the failures of httpx as errors of this package."""
    try:
        yield
    except httpx.ReadTimeout as err:
        raise ConnectionLostError("no data from the gateway") from err
    except (httpx.TransportError, httpx.StreamError) as err:
        raise ConnectionLostError(f"connection lost: {err}" if str(err) else f"connection lost: {type(err).__name__}") from err
    except RuntimeError as err:
        if "client has been closed" in str(err):
            raise ClosedError from err
        raise


def token_failure(err: Exception) -> TokenError:
    # The message of the error may contain a secret, so only its type is repeated; __cause__ has all of it.
    return TokenError(f"the function that returns the token failed: {type(err).__name__}")
