"""An HTTP server in a thread of this process: uvicorn, with deadlines for connections and unambiguous framing.

It uses uvicorn's h11 protocol, so that all machines parse requests alike. Errors are problem documents (RFC 9457).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from operator import itemgetter
from typing import Any, ClassVar, Literal

import h11
import uvicorn
from msgspec import Struct
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from crossdock.errors import ConfigError

MEDIA_TYPE = "application/problem+json"


def problem_response(
    status: int,
    detail: str,
    *,
    kind: str = "about:blank",
    headers: Mapping[str, str] | None = None,
    **members: object,
) -> Response:
    """Make a problem document as a response; *members* extend it (RFC 9457 section 3.2)."""
    document = {"type": kind, "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **members}
    return Response(json.dumps(document), status, headers, MEDIA_TYPE)


_DEFECTS = logging.getLogger("crossdock.serving")
_DEFECTS.setLevel(logging.ERROR)  # uvicorn warns of each malformed request, with which anybody could fill the log
_DEFECTS.addFilter(  # a request that is cancelled at the end of a server is none, and uvicorn has logged how many are
    lambda record: record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)
)
_Awaited = tuple[Literal["header section", "body"], object]  # and the request cycle before it or its own


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """Time limits for clients in seconds, and the number of connections."""

    header_s: float = 30.0  # from the connection or the first byte of a request to the end of its header section
    body_s: float = 60.0  # from there to the end of its body
    answer_s: float = 60.0  # for the client to read the rest of a response once it falls behind
    connections: int | None = None  # one more closes the one that has waited longest for its client


class LimitedConnection(H11Protocol):
    """A connection that is closed when its client exceeds the `limits`; it answers 408 if a request is incomplete."""

    limits: ClassVar[ConnectionLimits]
    malformed: Callable[[], None]  # called for each request that is not HTTP
    opened_at: float  # by the clock of the event loop
    _part_since: float  # when the client was due with the next part, or to read what was sent
    _awaited: _Awaited | None = None
    _request_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.logger = _DEFECTS
        # Writing is paused exactly while data waits for the client. At its limit, only TLS pauses already.
        transport.set_write_buffer_limits(1 if transport.get_extra_info("sslcontext") else 0)
        self.opened_at = self._part_since = self.loop.time()
        self._close_longest_waiting_if_full()
        self._set_request_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._request_timer, self._answer_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_request_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._set_request_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._part_since = self.loop.time()
        self._answer_timer = self.loop.call_later(self.limits.answer_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        assert self._answer_timer is not None
        self._answer_timer.cancel()

    @property
    def waiting_for_client_since(self) -> float | None:
        """When it began to wait for its client to send or to read; None while its request is processed."""
        first: bool = self.cycle is None
        if first or self.cycle.response_complete:
            return self.opened_at
        is_due = self.conn.their_state is h11.SEND_BODY or self.flow.write_paused
        return self._part_since if is_due else None

    def _close_longest_waiting_if_full(self) -> None:
        """Close the connection that has waited longest for its client if there are too many, or this one if none does.

        So clients that send slowly, or do not read, do not keep others out.
        """
        limit = self.limits.connections
        if limit is None:
            return
        others = [each for each in self.connections if isinstance(each, LimitedConnection) and each is not self]
        open_ = [each for each in others if not each.transport.is_closing()]
        if len(open_) >= limit:
            waiting = [(since, each) for each in open_ if (since := each.waiting_for_client_since) is not None]
            _, longest = min(waiting, key=itemgetter(0), default=(0.0, self))
            longest.transport.abort()

    def _set_request_deadline(self) -> None:
        """Set the deadline for what the client must send next. Sending a part of it does not extend the deadline."""
        awaited = self._awaited_part()
        if awaited == self._awaited:
            return
        self._awaited, self._part_since = awaited, self.loop.time()
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        if awaited is not None and not self.transport.is_closing():
            limit_s = self.limits.body_s if awaited[0] == "body" else self.limits.header_s
            self._request_timer = self.loop.call_later(limit_s, self._time_out, awaited[0], limit_s)

    def _awaited_part(self) -> _Awaited | None:
        if self.conn.their_state is h11.SEND_BODY:
            return "body", self.cycle
        first = self.cycle is None
        if self.conn.their_state is h11.IDLE and (first or self.conn.trailing_data[0]):
            return "header section", self.cycle
        return None  # uvicorn has a timeout for idle connections

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the signature is uvicorn's
        self.malformed()
        self._answer_error_and_close(HTTPStatus.BAD_REQUEST, "This is not a valid HTTP/1.1 request (RFC 9112).")

    def _time_out(self, part: str, limit_s: float) -> None:
        if part == "body" or self.conn.trailing_data[0]:
            detail = f"The {part} of the request was not complete within {limit_s:g} s."
            self._answer_error_and_close(HTTPStatus.REQUEST_TIMEOUT, detail)
        else:
            self._close()

    def _answer_error_and_close(self, status: HTTPStatus, detail: str) -> None:
        """Answer in place of the application, unless it has already started to answer, and close the connection."""
        if self.cycle is not None:
            # Otherwise it would send until the event loop reports the lost connection.
            self.cycle.disconnected = True
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            response = problem_response(status, detail, headers={"connection": "close"})
            to_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            events = (
                h11.Response(status_code=status, headers=response.raw_headers, reason=status.phrase),
                h11.Data(data=b"" if to_head else bytes(response.body)),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event))
        self._close()

    def _close(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()


def make_uvicorn_config(
    app: ASGIApp,
    limits: ConnectionLimits,
    protocol: type[LimitedConnection] = LimitedConnection,
    *,
    malformed: Callable[[], None] = lambda: None,
    **more: Any,
) -> uvicorn.Config:
    """Make the configuration for *app*, without logs of requests. *malformed* is called for what is not HTTP."""
    return uvicorn.Config(
        _refuse_ambiguous_framing(app),
        interface="asgi3",
        http=type(protocol.__name__, (protocol,), {"limits": limits, "malformed": staticmethod(malformed)}),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,  # uvicorn would believe those of any process of this machine
        **more,
    )


def _refuse_ambiguous_framing(app: ASGIApp) -> ASGIApp:
    """Refuse requests whose framing is ambiguous and close the connection (RFC 9112 section 6.3)."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        await (_framing_problem_response(scope) or app)(scope, receive, send)

    return checked


