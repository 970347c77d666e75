"""Why an API refused a request, in words that may be shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.printable import MASK, mask_secrets
from crossdock.reading.sources.errors_in_api_answers import (
    SHOWN,
    redacted_error_message_in_json,
    redacted_error_message_of_body,
)

KEY = "canary-1234567-key@example.com"
JSON, PROBLEM, HTML, PLAIN = "application/json", "application/problem+json", "Text/HTML; charset=utf-8", "text/plain"


def shown(body: object, content_type: str = JSON) -> str:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return redacted_error_message_of_body(raw, content_type, lambda text: mask_secrets(text, {KEY}))


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (PROBLEM, {"type": "about:blank", "title": "Bad", "detail": "limit is above 250"}, "limit is above 250"),
        (PROBLEM, {"title": "Unprocessable", "status": 422}, "Unprocessable"),
        (JSON, {"error": "missing scope"}, "missing scope"),
        (JSON, {"error": "invalid_token", "error_description": "it has expired"}, "it has expired"),
        (JSON, {"error": {"code": 190, "message": "no such shop"}}, "no such shop"),
        (JSON, {"errors": "[API] Invalid API key"}, "[API] Invalid API key"),
        (JSON, {"errors": [{"detail": "a"}, {"message": "b"}, "c", "d"]}, "a; b; c"),
        (JSON, {"errors": {"sku": ["is taken", "is short"], "price": "is negative", "n": 1}},
         "sku: is taken; sku: is short; price: is negative"),
        (JSON, {"title": "Bad Request", "o:errorDetails": [{"detail": "no item"}]}, "no item"),
        (JSON, {"ErrorNumber": 10, "Message": "The order is locked"}, "The order is locked"),
        (JSON, {"errors": {"sku": {"name": "Jane"}}}, ""),
        (JSON, {"data": {"message": "x"}, "status": "failed"}, ""),
        (JSON, ["a", "b"], "a; b"),
        (JSON, "not JSON", ""),
        (HTML, "<html><head><TITLE>403 &lt;Forbidden&gt;\n </title></head>Jane", "403 <Forbidden>"),
        (HTML, "<html><body>Jane</body>", ""),
        (PLAIN, "Rate plan expired\n", "Rate plan expired"),
        ("", "Jane", ""),
        (JSON, {"error": "jane@example.com or +49 170 1234567; 4711"}, "(personal) or (personal); 4711"),
        (JSON, {"error": "\x1b[31mred"}, "\\x1b[31mred"),
    ],
)  # fmt: skip
def test_each_form_of_error_has_its_reason(content_type: str, body: object, message: str) -> None:
    """What is not a message is not shown."""
    assert shown(body, content_type) == message


@given(
    before=st.integers(0, 2 * SHOWN),
    form=st.sampled_from([
        (PROBLEM, '{"detail": "%s"}'), (JSON, '{"error": {"message": "%s"}}'), (JSON, '{"errors": {"a": ["%s"]}}'),
        (HTML, "<title>%s</title>"), (PLAIN, "%s"),
    ]),
)  # fmt: skip
def test_credentials_are_removed_before_anything_is_cut(before: int, form: tuple[str, str]) -> None:
    """Wherever a long message ends, and although a credential looks like personal data, no part of it is left."""
    content_type, template = form
    text = shown(template % (" " * (before % 7) + "x" * before + KEY), content_type)
    assert len(text) <= SHOWN
    assert "canary" not in text
    assert MASK in text or len(text) == SHOWN


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"__typename": "OrderStateTransitionError", "message": "cannot be cancelled"}, "cannot be cancelled"),
        ({"order": None, "userErrors": [{"field": ["sku"], "message": "is taken"}]}, "is taken"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one; two"),
        ({"title": "no message"}, ""),
        (None, ""),
    ],
)
def test_what_a_mutation_answers_with_in_place_of_a_record_is_shown(result: object, said: str) -> None:
    """Errors as types of a union, as in Vendure, or in lists beside the record, as in Shopify; never data."""
    assert redacted_error_message_in_json({"data": {"result": result}}, str) == said
    assert (
        redacted_error_message_in_json({"errors": [{"message": "first"}], "data": {"result": result}}, str) == "first"
    )
