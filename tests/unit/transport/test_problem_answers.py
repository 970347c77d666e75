"""Problem documents and other error answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.printable import printable
from crossdock.reading.transport.http_answers_and_errors import (
    MAX_ERRORS,
    MAX_POINTER,
    MAX_TEXT,
    Problem,
    parse_error_answer,
)
from crossdock.values import exact_json


@pytest.mark.parametrize(
    ("document", "kind", "message", "pointers"),
    [
        pytest.param({"title": "Bad", "detail": "No name"}, "about:blank", "No name", (), id="the detail"),
        pytest.param({"type": "urn:x", "title": "Bad"}, "urn:x", "Bad", (), id="the title"),
        pytest.param({}, "about:blank", "HTTP 422", (), id="nothing"),
        pytest.param(
            {"detail": "Bad", "errors": [{"detail": "no a", "pointer": "#/a"}, {"detail": "no b", "pointer": "/b"}]},
            "about:blank",
            "no a; no b",
            ("/a", "/b"),
            id="each error",
        ),
        pytest.param(
            {"title": "Bad Request", "o:errorDetails": [{"detail": "no item", "o:errorPath": "item.items[0]"}]},
            "about:blank",
            "no item",
            (),
            id="Oracle's details",
        ),
        pytest.param({"detail": 5, "errors": [7, {"pointer": "/a"}]}, "about:blank", "HTTP 422", ("/a",), id="types"),
    ],
)
def test_a_problem_document(document: object, kind: str, message: str, pointers: tuple[str, ...]) -> None:
    """The most specific text becomes the message; members of a wrong type are ignored."""
    assert parse_error_answer(422, exact_json.dumps(document)) == Problem(422, kind, message, pointers)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"text"', b'{"a":1,"a":2}'])
def test_any_other_body_has_only_its_status(body: bytes) -> None:
    """Gateways send what they like."""
    assert parse_error_answer(502, body).message == "HTTP 502"


@given(st.text(max_size=30), st.integers(0, 2 * MAX_ERRORS))
def test_texts_are_bounded_and_printable(text: str, count: int) -> None:
    """Whatever the texts contain, the bounds hold and nothing unprintable remains."""
    errors = [{"detail": text * 20, "pointer": "/" + text * 20}] * count
    problem = parse_error_answer(400, exact_json.dumps({"detail": text * 500, "errors": errors}))
    assert len(problem.message) <= MAX_TEXT
    assert len(problem.pointers) <= MAX_ERRORS
    assert all(len(pointer) <= MAX_POINTER for pointer in problem.pointers)
    assert all(printable(each) == each for each in (problem.message, *problem.pointers))
