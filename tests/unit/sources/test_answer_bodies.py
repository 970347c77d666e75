"""Bodies of answers as JSON, in any encoding."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.sources import retried_requests
from crossdock.reading.transport.http_answers_and_errors import Answer

ODD = '{"name": "Müller canary"}'


def body(content: bytes, content_type: str = "application/json") -> Answer:
    return Answer(200, {"content-type": content_type}, content)


@pytest.mark.parametrize("content", [ODD.encode(), ODD.encode("utf-8-sig")])
def test_utf_8_is_read(content: bytes) -> None:
    """With and without a byte order mark."""
    assert retried_requests.parsed_json_and_unreadable_reason(body(content)) == (json.loads(ODD), "")


def test_an_empty_body_has_no_value() -> None:
    """As that of HTTP 204."""
    assert retried_requests.parsed_json_and_unreadable_reason(body(b"")) == (None, "")


@pytest.mark.parametrize(
    ("content", "content_type", "says"),
    [
        (ODD.encode("latin-1"), "application/json", "byte 12 is not UTF-8, which JSON must be (RFC 8259)"),
        (ODD.encode("latin-1"), 'a/b; charset="ISO-8859-1"', "; its content type declares iso8859-1"),
        (ODD.encode("latin-1"), "a/b; charset=utf8", "is not UTF-8, which JSON must be (RFC 8259)"),
        (ODD.encode("latin-1"), "a/b; charset=canary", "is not UTF-8, which JSON must be (RFC 8259)"),
        (ODD.encode("utf-16"), "", "it is UTF-16"),
        (ODD.encode("utf-16-le"), "", "it is UTF-16"),
        (ODD.encode("utf-16-be"), "", "it is UTF-16"),
        (b"\n <HTML>canary", "application/json", "it is an HTML page"),
        (b"canary", "text/html", "it is an HTML page"),
        (b"<?xml version='1.0'?><canary/>", "", "it is XML"),
        (b'{"canary": ', "", "Expecting value"),
    ],
)
def test_other_bodies_are_named(content: bytes, content_type: str, says: str) -> None:
    """By their kind and place, with nothing of their text."""
    value, reason = retried_requests.parsed_json_and_unreadable_reason(body(content, content_type))
    assert (value, says in reason, "canary" in reason) == (None, True, False)


def test_half_of_a_character_is_no_text() -> None:
    """A text with a lone surrogate does not refuse the answer; in the name of a member it does."""
    value, reason = retried_requests.parsed_json_and_unreadable_reason(body(b'[{"a": "x\\ud83d"}, {"a": "y"}]'))
    assert (type(value[0]["a"]), value[1], reason) == (dict, {"a": "y"}, "")
    value, reason = retried_requests.parsed_json_and_unreadable_reason(body(b'{"canary\\ud83d": 1}'))
    assert (value, "a lone surrogate" in reason, "canary" in reason) == (None, True, False)


@given(st.binary() | st.text().map(str.encode), st.text())
def test_any_body_is_a_value_or_a_reason(content: bytes, content_type: str) -> None:
    """It never raises."""
    value, reason = retried_requests.parsed_json_and_unreadable_reason(body(content, content_type))
    assert not (reason and value is not None)
