"""A server for fakes of partners: requests in, answers out, faults on request, and a log of what really happened."""

from __future__ import annotations

import random
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol
from urllib.parse import parse_qs, urlsplit

from tests.servers import served

from crossdock.values import exact_json

Fault = Literal["none", "lost_answer", "refused", "throttled", "unavailable"]
"""``lost_answer``: carried out, and the connection ends without an answer. ``refused``: the connection ends before it
is carried out. ``throttled`` and ``unavailable``: the partner's own answers, nothing is carried out."""


@dataclass(frozen=True, slots=True)
class PartnerRequest:
    """One request; names of headers are in lower case, parameters are as they were sent."""

    method: str
    path: str
    params: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def param(self, name: str, default: str = "") -> str:
        """The first value of a parameter."""
        return self.params.get(name, [default])[0]

    def json(self) -> Any:
        """The body, with exact numbers; None without one.

        Raises:
            ValueError: If it is not JSON.
        """
        return exact_json.loads(self.body) if self.body else None


@dataclass(frozen=True, slots=True)
class PartnerAnswer:
    """One answer. *body* is sent as JSON, its numbers `int` or `Decimal`, unless it is bytes; None for an empty one.

    *headers* have names in lower case, and may replace ``date`` and ``content-type``.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else exact_json.dumps(self.body)


class Partner(Protocol):
    """What a fake implements; called with a lock, one request at a time.

    Attributes:
        effects: What really happened, oldest first, each with the member ``kind``.
    """

    effects: list[dict[str, Any]]

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        """Carry out a request."""

    def throttled(self) -> PartnerAnswer:
        """The partner's answer to too many requests."""


class PartnerServer:
    """A fake at work on loopback.

    Args:
        faults: Share of requests with each fault, by fault.
        chosen: Requests that may have faults; by default all.

    Attributes:
        requests: Every request that arrived, oldest first, and the fault it had.
        answering: The number of requests that are being answered.
    """

    def __init__(
        self,
        partner: Partner,
        faults: Mapping[Fault, float] = {},
        seed: int = 0,
        chosen: Callable[[PartnerRequest], bool] = lambda _: True,
    ) -> None:
        self.partner, self.faults, self.chosen = partner, faults, chosen
        self.requests: list[tuple[PartnerRequest, Fault]] = []
        self.url, self.answering = "", 0
        self._rng, self._lock = random.Random(seed), threading.Lock()

    def respond(self, request: PartnerRequest) -> PartnerAnswer | None:
        """The answer to *request*; None if the connection ends without one."""
        with self._lock:
            fault = self._fault(request)
            self.requests.append((request, fault))
            match fault:
                case "refused":
                    return None
                case "throttled":
                    return self.partner.throttled()
                case "unavailable":
                    return PartnerAnswer(503, {"message": "try again later"})
            answer = self.partner.answer(request)
            return None if fault == "lost_answer" else answer

    def _fault(self, request: PartnerRequest) -> Fault:
        drawn = self._rng.random()
        for fault, share in self.faults.items() if self.chosen(request) else ():
            if drawn < share:
                return fault
            drawn -= share
        return "none"


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    partner: PartnerServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show what went wrong, unless a client went away, as killed ones do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one piece: its content, sent apart, would wait 40 ms (Nagle's algorithm)
    server: _Http

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        parts = urlsplit(self.path)
        request = PartnerRequest(
            self.command,
            parts.path,
            parse_qs(parts.query, keep_blank_values=True),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length),
        )
        self.server.partner.answering += 1
        try:
            answer = self.server.partner.respond(request)
        finally:
            self.server.partner.answering -= 1
        if answer is None:
            self.close_connection = True
            return
        content = answer.content()
        self.send_response_only(answer.status)
        given = {"date": self.date_time_string(), "content-type": "application/json"}
        for name, value in {**given, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  the names that http.server calls

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that http.server declares
        """Nothing: tests read `PartnerServer.requests`."""


@contextmanager
def serving(server: PartnerServer, tls: ssl.SSLContext | None = None) -> Iterator[PartnerServer]:
    """*server* at work on a free port of the loopback interface, with its address in ``url``; over HTTPS with *tls*."""
    http = _Http(("127.0.0.1", 0), _Handler)
    http.partner = server
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{http.server_port}"
    with served(http):
        yield server
