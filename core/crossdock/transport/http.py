"""The only door to httpx. Every failure becomes one of two: surely not sent, or nobody knows (ambiguous).

Redirects, HTTP/2 and proxies from the environment are off: a followed redirect sends a write twice, and a graceful
GOAWAY turns a processed POST into an error that looks like an unprocessed one.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx

from crossdock.errors import ConfigError, UnavailableError

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
KEEPALIVE_S = 4.0  # below the 5 s of common servers, so that we close idle connections first


class NotSentError(UnavailableError):
    """The request never left this machine whole: it can be sent again without harm."""


class AmbiguousError(UnavailableError):
    """The request may or may not have been carried out."""


NOT_SENT: tuple[type[Exception], ...] = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
    httpx.InvalidURL,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@cache
def trust(ca_file: Path | None = None) -> ssl.SSLContext:
    """A verifying TLS context, shared by all clients since it reads all certificates.

    Args:
        ca_file: Certificates to trust instead of the system's.

    Raises:
        ConfigError: If *ca_file* cannot be read or holds no certificate.
    """
    try:
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"holds no certificates: {error}", where=str(ca_file)) from error


class HttpClient:
    """A client with one connection, for one thread.

    Args:
        headers: Sent with every request.
        total_timeout_s: Bound on one request from its first byte to the last byte of its answer.
        tls: What https trusts; the system's certificates without it.
        transport: Instead of the network, for tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        connect_timeout_s: float = 5.0,
        read_timeout_s: float = 30.0,
        total_timeout_s: float = 60.0,
        max_response_bytes: int = 8 * 1024 * 1024,
        tls: ssl.SSLContext | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._total_timeout_s = total_timeout_s
        self._max_response_bytes = max_response_bytes
        self._client = httpx.Client(
            base_url=base_url,
            headers=headers,
            timeout=httpx.Timeout(read_timeout_s, connect=connect_timeout_s),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEPALIVE_S),
            verify=False if base_url.startswith("http:") else tls or trust(),
            http2=False,
            follow_redirects=False,
            trust_env=False,
            transport=transport,
        )
        self._place = base_url

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request and read its whole answer.

        Raises:
            NotSentError: If it surely was not sent.
            AmbiguousError: If it may have been carried out.
        """
        with self._translated():
            deadline = time.monotonic() + self._total_timeout_s
            with self._client.stream(method, path, content=body, headers=headers, params=params) as response:
                chunks, size = [], 0
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > self._max_response_bytes:
                        raise AmbiguousError(f"answered more than {self._max_response_bytes} bytes", where=self._place)
                    if time.monotonic() > deadline:
                        raise AmbiguousError(f"did not answer within {self._total_timeout_s} s", where=self._place)
                return Answer(response.status_code, response.headers, b"".join(chunks))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except NOT_SENT as error:
            raise NotSentError(f"cannot be reached: {_reason(error)}", where=self._place) from error
        except (httpx.HTTPError, httpx.StreamError, httpx.CookieConflict) as error:
            raise AmbiguousError(f"broke off: {_reason(error)}", where=self._place) from error

    def close(self) -> None:
        self._client.close()


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.LocalProtocolError):
        return "the request breaks the rules of HTTP"  # the library's text would quote the header
    return _ERRNO.sub("", str(error)).lower() or type(error).__name__
