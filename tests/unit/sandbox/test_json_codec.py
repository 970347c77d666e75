from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.sandbox import strict_json

texts = st.text(st.characters(exclude_categories=["Cs"]))


scalars = (
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=4) | texts
)


values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)


@given(values)
def test_written_values_read_the_same(value: object) -> None:
    """Reading the canonical text gives an equal value, for our reader and for the standard library's."""
    text = strict_json.write_canonical(value)
    assert strict_json.read(text.encode()) == value
    assert json.loads(text, parse_float=Decimal) == value
    assert strict_json.write_canonical(strict_json.read(text.encode())) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("6.0", "6"),
        ("6E0", "6"),
        ("1.50E+3", "1500"),
        ("1E-4", "0.0001"),
        ("-0.0", "0"),
        ("0E5", "0"),
        ("0E999999999", "0"),
        ("-0E-999999999", "0"),
        ("-0.10", "-0.1"),
        ("123456789012345.6789", "123456789012345.6789"),
        ("100", "100"),
        ("0.1234567890123456789012345678901234567890", "0.123456789012345678901234567890123456789"),
    ],
)
def test_one_number_has_one_text(number: str, text: str) -> None:
    """Numbers are written in plain digits without trailing zeros, and never rounded."""
    assert strict_json.number_as_plain_digits(Decimal(number)) == text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"a":1', id="cut"),
        pytest.param(b'{"a":1}x', id="more behind it"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
        pytest.param(b'{"a":"\xff"}', id="not UTF-8"),
        pytest.param(b'{"a":1,"a":1}', id="repeated member"),
        pytest.param(b'{"o":{"a":1,"\\u0061":2}}', id="repeated member, escaped, inside"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b"[-Infinity]", id="infinity"),
        pytest.param(b'"\\ud800"', id="half a surrogate pair"),
        pytest.param(b'{"\\udc00":1}', id="half a surrogate pair in a name"),
        pytest.param(b"[" * 33 + b"]" * 33, id="one too deep"),
        pytest.param(b"[" * 100_000, id="far too deep"),
        pytest.param(b'{"a":' * 100_000, id="far too deep, objects"),
        pytest.param(b"1E99999999999999999999", id="exponent beyond bounds"),
        pytest.param(b"9" * 5000, id="5000 digits"),
    ],
)
def test_bad_json_is_refused(body: bytes) -> None:
    """Input that is not exact and unambiguous JSON is a ValueError, and no other error."""
    with pytest.raises(ValueError):
        strict_json.read(body)


def test_deepest_allowed_nesting_is_read() -> None:
    """32 levels are accepted."""
    assert strict_json.read(b"[" * 32 + b"]" * 32)


@pytest.mark.parametrize("value", [1.5, {"a": object()}, Decimal("NaN")])
def test_inexact_values_are_not_written(value: object) -> None:
    """Floats, NaN and unsupported types are a TypeError."""
    with pytest.raises(TypeError):
        strict_json.write_canonical(value)


@pytest.mark.parametrize("number", ["1E1001", "-1E-1001", "1E400000000", "1E-400000000"])
def test_a_number_with_a_huge_exponent_is_not_written(number: str) -> None:
    """An exponent beyond 1,000 is a ValueError."""
    with pytest.raises(ValueError, match="exponent beyond 1,000"):
        strict_json.write_canonical({"a": [Decimal(number)]})


@pytest.mark.parametrize("digits", [b"9" * 4_301, b"-" + b"9" * 4_301, b"9" * 1_000_000])
def test_a_whole_number_has_bounds(digits: bytes) -> None:
    """More than 4,300 digits are a ValueError, and 4,300 are read and written."""
    with pytest.raises(ValueError, match="^a number has more than 4,300 digits$"):
        strict_json.read(digits)
    most = b"-" + b"9" * 4_300
    assert strict_json.write_canonical(strict_json.read(most)).encode() == most
