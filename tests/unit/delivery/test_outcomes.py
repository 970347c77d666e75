"""What answers and failures mean: by exact class, none left out."""

from __future__ import annotations

import inspect
import time
import zlib
from typing import Any

import httpcore
import pytest

from crossdock.delivery import outcomes
from crossdock.delivery.outcomes import Outcome
from crossdock.transport.answers import AmbiguousError, Answer, NotSentError
from crossdock.transport.http import HttpClient

NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError"}
FAMILIES = {"NetworkError", "ProtocolError", "TimeoutException"}  # raised only as one of their members
RETRIED_INSIDE = {"ConnectionNotAvailable"}


class Network(httpcore.MockBackend):
    """A wire of *answer*; *error* is raised instead of its end."""

    def __init__(self, *answer: bytes, error: Exception | None = None) -> None:
        super().__init__(list(answer))
        self._error = error

    def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        stream = super().connect_tcp(*args, **options)
        read = stream.read

        def fails(max_bytes: int, timeout: float | None = None) -> bytes:
            if self._error and not stream._buffer:  # type: ignore[attr-defined]  # of the mock
                raise self._error
            return read(max_bytes, timeout)

        stream.read = fails  # type: ignore[method-assign]  # a mock's stream
        return stream


def client(network: Network, **limits: float) -> HttpClient:
    return HttpClient("http://127.0.0.1", headers={}, network=network, **limits)  # type: ignore[arg-type]  # only floats are given


def answer(status: int, body: bytes = b"{}", **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return outcomes.of_answer(Answer(status, named, body))


def exceptions() -> list[type[Exception]]:
    found = [kind for _, kind in inspect.getmembers(httpcore, inspect.isclass) if issubclass(kind, Exception)]
    return [kind for kind in found if kind.__name__ not in FAMILIES | RETRIED_INSIDE]


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_library_is_classified(kind: type[Exception]) -> None:
    """An exception is either surely not sent or ambiguous; none escapes as itself."""
    http = client(Network(error=kind("x")))
    wanted: type[NotSentError | AmbiguousError] = NotSentError if kind.__name__ in NOT_SENT else AmbiguousError
    with pytest.raises(wanted) as told:
        http.send("POST", "/x", body=b"{}")
    assert isinstance(told.value, NotSentError | AmbiguousError)
    assert outcomes.of_failure(told.value).kind == ("unavailable" if wanted is NotSentError else "in_doubt")
    http.close()


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind"),
    [
        pytest.param(201, b'{"id":"inv_1"}', {}, "delivered", id="created"),
        pytest.param(204, b"", {"location": "/p/inv_1"}, "delivered", id="no body but a location"),
        pytest.param(201, b'{"id":', {}, "in_doubt", id="success with a broken body"),
        pytest.param(400, b"{}", {}, "rejected", id="400"),
        pytest.param(403, b"{}", {}, "rejected", id="403"),
        pytest.param(404, b"{}", {}, "rejected", id="404"),
        pytest.param(409, b"{}", {}, "rejected", id="conflict"),
        pytest.param(409, b'{"type":"urn:idempotency-key-in-use"}', {}, "in_doubt", id="first attempt still runs"),
        pytest.param(422, b"<html>", {}, "rejected", id="422 without a document"),
        pytest.param(401, b"{}", {}, "unauthorized", id="401"),
        pytest.param(408, b"{}", {}, "in_doubt", id="408"),
        pytest.param(429, b"{}", {"retry_after": "7"}, "throttled", id="429"),
        pytest.param(500, b"{}", {}, "in_doubt", id="500"),
        pytest.param(502, b"<html>", {}, "in_doubt", id="502"),
        pytest.param(503, b"{}", {}, "in_doubt", id="503 that says nothing"),
        pytest.param(503, b"{}", {"retry_after": "1"}, "unavailable", id="503 that says when"),
        pytest.param(504, b"{}", {}, "in_doubt", id="504"),
        pytest.param(302, b"", {"location": "/elsewhere"}, "in_doubt", id="a redirect is never followed"),
    ],
)
def test_every_answer_has_one_meaning(status: int, body: bytes, headers: dict[str, str], kind: str) -> None:
    """Only an answer that says "not done" counts as not done."""
    assert answer(status, body, **headers).kind == kind


