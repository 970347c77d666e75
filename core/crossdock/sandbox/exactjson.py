"""The sandbox's own JSON, apart from the client's: exact numbers in and out, nothing ambiguous let in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

MAX_DEPTH = 32


def read(body: bytes) -> Any:
    """Read one JSON text; a number with a point or an exponent comes as `Decimal`, any other as `int`.

    Raises:
        ValueError: If it is not UTF-8 JSON, repeats a member name, holds NaN, an infinity, half a surrogate pair or a
            number beyond all bounds, or nests deeper than `MAX_DEPTH`. The message echoes nothing of the body.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    try:
        value = json.loads(text, parse_float=_decimal, parse_constant=_no_constant, object_pairs_hook=_object)
        _inspect(value, MAX_DEPTH)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a string holds half a surrogate pair") from None
    return value


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError("a number is beyond all bounds") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError("an object repeats a member name")
        members[name] = value
    return members


def _inspect(value: Any, room: int) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict | list):
        if room == 0:
            raise ValueError("nested too deeply")
        for name in value if isinstance(value, dict) else ():
            name.encode()
        for inner in value.values() if isinstance(value, dict) else value:
            _inspect(inner, room - 1)


def write(value: Any) -> str:
    """The canonical text: members sorted, no white space, numbers in plain digits.

    Raises:
        TypeError: For a float or anything else that `read` does not give.
    """
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        comma = "{"
        for name in sorted(value):
            yield comma + encode_basestring(name) + ":"
            yield from _pieces(value[name])
            comma = ","
        yield "}" if value else "{}"
    elif isinstance(value, list):
        comma = "["
        for inner in value:
            yield comma
            yield from _pieces(inner)
            comma = ","
        yield "]" if value else "[]"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case str():
            return encode_basestring(value)
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            return str(value)
        case Decimal():
            return number_text(value)
    raise TypeError(f"{type(value).__name__} is no exact JSON value")


def number_text(number: Decimal) -> str:
    """Assemble the plain digits from sign, digits and exponent, so that no context ever rounds."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("an infinity or NaN is no JSON number")
    figures = "".join(map(str, digits)) + "0" * exponent
    places = max(0, -exponent)
    figures = figures.zfill(places + 1)
    whole, part = figures[: len(figures) - places].lstrip("0"), figures[len(figures) - places :].rstrip("0")
    text = f"{whole or '0'}.{part}" if part else whole or "0"
    return f"-{text}" if sign and text != "0" else text
