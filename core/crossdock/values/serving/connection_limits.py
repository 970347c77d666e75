"""HTTP connections with deadlines. They use uvicorn's h11 protocol, so that all machines parse requests alike."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from operator import itemgetter
from typing import ClassVar, Literal

import h11
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from crossdock.values.serving.problem_responses import problem_response

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