def test_a_problem_document_names_the_place() -> None:
    """The dead letter gets the pointer and the details, not the whole body."""
    body = b'{"title":"Invalid","status":7,"errors":[{"pointer":"#/items/0/quantity","detail":"too small"},5]}'
    told = answer(422, body)
    assert (told.reason, told.pointer, told.message) == ("rejected", "/items/0/quantity", "too small")


@pytest.mark.parametrize("body", [b"null", b"[]", b'{"title":5,"errors":"x","detail":null}', b"\xff", b"x" * 9000])
def test_an_answer_that_is_no_problem_document_is_read_all_the_same(body: bytes) -> None:
    """Gateways answer what they like."""
    assert answer(400, body).message == "HTTP 400"


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        pytest.param("7", "", 7.0, id="seconds"),
        pytest.param("99999", "", 900.0, id="absurd"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 10.0, id="date"),
        pytest.param("Sunday, 06-Nov-94 08:49:47 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 10.0, id="RFC 850 date"),
        pytest.param("Sun Nov  6 08:49:47 1994", "Sun, 06 Nov 1994 08:49:37 GMT", 10.0, id="asctime date"),
        pytest.param("Sun, 06 Nov 1994 08:49:30 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0.0, id="already over"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 GMT", "", None, id="date without a Date"),
        pytest.param("soon", "", None, id="no sense"),
        pytest.param("-5", "", None, id="negative"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 +99999999999999", "", None, id="a zone beyond all numbers"),
    ],
)
def test_retry_after_in_its_forms(value: str, date: str, seconds: float | None) -> None:
    """A date counts from the answer's own Date; what makes no sense is as if it were not there."""
    headers = {"retry-after": value} | ({"date": date} if date else {})
    assert outcomes.retry_after_s(Answer(429, headers, b"")) == seconds


HEAD = b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n"


def packed(body: bytes) -> bytes:
    gzip = zlib.compressobj(wbits=31)
    return gzip.compress(body) + gzip.flush()


@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        pytest.param(b"identity", b"x" * 1000, "more than 100 bytes", id="long"),
        pytest.param(b"gzip", packed(b"x" * 10_000_000), "more than 100 bytes", id="bomb"),
        pytest.param(b"gzip", packed(b"x" * 99)[:-9], "not whole", id="packed and cut"),
        pytest.param(b"gzip", b"no gzip at all", "broke off", id="not packed"),
        pytest.param(b"br", b"x", "answered in an encoding", id="another packing"),
    ],
)
def test_an_answer_that_cannot_be_taken_whole_is_ambiguous(encoding: bytes, body: bytes, told: str) -> None:
    """What is too long, cut or in no form that was asked for says nothing about what was done; memory stays bounded."""
    http = client(Network(HEAD % (encoding, len(body)), body), max_response_bytes=100)
    with pytest.raises(AmbiguousError, match=told):
        http.send("GET", "/")
    http.close()


def test_a_packed_answer_is_unpacked() -> None:
    """gzip is asked for, since pages of a shop shrink tenfold."""
    body = packed(b'{"id":"x"}')
    http = client(Network(HEAD % (b"gzip", len(body)), body))
    assert http.send("GET", "/").body == b'{"id":"x"}'
    http.close()


@pytest.mark.parametrize("address", ["http://127.0.0.1:port/", "http://[::1/"])
def test_what_is_no_address_is_not_sent(address: str) -> None:
    """Addresses of next pages come from other people's servers."""
    http = client(Network())
    with pytest.raises(NotSentError, match="no address"):
        http.send("GET", address)
    http.close()


def test_a_drip_of_bytes_ends_at_the_deadline() -> None:
    """A server that sends a byte now and then, even of its headers, holds a request no longer than its total time."""

    class Drip(Network):
        def __init__(self) -> None:
            super().__init__(*[b"x"] * 1000)

        def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
            stream = super().connect_tcp(*args, **options)
            read = stream.read

            def slow(max_bytes: int, timeout: float | None = None) -> bytes:
                time.sleep(0.01)
                return read(max_bytes, timeout)

            stream.read = slow  # type: ignore[method-assign]  # a mock's stream
            return stream

    http = client(Drip(), total_timeout_s=0.1)
    with pytest.raises(AmbiguousError, match="no whole answer in time"):
        http.send("GET", "/")
    http.close()
