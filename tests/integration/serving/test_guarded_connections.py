"""Connections with deadlines, with bytes that no HTTP library would send."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from tests.waiting import WITHIN_S, eventually

from crossdock.values.serving import ConnectionLimits, StoppableServer
from crossdock.values.serving import make_uvicorn_config as uvicorn_config

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SOON_S = 0.2
LARGE = 64 << 20  # bytes, more than the buffers of a connection hold


class Web:
    """A server that echoes request bodies.

    ``/large`` is answered with much, ``/wait`` once it is let `go`, and ``/early`` before its body is read.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self.paths: list[str] = []  # of requests that were read to their end
        self.go = threading.Event()
        self._server = StoppableServer(uvicorn_config(self._app, limits, timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))

    @contextmanager
    def running(self) -> Iterator[Web]:
        self._thread.start()
        try:
            yield self
        finally:
            self.go.set()
            self._server.stop()
            self._thread.join()

    def connect(self, text: bytes = b"") -> socket.socket:
        """A connection on which *text* was sent as it is."""
        wire = socket.create_connection(self.address, timeout=WITHIN_S)
        wire.sendall(text)
        return wire

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = b"" if scope["path"] == "/early" else await request.body()
        except ClientDisconnect:
            return
        if scope["path"] != "/early":
            self.paths.append(scope["path"])
        if scope["path"] == "/wait":
            await asyncio.to_thread(self.go.wait)
        if scope["method"] == "CONNECT":
            await Response(status_code=405)(scope, receive, send)
            return
        await Response(bytes(LARGE) if scope["path"] == "/large" else body)(scope, receive, send)


@pytest.fixture
def web(request: pytest.FixtureRequest) -> Iterator[Web]:
    """A server with the limits of the test."""
    with Web(ConnectionLimits(**request.param)).running() as web:
        yield web


