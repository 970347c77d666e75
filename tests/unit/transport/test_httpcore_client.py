"""The HTTP client; how it classifies failures of requests is tested with `tests/unit/targets/test_outcomes.py`."""

from __future__ import annotations

from contextlib import closing

import httpcore
import pytest

from crossdock.reading.transport.http_answers_and_errors import AmbiguousError, ExpiredError
from crossdock.reading.transport.httpcore_client import HttpClient

OK = [b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\ncontent-length: 2\r\n\r\nok"]


def client(*response: bytes, base_url: str = "http://127.0.0.1") -> HttpClient:
    return HttpClient(base_url, headers={"x-key": "k"}, network=httpcore.MockBackend(list(response)))


def test_lines_of_one_header_are_joined() -> None:
    """Their names are in lower case."""
    with closing(client(*OK)) as http:
        answer = http.send("GET", "/a", params={"b": "c d"})
    assert (answer.status, answer.headers["x-a"], answer.body) == (200, "1, 2", b"ok")


def test_an_exchange_keeps_header_lines() -> None:
    """Names and order are those of the response."""
    with closing(client(*OK)) as http:
        status, headers, body = http.send_and_read_response(
            httpcore.Request("GET", "http://127.0.0.1/", headers={"host": "x"})
        )
    assert (status, body) == (200, b"ok")
    assert headers[:2] == [(b"X-A", b"1"), (b"x-a", b"2")]


def test_a_request_whose_time_is_over_is_not_sent() -> None:
    """Nothing is written before the first check."""
    with closing(client(*OK)) as http, pytest.raises(ExpiredError, match="before it was sent"):
        http.send("POST", "/", body=b"x", may_leave=lambda: False)


def test_a_request_that_was_sent_in_part_is_ambiguous() -> None:
    """The second write is not allowed any more."""
    allowed = iter([True, False])
    with closing(client(*OK)) as http, pytest.raises(AmbiguousError, match="before all of it was sent"):
        http.send("POST", "/", body=b"x", may_leave=lambda: next(allowed))