def _framing_problem_response(scope: Scope) -> ASGIApp | None:
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" in names:
        detail = "Content-Length and Transfer-Encoding exclude each other. Send one of them."
    elif scope["http_version"] == "1.0":
        detail = "HTTP/1.0 has no Transfer-Encoding. Send Content-Length."  # RFC 9112 section 6.1
    else:
        return None
    return problem_response(400, detail, headers={"connection": "close"})


_TICK_S = 0.1  # as uvicorn; it renews the date of answers


class StoppableServer(uvicorn.Server):
    """uvicorn polls a flag ten times a second and pauses before it ends: tests stop hundreds of servers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End the server after the requests in progress; from any thread, or from the handler of a signal."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def main_loop(self) -> None:
        self._loop, ticks = asyncio.get_running_loop(), 0
        while not await self.on_tick(ticks):
            ticks += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in (*self.servers, *(sockets or ())):
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for _ in range(3):  # idle connections end in the next rounds of the loop
            await asyncio.sleep(0)
        if self.server_state.connections or self.server_state.tasks:
            # The second half of the time is for requests that are processed.
            for_clients_s = (self.config.timeout_graceful_shutdown or 0) / 2
            asyncio.get_running_loop().call_later(for_clients_s, self._abort_slow_connections)
            await super().shutdown(sockets=sockets)

    def _abort_slow_connections(self) -> None:
        for each in list(self.server_state.connections):
            if isinstance(each, LimitedConnection) and each.waiting_for_client_since is not None:
                each.transport.abort()


_STARTS_WITHIN_S = 10.0


class ServerLimits(Struct, frozen=True, kw_only=True):
    """How much of this machine the clients of a server may use, and how long it takes to stop.

    Attributes:
        accepted_at_once: Connections that are accepted before the first is counted.
        queued: Connections that wait in the kernel to be accepted.
        stops_within_s: Seconds for requests in progress at the end.
    """

    clients: ConnectionLimits
    accepted_at_once: int
    queued: int
    stops_within_s: int


@contextmanager
def serve_in_thread(
    app: ASGIApp,
    limits: ServerLimits,
    host: str,
    port: int,
    *,
    name: str,
    address_error: Callable[[OSError], ConfigError],
    malformed: Callable[[], None] = lambda: None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Serve *app* and yield the base address. *port* 0 takes a free one, and *host* ``0.0.0.0`` all addresses.

    *address_error* makes the error of an address that is not available. *malformed* is called for each request that is
    not HTTP, in the thread of the server.
    """
    with _open_listener(host, port, address_error) as listener:
        server = _Server(app, limits, malformed, tls)
        thread = threading.Thread(target=server.run, args=([listener],), name=name, daemon=True)
        thread.start()
        try:
            if not server.is_up.wait(_STARTS_WITHIN_S):
                raise RuntimeError(f"the server {name!r} did not start within {_STARTS_WITHIN_S:.0f} s")
            address, bound = listener.getsockname()[:2]
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://[{address}]:{bound}" if ":" in address else f"{scheme}://{address}:{bound}"
        finally:
            server.stop()
            thread.join()


