"""Waits that APIs state in the text of a refusal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crossdock.pacing.throttled_waits import stated_wait, throttled_wait_s


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
    assert throttled_wait_s({}, text.encode()) == wait_s


def test_the_header_counts_first() -> None:
    """Retry-After is the standard."""
    assert throttled_wait_s({"retry-after": "3"}, b"retry after 9 seconds") == 3.0


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
    assert stated_wait(value) == (None if wait_s is None else timedelta(seconds=wait_s))


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
    assert throttled_wait_s(headers, text.encode()) == wait_s
