"""The only door to HTTP, over httpcore. Every failure becomes one of two: surely not sent, or nobody knows (ambiguous).

Redirects, HTTP/2 and proxies from the environment are off: a followed redirect sends a write twice, and a graceful
GOAWAY turns a processed POST into an error that looks like an unprocessed one.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpcore

from crossdock.errors import ConfigError
from crossdock.local_files import open_regular
from crossdock.transport.connection_errors import AMBIGUOUS, NOT_SENT, http_reason
from crossdock.transport.http_answers import AmbiguousError, Answer, ExpiredError, NotSentError

_IN_ADDRESSES = "%/:?#[]@!$&'()*+,;=~"  # what percent-encoding leaves alone (RFC 3986, reserved)
_GZIP = 16 + zlib.MAX_WBITS
KEEPALIVE_S = 4.0  # below the 5 s of common servers, so that we close idle connections first


@cache
def trust(ca_file: Path | None = None) -> ssl.SSLContext:
    """A verifying TLS context, shared by all clients since it reads all certificates.

    Args:
        ca_file: Certificates to trust instead of the system's.

    Raises:
        ConfigError: If *ca_file* cannot be read or holds no certificate.
    """
    try:
        if ca_file:
            open_regular(ca_file).close()  # a pipe would hold us for ever
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"holds no certificates: {error}", where=str(ca_file)) from error


class HttpClient:
    """A client with one connection, for one thread.

    Args:
        headers: Sent with every request.
        total_timeout_s: Bound on one request from its first byte to the last byte of its answer, however it drips.
        max_response_bytes: Bound on an answer's body, as it comes and unpacked.
        tls: What https trusts; the system's certificates without it.
        network: Instead of sockets, for tests.
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
        network: httpcore.NetworkBackend | None = None,
    ) -> None:
        self._base_url = base_url
        self._headers = _encoded({"accept-encoding": "gzip", "user-agent": "crossdock", **headers})
        self._total_timeout_s, self._max_response_bytes = total_timeout_s, max_response_bytes
        self._extensions = {
            "timeout": {"connect": connect_timeout_s, "read": read_timeout_s, "write": read_timeout_s, "pool": 0.0}
        }
        self._network = _Bounded(network or httpcore.SyncBackend())
        self._pool = httpcore.ConnectionPool(
            ssl_context=(tls or trust()) if base_url.startswith("https:") else None,
            max_connections=1,
            keepalive_expiry=KEEPALIVE_S,
            http2=False,
            network_backend=self._network,
        )

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send one request and read its whole answer.

        Args:
            path: Below the base address, or a whole address.
            may_leave: Asked right before bytes of the request are written; once it says no, nothing more is.

        Raises:
            NotSentError: If it surely was not sent; `ExpiredError` if *may_leave* said no before its first byte.
            AmbiguousError: If it may have been carried out.
        """
        with self._translated():
            request = self._request(method, path, body, headers or {}, params or {})
            self._network.begin(time.monotonic() + self._total_timeout_s, may_leave)
            with closing(self._pool.handle_request(request)) as response:
                lines: dict[str, list[str]] = {}
                for name, value in response.headers:
                    lines.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
                answered = {name: ", ".join(values) for name, values in lines.items()}
                return Answer(response.status, answered, self._body(response, answered.get("content-encoding", "")))

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], params: Mapping[str, str]
    ) -> httpcore.Request:
        address = path if path.startswith(("http:", "https:")) else self._base_url + path
        try:
            query = f"?{urlencode(params)}" if params else ""
            url = httpcore.URL(quote(address + query, safe=_IN_ADDRESSES))
        except ValueError:  # its text quotes the address, which may hold a secret or be another server's
            raise NotSentError("the address is not valid", where=self._base_url) from None
        host = url.host if url.port is None else url.host + b":%d" % url.port
        given = [(b"host", host), *self._headers, *_encoded(headers)]
        if body is not None:
            given.append((b"content-length", b"%d" % len(body)))
        return httpcore.Request(method, url, headers=given, content=body, extensions=self._extensions)

    def _body(self, response: httpcore.Response, encoding: str) -> bytes:
        encoding = encoding.lower()  # RFC 9110 section 8.4.1
        if encoding not in {"", "identity", "gzip"}:
            raise AmbiguousError("answered in an encoding that was not asked for", where=self._base_url)
        unpack = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        limit, received, body = self._max_response_bytes, 0, bytearray()
        for chunk in response.iter_stream():
            received += len(chunk)  # there is gzip without end that unpacks to nothing
            body += unpack.decompress(chunk, limit + 1 - len(body)) if unpack else chunk
            if max(received, len(body)) > limit:
                raise AmbiguousError(f"answered more than {limit} bytes", where=self._base_url)
            if unpack and unpack.unused_data:
                raise AmbiguousError("broke off: bytes follow the packed answer", where=self._base_url)
        if unpack and not unpack.eof:
            raise AmbiguousError("broke off: the packed answer is not whole", where=self._base_url)
        return bytes(body)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except NOT_SENT as error:
            raise NotSentError(f"cannot be reached: {http_reason(error)}", where=self._base_url) from None
        except AMBIGUOUS as error:
            raise AmbiguousError(f"broke off: {http_reason(error)}", where=self._base_url) from None

    def close(self) -> None:
        self._pool.close()


class _Bounded(httpcore.NetworkBackend):
    """A network whose waits all end at one deadline, so that no drip of bytes holds a request for ever."""

    def __init__(self, network: httpcore.NetworkBackend) -> None:
        self._network = network
        self._deadline = 0.0
        self._may_leave: Callable[[], bool] = lambda: True
        self._has_left = False

    def begin(self, deadline: float, may_leave: Callable[[], bool]) -> None:
        """Begin a request that ends at *deadline*, on the monotonic clock, at the latest."""
        self._deadline, self._may_leave, self._has_left = deadline, may_leave, False

    def leave(self) -> None:
        """Called right before bytes of the request are written.

        A process that was suspended may have been replaced meanwhile: what is left of its requests must not arrive.

        Raises:
            ExpiredError: If they may not be, and none was.
            AmbiguousError: If they may not be any more; without the rest the request cannot be carried out.
        """
        if not self._may_leave():
            if self._has_left:
                raise AmbiguousError("the time to send the request was over before all of it had left")
            raise ExpiredError("the time to send the request was over before it left")
        self._has_left = True

    def left_s(self, timeout: float | None, late: type[Exception]) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise late
        return left if timeout is None else min(timeout, left)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self.left_s(timeout, httpcore.ConnectTimeout)
        with _named():
            return _Stream(self._network.connect_tcp(host, port, left, local_address, socket_options), self)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, bound: _Bounded) -> None:
        self._stream, self._bound = stream, bound

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._bound.left_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._bound.leave()
        self._stream.write(buffer, self._bound.left_s(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._bound.left_s(timeout, httpcore.ConnectTimeout)
        with _named():
            return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._bound)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """As bytes: an answer's own header text comes back as the bytes it was, and what is beyond them is UTF-8."""
    return [
        (name.encode(), value.encode("latin-1" if max(map(ord, value), default=0) < 256 else "utf-8"))
        for name, value in headers.items()
    ]


@contextmanager
def _named() -> Iterator[None]:
    """Python raises ValueError for a text that cannot be the name of a host, and httpcore lets it pass."""
    try:
        yield
    except ValueError as error:
        raise httpcore.ConnectError(error) from error
