"""Waits that APIs state in the text of a refusal."""

from __future__ import annotations

import pytest

from crossdock.pacing.answer_headers import stated_wait_s, wait_stated_by_answer_s


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("API calls quota exceeded! Maximum admitted 100 per Minute. Please retry after 1500 milliseconds", 1.5),
        ('{"message": "Too many requests, try again in 2.5 seconds"}', 2.5),
        ("Wait 2 min.", 120.0),
        ("retry after 99999999 seconds", 900.0),
        ("limit of 100 requests in 60 seconds exceeded", None),
        ("retry later", None),
        ("retry after 3 moments", None),
    ],
)
def test_a_text_states_a_wait(text: str, wait_s: float | None) -> None:
    """By a number with a unit after words that ask to wait; other numbers are none."""
    assert wait_stated_by_answer_s({}, text.encode()) == wait_s


@pytest.mark.parametrize(
    ("name", "value", "wait_s"),
    [
        ("x-rate-limit-reset", "23", 23.0),  # ShipStation
        ("x-ratelimit-reset", "86400", 900.0),
        ("ratelimit-reset", "0", 0.0),
        ("x-ratelimit-reset", "1767225660", 60.0),  # GitHub
        ("x-ratelimit-reset", "1767225500", 0.0),
        ("x-ratelimit-reset", "1.5", None),
        ("x-ratelimit-reset", "Thu, 01 Jan 2026 00:01:00 GMT", None),
    ],
)
def test_the_reset_of_the_limit_states_a_wait(name: str, value: str, wait_s: float | None) -> None:
    """In seconds from now, or since 1970 by the clock of the API; a text and Retry-After count before it."""
    headers = {name: value, "date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    assert wait_stated_by_answer_s(headers, b"") == wait_s
    assert wait_stated_by_answer_s(headers, b"retry after 9 seconds") == 9.0
    assert wait_stated_by_answer_s(headers | {"retry-after": "3"}, b"retry after 9 seconds") == 3.0


def test_the_header_counts_first() -> None:
    """Retry-After is the standard."""
    assert wait_stated_by_answer_s({"retry-after": "3"}, b"retry after 9 seconds") == 3.0


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("18 seconds", 18),
        ("0.5", 0.5),
        ("0", 0),
        ("2 minutes", 120),
        ("99999", 900),
        ("soon", None),
        ("", None),
    ],
)
def test_a_member_states_a_wait(value: str, wait_s: float | None) -> None:
    """As a number of seconds, or with a unit; any other text states none."""
    assert stated_wait_s(value) == wait_s


@pytest.mark.parametrize(
    ("headers", "text", "wait_s"),
    [
        ({"x-rate-limit-time-reset-ms": "1500"}, "", 1.5),
        ({"x-rate-limit-time-reset-ms": "15000", "retry-after": "3"}, "", 3.0),
        ({"x-rate-limit-time-reset-ms": "15000"}, "try again in 2 seconds", 2.0),
        ({"x-rate-limit-time-reset-ms": "99999999"}, "", 900.0),
        ({"x-rate-limit-time-reset-ms": "-5"}, "", None),
    ],
)
def test_the_rest_of_the_window_is_the_wait_if_nothing_else_is_stated(
    headers: dict[str, str], text: str, wait_s: float | None
) -> None:
    """BigCommerce states it in milliseconds with every answer."""
    assert wait_stated_by_answer_s(headers, text.encode()) == wait_s
