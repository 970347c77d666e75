"""The sandbox's own JSON reader and writer: exact numbers, and no ambiguous input."""

from __future__ import annotations

import json
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

MEDIA_TYPE = "application/json"
MAX_DEPTH = 32
MAX_DIGITS = 4_300  # of a whole number; Python's own limit, since reading one takes quadratic time
MAX_EXPONENT = 1_000  # of a number that is written, positive or negative; the limits of the resources are far below


def read(body: bytes) -> Any:
    """Read one JSON text. A number with a point or an exponent becomes a `Decimal`, any other an `int`.

    Raise ValueError for input that is not exact and unambiguous. Its message repeats nothing of the input.
    """
    try:
        value = json.loads(
            body.decode(),
            parse_float=Decimal,
            parse_int=_parse_integer_of_bounded_length,
            parse_constant=Decimal,
            object_pairs_hook=_object_without_repeated_names,
        )
        _raise_if_unacceptable_value(value, MAX_DEPTH)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeError:
        raise ValueError("not UTF-8, or a lone surrogate") from None
    except ArithmeticError:
        raise ValueError("a number has too large an exponent") from None
    return value


def _parse_integer_of_bounded_length(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS:,} digits")
    return int(digits)


def _object_without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object repeats a member name")
    return members


def _raise_if_unacceptable_value(value: Any, room: int) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("NaN and infinity are not valid JSON")
    elif isinstance(value, dict | list):
        if room == 0:
            raise ValueError("nested too deeply")
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _raise_if_unacceptable_value(inner, room - 1)


def write_canonical(value: Any) -> str:
    """Return the canonical text: sorted members, no white space, plain digits."""
    match value:
        case str():
            return encode_basestring(value)
        case Decimal():
            return number_as_plain_digits(value)
        case dict():
            return (
                "{"
                + ",".join(f"{encode_basestring(name)}:{write_canonical(value[name])}" for name in sorted(value))
                + "}"
            )
        case list():
            return "[" + ",".join(map(write_canonical, value)) + "]"
        case None | bool():
            return json.dumps(value)
        case int():
            return str(value)
    raise TypeError(f"{type(value).__name__} is not an exact JSON value")


def number_as_plain_digits(number: Decimal) -> str:
    """Return the plain digits, assembled from sign, digits and exponent so that no context rounds them."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("NaN and infinity are not JSON numbers")
    if not number:  # its exponent may ask for a gigabyte of zeros
        return "0"
    if abs(number.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"a number has an exponent beyond {MAX_EXPONENT:,}")
    figures = "".join(map(str, digits)).zfill(1 - exponent)
    if exponent < 0:
        figures = f"{figures[:exponent]}.{figures[exponent:]}".rstrip("0").rstrip(".")
    return "-" * sign + figures + "0" * exponent