class _Server(StoppableServer):
    def __init__(
        self, app: ASGIApp, limits: ServerLimits, malformed: Callable[[], None], tls: ssl.SSLContext | None
    ) -> None:
        backlog, stops_within_s = limits.accepted_at_once, limits.stops_within_s
        made = make_uvicorn_config(
            app, limits.clients, malformed=malformed, backlog=backlog, timeout_graceful_shutdown=stops_within_s
        )
        super().__init__(made)
        self.is_up, self._limits, self._tls = threading.Event(), limits, tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.ssl = self._tls
        if self._tls is not None:
            loop = asyncio.get_running_loop()
            # uvicorn has no setting for it, and asyncio waits for a minute
            create_server = partial(loop.create_server, ssl_handshake_timeout=self._limits.clients.header_s)
            loop.create_server = create_server  # type: ignore[method-assign]  # this thread's own loop
            for each in sockets or ():
                if isinstance(each, _Listener):
                    each.limit_handshakes(self._limits.accepted_at_once, self._socket_numbers_after_handshake)
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            listener.listen(self._limits.queued)
        self.is_up.set()

    def _socket_numbers_after_handshake(self) -> set[int]:
        connections = list(self.server_state.connections)
        transports = [each.transport for each in connections if isinstance(each, LimitedConnection)]
        found = (each.get_extra_info("socket") for each in transports)
        return {each.fileno() for each in found if each is not None}  # one that ends has none


class _Listener(socket.socket):
    """A listening socket that bounds the TLS handshakes in progress, which `ConnectionLimits` do not count."""

    _most: int | None = None

    def limit_handshakes(self, most: int, sockets_after_handshake: Callable[[], set[int]]) -> None:
        """Let *most* handshakes be in progress. *sockets_after_handshake* returns those that have ended."""
        self._most, self._done, self._begun = most, sockets_after_handshake, list[socket.socket]()

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        if self._most is not None:
            done = self._done()
            self._begun = [each for each in self._begun if each.fileno() >= 0 and each.fileno() not in done]
            self._begun.append(accepted)
            if len(self._begun) > self._most:
                with suppress(OSError):  # the client has gone
                    self._begun.pop(0).shutdown(socket.SHUT_RDWR)
        return accepted, address


def _open_listener(host: str, port: int, address_error: Callable[[OSError], ConfigError]) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family)
    except OSError as error:
        raise address_error(error) from error
    # With the protocol named, because asyncio sets TCP_NODELAY only on such sockets.
    return _Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=bound.detach())
