"""An `httpx.Client` for connectors, with the deadline, size limits and TLS of `HttpClient`."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import httpcore
import httpx
from msgspec import Struct

from crossdock.errors import UnavailableError
from crossdock.reading.transport.failure_sentences import (
    AMBIGUOUS,
    CANNOT_BE_REACHED,
    NOT_SENT,
    REQUEST_FAILED,
    http_exception_reason,
)
from crossdock.reading.transport.http_answers_and_errors import (
    MAX_RESPONSE_BYTES,
    TOTAL_TIMEOUT_S,
    AmbiguousError,
    NotSentError,
    TimedOutError,
    UnreadableError,
)
from crossdock.reading.transport.httpcore_client import (
    CONNECT_TIMEOUT_S,
    DEFAULT_HEADERS,
    HttpClient,
)
from crossdock.reading.transport.proxy_and_tls_settings import DIRECT, HttpConnection

_DECODED = {b"content-encoding", b"content-length", b"transfer-encoding"}  # no longer true for the decoded body

_HTTPX_NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
)


class AnswerLimits(Struct, frozen=True):
    """Limits for an answer: the longest silence of the server, the total time, and the body, also decompressed."""

    timeout_s: float = 30.0
    total_timeout_s: float = TOTAL_TIMEOUT_S
    max_bytes: int = MAX_RESPONSE_BYTES


DEFAULT_LIMITS = AnswerLimits()


def make_httpx_client_with_limits(
    base_url: str,
    *,
    headers: Mapping[str, str] | None = None,
    auth: httpx.Auth | None = None,
    limits: AnswerLimits = DEFAULT_LIMITS,
    connection: HttpConnection = DIRECT,
    on_request: Callable[[httpx.Request], None] | None = None,
    transport: httpx.BaseTransport | None = None,
    recorded: Callable[[httpx.BaseTransport], httpx.BaseTransport] | None = None,
) -> httpx.Client:
    """Make a client that follows no redirects. *on_request* is called right before each request, after *auth*."""
    used = transport or _bounded_transport(limits, connection)
    return httpx.Client(
        base_url=base_url,
        headers={**DEFAULT_HEADERS, **(headers or {})},
        auth=auth,
        timeout=httpx.Timeout(limits.timeout_s, connect=CONNECT_TIMEOUT_S),
        event_hooks={"request": [on_request] if on_request else [], "response": [_read_and_release_stream]},
        transport=recorded(used) if recorded else used,
        follow_redirects=False,
        trust_env=False,
    )


def _bounded_transport(limits: AnswerLimits, connection: HttpConnection) -> LimitedHttpxTransport:
    client = HttpClient(
        "",
        headers={},
        total_timeout_s=limits.total_timeout_s,
        max_response_bytes=limits.max_bytes,
        connection=connection,
    )
    return LimitedHttpxTransport(client)


def _read_and_release_stream(response: httpx.Response) -> None:
    """Break a reference cycle with httpx's stream. Commands collect garbage rarely, and would keep a thousand pages."""
    response.read()
    response.stream = httpx.ByteStream(response.content)


class LimitedHttpxTransport(httpx.BaseTransport):
    """Sends one request at a time through *client*, so that its deadline and limits apply.

    A request with the extension ``sink``, an open file, has the body of a 200 written to it; ``may_leave`` is that of
    `HttpClient.send`. Failures are exceptions of httpx with the sentences of `HttpClient`, without texts of the server.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client, self._lock = client, threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        content, extensions = request.read(), dict(request.extensions)
        sink, may_leave = extensions.pop("sink", None), extensions.pop("may_leave", lambda: True)
        translated = httpcore.Request(
            request.method, target, headers=request.headers.raw, content=content, extensions=extensions
        )
        with _client_errors_as_httpx_errors(request), self._lock:
            status, headers, body = self._client.send_and_read_response(translated, may_leave, sink)
        kept = [(name, value) for name, value in headers if name.lower() not in _DECODED]
        return httpx.Response(status, headers=kept, content=body, request=request)

    def close(self) -> None:
        self._client.close()


@contextmanager
def _client_errors_as_httpx_errors(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except zlib.error as error:
        raise httpx.DecodingError(f"{REQUEST_FAILED}{http_exception_reason(error)}", request=request) from None
    except UnreadableError:
        raise
    except AmbiguousError as error:
        raise httpx.RemoteProtocolError(error.message, request=request) from None
    except (*NOT_SENT, *AMBIGUOUS) as error:
        prefix = CANNOT_BE_REACHED if isinstance(error, NOT_SENT) else REQUEST_FAILED
        kind = getattr(httpx, type(error).__name__, httpx.TransportError)  # the names are the same in both libraries
        raise kind(f"{prefix}{http_exception_reason(error)}", request=request) from None


@contextmanager
def httpx_errors_as_unavailable(host: str | None = None) -> Iterator[None]:
    """Raise UnavailableError or TimedOutError instead of the errors of httpx, which may quote the server.

    A failure of another host than *host*, such as one that grants tokens, is named in the message.
    """
    try:
        yield
    except httpx.InvalidURL:
        raise UnavailableError("the address is not valid", code="address_invalid") from None
    except httpx.RequestError as error:
        kind = TimedOutError if isinstance(error, httpx.TimeoutException) else UnavailableError
        raise kind(_failure_sentence(error, host)) from None


@contextmanager
def httpx_errors_as_delivery_errors(host: str) -> Iterator[None]:
    """Raise NotSentError or AmbiguousError as `httpx_errors_as_unavailable` does. Without a token, nothing was sent."""
    try:
        yield
    except (NotSentError, AmbiguousError):
        raise
    except httpx.InvalidURL:
        raise NotSentError("the address is not valid", code="address_invalid") from None
    except httpx.RequestError as error:
        kind = NotSentError if isinstance(error, _HTTPX_NOT_SENT) else AmbiguousError
        raise kind(_failure_sentence(error, host)) from None
    except UnavailableError as error:
        raise NotSentError(f"{error.where}: {error.message}", code=error.code) from error


def _failure_sentence(error: httpx.RequestError, host: str | None) -> str:
    text, asked = str(error), host
    with suppress(RuntimeError):  # an exception that no client raised has no request
        asked = error.request.url.host
    if not text.startswith((CANNOT_BE_REACHED, REQUEST_FAILED)):
        text = f"{REQUEST_FAILED}{type(error).__name__}"
    return text if host in {None, asked} else f"{asked}: {text}"
