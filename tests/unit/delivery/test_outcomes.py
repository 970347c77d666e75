"""What answers and failures mean: by exact class, none left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import httpcore
import httpx
import pytest

from crossdock.delivery import outcomes
from crossdock.delivery.outcomes import Outcome
from crossdock.transport.http import AmbiguousError, Answer, HttpClient, NotSentError

NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError", "InvalidURL"}
NEVER_RAISED_BY_US = {"HTTPStatusError", "TooManyRedirects"}  # we ask for neither


def exceptions(module: object) -> list[type[Exception]]:
    return [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, Exception)]


def client(handler: Callable[[httpx.Request], httpx.Response], **limits: float) -> HttpClient:
    return HttpClient("http://127.0.0.1", headers={}, transport=httpx.MockTransport(handler), **limits)  # type: ignore[arg-type]  # only floats are given


def answer(status: int, body: bytes = b"{}", **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return outcomes.of_answer(Answer(status, httpx.Headers(named), body))


@pytest.mark.parametrize("kind", exceptions(httpx), ids=lambda kind: kind.__name__)
def test_every_exception_of_httpx_is_classified(kind: type[Exception]) -> None:
    """An exception is either surely not sent or ambiguous; none escapes as itself."""
    if kind.__name__ in NEVER_RAISED_BY_US:
        return

    def fail(request: httpx.Request) -> httpx.Response:
        if issubclass(kind, httpx.RequestError):
            raise kind("x", request=request)
        raise kind("x") if "message" in str(inspect.signature(kind)) else kind()

    http = client(fail)
    wanted: type[NotSentError | AmbiguousError] = NotSentError if kind.__name__ in NOT_SENT else AmbiguousError
    with pytest.raises(wanted) as told:
        http.send("POST", "/x", body=b"{}")
    assert isinstance(told.value, NotSentError | AmbiguousError)
    assert outcomes.of_failure(told.value).kind == ("unavailable" if wanted is NotSentError else "in_doubt")
    http.close()


def test_httpx_translates_every_exception_of_httpcore() -> None:
    """httpcore's own exceptions have a name of httpx, so none of them can come through."""
    from httpx._transports.default import _load_httpcore_exceptions

    translated = set(_load_httpcore_exceptions())
    concrete = {kind for kind in exceptions(httpcore) if kind is not httpcore.ConnectionNotAvailable}
    assert concrete <= translated


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
        pytest.param("Sun Nov  6 08:49:47 1994", "Sun, 06 Nov 1994 08:49:37 GMT", None, id="asctime has no zone"),
        pytest.param("Sun, 06 Nov 1994 08:49:30 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 0.0, id="already over"),
        pytest.param("Sun, 06 Nov 1994 08:49:47 GMT", "", None, id="date without a Date"),
        pytest.param("soon", "", None, id="no sense"),
        pytest.param("-5", "", None, id="negative"),
    ],
)
def test_retry_after_in_its_forms(value: str, date: str, seconds: float | None) -> None:
    """A date counts from the answer's own Date; what makes no sense is as if it were not there."""
    headers = httpx.Headers({"retry-after": value} | ({"date": date} if date else {}))
    assert outcomes.retry_after_s(Answer(429, headers, b"")) == seconds


def test_an_endless_answer_is_cut() -> None:
    """An answer beyond the limit is ambiguous, and memory stays bounded."""
    http = client(lambda _request: httpx.Response(200, content=b"x" * 1000), max_response_bytes=100)
    with pytest.raises(AmbiguousError, match="more than 100 bytes"):
        http.send("GET", "/")
    http.close()