def limits(**given: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("web", [given], indirect=True, ids=[""])


def rest(wire: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    chunks = []
    try:
        while chunk := wire.recv(65536):
            chunks.append(chunk)
    except ConnectionResetError:  # it closed while bytes of ours were on their way
        pass
    return b"".join(chunks)


def detail(answer: bytes, status: int) -> str:
    """The detail of the problem document that came with *status* before the connection was closed."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"\r\nconnection: close" in head.lower()
    assert b"\r\ncontent-type: application/problem+json" in head.lower()
    document = json.loads(body)
    assert document["status"] == status
    return str(document["detail"])


# ---- late


@limits(header_s=SOON_S)
@pytest.mark.parametrize("half", [b"G", b"GET / HTTP/1.1\r\nHost: ", GET[:-2]])
@pytest.mark.parametrize("before", [b"", GET], ids=["first", "second"])
def test_an_incomplete_header_section_is_answered_408(web: Web, before: bytes, half: bytes) -> None:
    """The first request of a connection and later ones have a time limit; then the connection is closed."""
    with closing(web.connect(before + half)) as wire:
        answers = rest(wire)
    if before:
        assert answers.startswith(b"HTTP/1.1 200 OK\r\n")
        answers = answers[answers.index(b"HTTP/1.1 408") :]
    assert detail(answers, 408) == "The header section of the request was not complete within 0.2 s."
    assert web.paths == ["/"] * bool(before)


@limits(header_s=SOON_S)
def test_a_silent_connection_is_closed(web: Web) -> None:
    """Without a response, which a client could take for the one to a request it is about to send."""
    with closing(web.connect()) as wire:
        assert rest(wire) == b""


@limits(body_s=SOON_S)
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 9\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
)
def test_an_incomplete_body_is_answered_408(web: Web, framing: bytes) -> None:
    """A body has a time limit, and a part of it is not a request."""
    with closing(web.connect(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing)) as wire:
        assert detail(rest(wire), 408) == "The body of the request was not complete within 0.2 s."
    assert web.paths == []


@limits(header_s=SOON_S, body_s=SOON_S)
@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"x"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["header section", "body"],
)
def test_more_bytes_do_not_extend_the_deadline(web: Web, begin: bytes, more: bytes) -> None:
    """A client that keeps sending slowly is disconnected as well."""
    with closing(web.connect(begin)) as wire:
        wire.settimeout(0.01)

        def cut_off() -> bool:
            try:
                wire.sendall(more)
                return wire.recv(65536).startswith(b"HTTP/1.1 408")
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        eventually(cut_off)
    assert web.paths == []


@limits(answer_s=SOON_S)
@pytest.mark.parametrize("tail", [b"\r\n", b"Connection: close\r\n\r\n"], ids=["kept", "closing"])
def test_an_unread_response_ends_the_connection(web: Web, tail: bytes) -> None:
    """A client that does not read holds no resources."""
    with closing(web.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n" + tail)) as wire:
        eventually(lambda: web.paths == ["/large"])
        eventually(lambda: web.connections == 0)
        assert len(rest(wire)) < LARGE


@limits(header_s=SOON_S, body_s=SOON_S, answer_s=SOON_S)
def test_slow_processing_is_not_cut_off(web: Web) -> None:
    """The deadlines apply to the client, not to the application, also with pipelined requests."""
    with closing(web.connect(GET.replace(b"/ ", b"/wait ") + GET)) as wire, closing(web.connect()) as silent:
        assert rest(silent) == b""  # the deadline of a connection that began later is over
        web.go.set()
        assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")
        eventually(lambda: web.paths == ["/wait", "/"])


# ---- ambiguous


@limits()
@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: CHUNKED\r\nContent-Length: 0\r\n",
    ],
)
def test_two_framings_are_refused(web: Web, framing: bytes) -> None:
    """With Content-Length and Transfer-Encoding the end of the body is ambiguous: nothing more is read (RFC 9112)."""
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    with closing(web.connect(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n0\r\n\r\n" + smuggled)) as wire:
        told = detail(rest(wire), 400)
    assert told == "Content-Length and Transfer-Encoding exclude each other. Send one of them."
    assert web.paths == []


@limits()
def test_http_1_0_has_no_transfer_encoding(web: Web) -> None:
    """RFC 9112 section 6.1."""
    with closing(web.connect(b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) as wire:
        assert detail(rest(wire), 400) == "HTTP/1.0 has no Transfer-Encoding. Send Content-Length."
    assert web.paths == []


@limits()
@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 5_0\r\n",
        b"Content-Length : 5\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"Host: y\r\n",
    ],
)
def test_an_invalid_framing_is_refused(web: Web, framing: bytes) -> None:
    """With 400, and the connection is closed."""
    with closing(web.connect(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\nhello")) as wire:
        assert detail(rest(wire), 400) == "This is not a valid HTTP/1.1 request (RFC 9112)."
    assert web.paths == []


@limits()
def test_a_refused_head_has_no_body(web: Web) -> None:
    """As all responses to HEAD (RFC 9110 section 9.3.2)."""
    with closing(web.connect(b"HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n")) as wire:
        answer = rest(wire)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b"\r\n\r\n")


@limits()
@pytest.mark.parametrize("path", [b"/", b"/early"])
def test_a_malformed_body_ends_its_request_alone(web: Web, path: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """The application that processes the request ends without an error."""
    head = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with closing(web.connect(head + b"no size\r\n")) as wire:
        assert detail(rest(wire), 400)
    eventually(lambda: web.connections == 0)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
    assert web.paths == []


@limits()
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
def test_one_framing_keeps_the_connection(web: Web, framing: bytes) -> None:
    """Each framing alone is accepted, and the connection serves the next request."""
    with closing(
        web.connect(
            b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
    ) as wire:
        answers = rest(wire)
    assert answers.count(b"HTTP/1.1 200 OK") == 2
    assert b"\r\n\r\nhello" in answers


# ---- too many


@limits(connections=3)
def test_the_oldest_idle_connection_makes_room(web: Web) -> None:
    """A connection without a request to answer is closed for a new one."""
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(web.connect(half))) for half in (GET, GET[:9], b"")]
        assert opened[0].recv(65536).startswith(b"HTTP/1.1 200 OK")
        eventually(lambda: web.connections == 3)
        for oldest in opened:
            wire = stack.enter_context(closing(web.connect(GET)))
            assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")
            assert rest(oldest) == b""
        assert web.connections == 3


def _has(web: Web, connections: int) -> bool:
    return web.connections == connections


@limits(connections=3)
@pytest.mark.parametrize(
    "slow",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["body", "chunked body", "unread answer"],
)
def test_slow_clients_keep_nobody_out(web: Web, slow: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Of the connections that wait for their clients, those that have waited longest are closed early."""
    with ExitStack() as stack:
        for number in range(9):
            stack.enter_context(closing(web.connect(slow)))
            eventually(partial(_has, web, min(number + 1, 3)))
        for _ in range(2):
            wire = stack.enter_context(closing(web.connect(GET)))
            assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert web.connections == 3
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


@limits(connections=2)
def test_busy_connections_are_kept(web: Web) -> None:
    """If all are busy, the new one is closed."""
    busy = GET.replace(b"/ ", b"/wait ")
    with closing(web.connect(busy)) as first, closing(web.connect(busy)) as second:
        eventually(lambda: web.paths == ["/wait", "/wait"])
        with closing(web.connect(GET)) as third:
            assert rest(third) == b""
        web.go.set()
        assert first.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert second.recv(65536).startswith(b"HTTP/1.1 200 OK")


# ---- anything


LINES = [
    *(
        b"GET / HTTP/1.1",
        b"POST / HTTP/1.1",
        b"POST / HTTP/1.0",
        b"HEAD / HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"POST /early HTTP/1.1",
    ),
    *(b"CONNECT x:80 HTTP/1.1", b"GET http://x/ HTTP/1.1", b"PRI * HTTP/2.0"),
]
HEADERS = [
    *(b"Host: x", b"Connection: close", b"Connection: upgrade\r\nUpgrade: websocket", b"Expect: 100-continue"),
    *(b"Content-Length: 5", b"Content-Length: 0", b"Transfer-Encoding: chunked", b" folded: y"),
]
BODIES = [b"", b"hello", b"5\r\nhello\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\n"]
REQUESTS = st.builds(
    lambda line, headers, body: b"\r\n".join([line, b"Host: x", *headers, b"", body]),
    st.sampled_from(LINES),
    st.lists(st.sampled_from(HEADERS), max_size=3),
    st.sampled_from(BODIES),
)
PIECES = st.one_of(REQUESTS, REQUESTS, st.sampled_from(LINES + HEADERS + BODIES), st.binary(max_size=20))


def survive_anything(web: Web, requests: int) -> None:
    """Send random sequences of pieces; each is answered or not, and the next client is served."""

    @settings(max_examples=requests)
    @given(st.lists(PIECES, min_size=1, max_size=6))
    def survive(pieces: list[bytes]) -> None:
        with closing(web.connect(b"".join(pieces))) as wire:
            wire.shutdown(socket.SHUT_WR)
            answers = rest(wire)
            assert answers == b"" or answers.startswith(b"HTTP/1.1 ")
            assert b"HTTP/1.1 5" not in answers

    survive()
    with closing(web.connect(GET)) as wire:
        assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")
    eventually(lambda: web.connections == 0)


@limits(header_s=5.0, body_s=5.0)
def test_no_bytes_break_a_server(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """No input causes an internal error or leaves a connection open."""
    survive_anything(web, 150)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
