"""An httpx transport served on this machine, so that other processes can read it like the vendor's API."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import httpx

_HOPS = {"host", "connection", "accept-encoding", "content-length", "transfer-encoding", "content-encoding", "date"}
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}  # RFC 9110, section 9.2.1
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection

RESET: Literal["reset"] = "reset"
"""In place of an answer: the connection is reset."""

Fault = int | Literal["reset", "lost", "cut"]
"""A status, with headers that permit the next request soon; or a connection that is reset. ``lost``: the request is
answered, and the connection is reset in place of the answer. ``cut``: it is reset in the middle of the answer."""

SERVED_AT = "served_at"
"""The extension of a request with the address to which it was really sent, for an API that checks a signature of it."""

_PERMITTED = {"retry-after": "0.1", "ratelimit-policy": '"api";q=1000;w=1', "ratelimit": '"api";r=900;t=1'}


class TransportServer:
    """Serves *transport* on a free port of the loopback interface for each origin, while the context is open.

    What *transport* raises besides `httpx.TransportError` is answered by 400, and raised at the end of the context.
    An origin is replaced by the address that serves it in the texts of `text_with_local_addresses`, and in headers and
    bodies of answers.

    Args:
        origins: Scheme and host of the URLs that *transport* answers, such as ``https://api.example.com``.

    Attributes:
        faults: What happens to the next requests, each once.
        requests: The number of requests so far.
        is_holding: Whether a request waits; see `hold_request`.
    """

    def __init__(self, transport: httpx.BaseTransport, origins: Iterable[str]) -> None:
        self._transport, self._lock = transport, threading.Lock()
        self.faults: list[Fault] = []
        self.requests = 0
        self._held, self._is_answered, self._released = 0, False, threading.Event()
        self.is_holding = False
        self._error: Exception | None = None
        self._opened = ExitStack()
        self._addresses: dict[str, str] = {}
        self._origins = list(dict.fromkeys(origins))

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            for origin in self._origins:
                server = opened.enter_context(_Server(self, origin))
                self._addresses[origin] = f"http://127.0.0.1:{server.server_port}"
                thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
                thread.start()
                opened.callback(thread.join)
                opened.callback(server.shutdown)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        if self._error is not None:
            raise self._error

    def text_with_local_addresses(self, text: str) -> str:
        """Replace the origins in *text* by the addresses that serve them."""
        for origin, address in self._addresses.items():
            text = text.replace(origin, address)
        return text

    @contextmanager
    def hold_request(self, number: int, *, answered: bool = False) -> Iterator[None]:
        """Request *number*, or the next one, gets no answer while the context is open, and is reset at its end.

        Args:
            answered: The transport gets the request nevertheless; only its answer is lost. A request that only reads
                is not held.
        """
        self._held, self._is_answered = number, answered
        self._released.clear()
        try:
            yield
        finally:
            self._held, self.is_holding = 0, False
            self._released.set()

    def answer(self, request: httpx.Request) -> httpx.Response | Literal["reset"]:
        """Return the answer to *request*, with addresses of this machine. Requests are answered one at a time."""
        with self._lock:
            self.requests += 1
            if self._is_to_be_held(request):
                if self._is_answered:
                    self._answer_of_transport(request)
                self.is_holding = True
                self._released.wait()
                return RESET
            fault = self.faults.pop(0) if self.faults else None
            if isinstance(fault, int):
                return httpx.Response(fault, headers=_PERMITTED)
            answer = RESET if fault == RESET else self._answer_of_transport(request)
            if fault == "cut" and not isinstance(answer, str):
                answer.extensions["cut"] = True
            return RESET if fault == "lost" else answer

    def _is_to_be_held(self, request: httpx.Request) -> bool:
        # A request of a process that was killed may still arrive, so that the number itself may have gone by.
        if self._held == 0 or self.requests < self._held:
            return False
        return not self._is_answered or request.method not in _SAFE_METHODS

    def _answer_of_transport(self, request: httpx.Request) -> httpx.Response | Literal["reset"]:
        try:
            return self._response_with_local_addresses(self._transport.handle_request(request))
        except httpx.TransportError:
            return RESET
        except Exception as error:  # noqa: BLE001  raised at the end of the context
            self._error = self._error or error
            return httpx.Response(400, text="the transport failed")

    def _response_with_local_addresses(self, response: httpx.Response) -> httpx.Response:
        content = response.read()
        for origin, address in self._addresses.items():
            content = content.replace(origin.encode(), address.encode())
            content = content.replace(origin.replace("/", "\\/").encode(), address.encode())
        headers = [
            (name, self.text_with_local_addresses(value))
            for name, value in response.headers.multi_items()
            if name not in _HOPS
        ]
        return httpx.Response(response.status_code, headers=headers, content=content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, served: TransportServer, origin: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.served, self.origin = served, origin

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: a client that was killed is not an error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = [(name, value) for name, value in self.headers.items() if name.lower() not in _HOPS]
        content = self.rfile.read(length)
        if len(content) < length:  # the client was killed while it sent the request
            self._reset()
            return
        url = f"{self.server.origin}{self.path}"
        served_at = {SERVED_AT: f"http://127.0.0.1:{self.server.server_port}"}
        request = httpx.Request(self.command, url, headers=headers, content=content, extensions=served_at)
        response = self.server.served.answer(request)
        if isinstance(response, str):
            self._reset()
            return
        self.send_response(response.status_code)
        for name, value in response.headers.multi_items():
            if name != "content-length":
                self.send_header(name, value)
        self.send_header("content-length", str(len(response.content)))
        self.end_headers()
        if "cut" in response.extensions:
            self.wfile.write(response.content[: len(response.content) // 2])
            self._reset()
            return
        self.wfile.write(response.content)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _answer  # noqa: N815  the base class calls them

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def web_origins_in(value: Any) -> set[str]:
    """Return scheme and host of each text in *value* that is a web address."""
    if isinstance(value, dict):
        return set().union(*map(web_origins_in, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(web_origins_in, value))
    if isinstance(value, str) and value.startswith(("https://", "http://")):
        parts = urlsplit(value)
        return {f"{parts.scheme}://{parts.netloc}"}
    return set()
