"""An HTTP client over httpcore that distinguishes requests that were not sent from ambiguous ones.

There are no redirects and no HTTP/2: a followed redirect sends a write twice, and
after a graceful GOAWAY a processed POST looks like an unprocessed one.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
from msgspec import Struct

from crossdock.errors import ConfigError
from crossdock.reading.transport.failure_sentences import (
    AMBIGUOUS,
    CANNOT_BE_REACHED,
    NOT_SENT,
    REQUEST_FAILED,
    http_exception_reason,
    is_client_certificate_refused,
)
from crossdock.reading.transport.http_answers_and_errors import (
    MAX_RESPONSE_BYTES,
    TOTAL_TIMEOUT_S,
    AmbiguousError,
    Answer,
    ExpiredError,
    NotSentError,
    TooLargeError,
    UnreadableError,
)
from crossdock.reading.transport.proxy_and_tls_settings import DIRECT, HttpConnection, tls_context
from crossdock.values.web_address_checks import check_proxy_address

UNQUOTED = "%/:?#[]@!$&'()*+,;=~"  # not percent-encoded (RFC 3986, reserved)
_GZIP = 16 + zlib.MAX_WBITS
KEEPALIVE_S = 4.0  # below the 5 s of common servers, so that the client closes idle connections first
CONNECT_TIMEOUT_S = 5.0
DEFAULT_HEADERS = {"accept-encoding": "gzip", "user-agent": "crossdock"}


class SupportsWrite(Protocol):
    def write(self, data: bytes, /) -> object: ...


class HttpClient:
    """A client with one connection to each server, for one thread.

    Args:
        total_timeout_s: Limit from the start of a request to the last byte of its response.
        max_response_bytes: Limit for a response's body, before and after decompression.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        read_timeout_s: float = 30.0,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        connection: HttpConnection = DIRECT,
        network: httpcore.NetworkBackend | None = None,
    ) -> None:
        self._base_url = base_url
        self._headers = _encoded_headers({**DEFAULT_HEADERS, **headers})
        self._total_timeout_s, self._max_response_bytes = total_timeout_s, max_response_bytes
        self._extensions = {
            "timeout": {"connect": connect_timeout_s, "read": read_timeout_s, "write": read_timeout_s, "pool": 0.0}
        }
        tls, network = tls_context(connection), network or httpcore.SyncBackend()
        self._direct = _Route(network, tls)
        self._proxy = proxy_of_settings_or_environment(connection)
        self._proxied = _Route(network, tls, self._proxy) if self._proxy else self._direct

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
        """Send one request and read its whole response.

        Args:
            path: Below the base address, or a whole address.
            may_leave: Called before each write of the request; once it returns False, nothing more is written.

        Raises:
            NotSentError: If it was not sent; `ExpiredError` if *may_leave* returned False before the first byte.
            AmbiguousError: If it may have been processed.
        """
        with self._httpcore_errors_as_delivery_errors():
            request = self._build_request(method, path, body, headers or {}, params or {})
            status, lines, content = self.send_and_read_response(request, may_leave)
        received: dict[str, list[str]] = {}
        for name, value in lines:
            received.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        return Answer(status, {name: ", ".join(values) for name, values in received.items()}, content)

    def send_and_read_response(
        self,
        request: httpcore.Request,
        may_leave: Callable[[], bool] = lambda: True,
        sink: SupportsWrite | None = None,
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Send *request* and read status, header lines and decompressed body; *sink* takes the body of a 200 instead.

        Besides the errors of `send`, it raises the exceptions of `NOT_SENT` and `AMBIGUOUS`.
        """
        route = self._direct_or_proxied_route(request.url)
        route.network.begin_request(time.monotonic() + self._total_timeout_s, may_leave)
        with route.errors_before_sending_as_unsent(), closing(route.pool.handle_request(request)) as response:
            encodings = [value for name, value in response.headers if name.lower() == b"content-encoding"]
            body = bytearray()
            write = body.extend if sink is None or response.status != 200 else sink.write
            self._read_body(request, response, b", ".join(encodings).decode("latin-1"), write)
            return response.status, response.headers, bytes(body)

    def _direct_or_proxied_route(self, url: httpcore.URL) -> _Route:
        is_direct = url.scheme != b"https" or self._proxy is None or self._proxy.is_bypassed(url.host.decode("ascii"))
        return self._direct if is_direct else self._proxied

    def _build_request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], params: Mapping[str, str]
    ) -> httpcore.Request:
        address = path if path.startswith(("http:", "https:")) else self._base_url + path
        try:
            query = f"?{urlencode(params)}" if params else ""
            url = httpcore.URL(quote(address + query, safe=UNQUOTED))
        except ValueError:  # its text quotes the address, which may contain a secret
            raise NotSentError("the address is not valid", where=self._base_url, code="address_invalid") from None
        host = url.host if url.port is None else url.host + b":%d" % url.port
        given = [(b"host", host), *self._headers, *_encoded_headers(headers)]
        if body is not None:
            given.append((b"content-length", b"%d" % len(body)))
        return httpcore.Request(method, url, headers=given, content=body, extensions=self._extensions)

    def _read_body(
        self, request: httpcore.Request, response: httpcore.Response, encoding: str, write: Callable[[bytes], object]
    ) -> None:
        chunks = response.iter_stream()
        first = next(filter(None, chunks), b"")
        if not first and not _is_ended_by_closing(request, response):
            return  # servers name an encoding also where there is nothing to encode, as with 204
        encoding = encoding.lower()  # RFC 9110 section 8.4.1
        if encoding not in {"", "identity", "gzip"}:
            raise UnreadableError(f"{REQUEST_FAILED}the content encoding is not supported", where=self._base_url)
        gunzip = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        limit, received, written = self._max_response_bytes, 0, 0
        for chunk in chain((first,), chunks):
            received += len(chunk)  # endless gzip may decompress to nothing
            content = gunzip.decompress(chunk, limit + 1 - written) if gunzip else chunk
            written += len(content)
            if max(received, written) > limit:
                raise TooLargeError(f"{REQUEST_FAILED}the response has more than {limit:,} bytes", where=self._base_url)
            if gunzip and gunzip.unused_data:
                raise AmbiguousError(f"{REQUEST_FAILED}data follows the compressed response", where=self._base_url)
            write(content)
        if gunzip and not gunzip.eof:
            raise AmbiguousError(f"{REQUEST_FAILED}the compressed response is incomplete", where=self._base_url)

    @contextmanager
    def _httpcore_errors_as_delivery_errors(self) -> Iterator[None]:
        try:
            yield
        except NOT_SENT as error:
            raise NotSentError(f"{CANNOT_BE_REACHED}{http_exception_reason(error)}", where=self._base_url) from None
        except AMBIGUOUS as error:
            raise AmbiguousError(f"{REQUEST_FAILED}{http_exception_reason(error)}", where=self._base_url) from None

    def close(self) -> None:
        self._direct.pool.close()
        self._proxied.pool.close()


class _Route:
    def __init__(self, network: httpcore.NetworkBackend, tls: ssl.SSLContext, proxy: ChosenProxy | None = None) -> None:
        layers = 0 if proxy is None else 1 + proxy.has_tls
        self.network = _DeadlineNetwork(network, layers)
        self.pool = httpcore.ConnectionPool(
            ssl_context=tls,
            proxy=proxy.server if proxy else None,
            max_connections=1,
            keepalive_expiry=KEEPALIVE_S,
            http2=False,
            network_backend=self.network,
        )

    @contextmanager
    def errors_before_sending_as_unsent(self) -> Iterator[None]:
        """Raise exceptions of `NOT_SENT` where a failure shows that no request was sent."""
        try:
            yield
        except AMBIGUOUS as error:
            if is_client_certificate_refused(error):
                raise httpcore.ConnectError(*error.args) from error
            if self.network.is_tunnel and not self.network.has_left:
                raise httpcore.ProxyError from error
            raise


class _DeadlineNetwork(httpcore.NetworkBackend):
    """A network backend whose waits all end at one deadline, however slowly a server sends.

    Through a proxy, a connection carries requests only after *layers* TLS handshakes; without one, *layers* is 0.
    """

    def __init__(self, network: httpcore.NetworkBackend, layers: int = 0) -> None:
        self._network, self._layers = network, layers
        self._deadline = 0.0
        self._may_leave: Callable[[], bool] = lambda: True
        self.has_left = False

    @property
    def is_tunnel(self) -> bool:
        return self._layers > 0

    def begin_request(self, deadline: float, may_leave: Callable[[], bool]) -> None:
        self._deadline, self._may_leave, self.has_left = deadline, may_leave, False

    def raise_if_request_must_not_leave(self, *, is_request: bool) -> None:
        """Check that the request may still be sent, before each write of it or of a request to the proxy.

        A process that was suspended may have been replaced meanwhile, so it must not finish its old requests.
        """
        if not self._may_leave():
            if self.has_left:
                raise AmbiguousError("the time limit for sending the request expired before all of it was sent")
            raise ExpiredError("the time limit for sending the request expired before it was sent")
        self.has_left |= is_request

    def seconds_left(self, timeout: float | None, late: type[Exception]) -> float:
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
        left = self.seconds_left(timeout, httpcore.ConnectTimeout)
        with _value_errors_as_connect_errors():
            stream = self._connect_with_proxy_errors(host, port, left, local_address, socket_options)
        return _DeadlineStream(stream, self, self._layers)

    def _connect_with_proxy_errors(self, *arguments: Any) -> httpcore.NetworkStream:
        try:
            return self._network.connect_tcp(*arguments)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            if self.is_tunnel:
                raise httpcore.ProxyError(*error.args) from error
            raise


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, bound: _DeadlineNetwork, layers: int) -> None:
        self._stream, self._bound, self._layers = stream, bound, layers

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._bound.seconds_left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._bound.raise_if_request_must_not_leave(is_request=not self._layers)
        self._stream.write(buffer, self._bound.seconds_left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._bound.seconds_left(timeout, httpcore.ConnectTimeout)
        with _value_errors_as_connect_errors():
            stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _DeadlineStream(stream, self._bound, max(0, self._layers - 1))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _is_ended_by_closing(request: httpcore.Request, response: httpcore.Response) -> bool:
    """Return whether only a closed connection ends the body (RFC 9112 section 6.3), so that a cut may leave no byte."""
    names = {name.lower() for name, _ in response.headers}
    has_no_body = request.method == b"HEAD" or response.status in {204, 304}
    return not has_no_body and names.isdisjoint({b"content-length", b"transfer-encoding"})


def _encoded_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Encode as Latin-1 if possible, so that text from a response's header is sent back unchanged, else as UTF-8."""
    return [
        (name.encode(), value.encode("latin-1" if max(map(ord, value), default=0) < 256 else "utf-8"))
        for name, value in headers.items()
    ]


@contextmanager
def _value_errors_as_connect_errors() -> Iterator[None]:
    """Translate the ValueError that Python raises for an invalid host name, which httpcore does not translate."""
    try:
        yield
    except ValueError as error:
        raise httpcore.ConnectError(error) from error


class ChosenProxy(Struct, frozen=True):
    server: httpcore.Proxy
    is_bypassed: Callable[[str], bool]

    @property
    def has_tls(self) -> bool:
        return self.server.url.scheme == b"https"


def proxy_of_settings_or_environment(connection: HttpConnection) -> ChosenProxy | None:
    """Return the proxy of *connection*, or of the environment where that is trusted."""
    if connection.proxy is not None:
        user, password = connection.proxy_user, connection.proxy_password
        login = (user.reveal(), password.reveal() if password else "") if user else None
        return ChosenProxy(_make_httpcore_proxy(connection, connection.proxy, login), lambda _: False)
    if not connection.trust_env:
        return None
    found = getproxies()
    address = found.get("https") or found.get("all")
    return (
        ChosenProxy(_parse_proxy_of_environment(connection, address), lambda host: bool(proxy_bypass(host)))
        if address
        else None
    )


def _parse_proxy_of_environment(connection: HttpConnection, address: str) -> httpcore.Proxy:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        url = check_proxy_address(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
    except ValueError:  # the text could contain a password
        message = "the proxy in HTTPS_PROXY or ALL_PROXY is not an address such as http://proxy.example.com:3128"
        raise ConfigError(
            message, hint="correct the variable, or set trust_env: false", code="config_invalid"
        ) from None
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return _make_httpcore_proxy(connection, url, login)


def _make_httpcore_proxy(connection: HttpConnection, url: str, login: tuple[str, str] | None) -> httpcore.Proxy:
    tls = tls_context(connection.anonymous()) if url.startswith("https:") else None
    encoded = (login[0].encode(), login[1].encode()) if login else None
    return httpcore.Proxy(url, auth=encoded, ssl_context=tls)
