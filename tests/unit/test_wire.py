"""JSON in and out, exact."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock import wire

exact = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | exact | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_back_equal(value: Any) -> None:
    """Any JSON value comes back equal, whichever way it is read, and its bytes are the same the second time."""
    body = wire.dumps(value)
    assert wire.loads(body) == value
    assert repr(wire.loads_own(body.decode())) == repr(wire.loads(body))
    assert wire.dumps(wire.loads(body)) == body


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(Decimal("6.0"), "6", id="no trailing zeros"),
        pytest.param(Decimal("6E0"), "6", id="no exponent"),
        pytest.param(Decimal("1E+3"), "1000", id="exponent spelled out"),
        pytest.param(Decimal("-0.00"), "0", id="no minus zero"),
        pytest.param(Decimal("0.10"), "0.1", id="fraction"),
        pytest.param(Decimal("123456789012345.6789"), "123456789012345.6789", id="all digits"),
    ],
)
def test_one_number_has_one_text(value: Decimal, text: str) -> None:
    """Equal decimals have equal bytes, so they have equal fingerprints."""
    assert wire.dumps(value).decode() == text


def test_keys_are_sorted_and_nothing_is_escaped_in_vain() -> None:
    """One object has one text."""
    assert wire.dumps({"b": 1, "a": "é\u2028"}) == '{"a":"é\u2028","b":1}'.encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":1,"a":2}', id="member twice"),
        pytest.param(b"[NaN]", id="NaN"),
        pytest.param(b"[-Infinity]", id="infinity"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'"\\ud800"', id="half a character"),
        pytest.param(b"[" * 100_000, id="too deep"),
        pytest.param(b"[1e99999999999999999999]", id="exponent beyond all"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    """Whatever another parser might let pass is a ValueError."""
    with pytest.raises(ValueError):
        wire.loads(body)


@pytest.mark.parametrize("value", [1.5, {1, 2}, object(), Decimal("NaN"), datetime(2026, 1, 1)])  # noqa: DTZ001
def test_what_has_no_exact_form_is_not_written(value: object) -> None:
    """A float can never slip onto the wire."""
    with pytest.raises((TypeError, ValueError)):
        wire.dumps(value)


def test_times_are_utc_and_days_are_plain() -> None:
    """An instant is written in UTC whatever zone it came in."""
    east = datetime(2026, 3, 29, 3, 0, tzinfo=timezone(timedelta(hours=2)))
    assert wire.dumps([east, date(2026, 3, 29), datetime(2026, 1, 1, tzinfo=UTC)]) == (
        b'["2026-03-29T01:00:00Z","2026-03-29","2026-01-01T00:00:00Z"]'
    )
