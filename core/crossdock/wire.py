"""JSON in and out, exact: numbers are `Decimal` or `int`, never float (law 5).

One value has one text: keys are sorted, no white space, decimals without exponent or trailing zeros
(``6``, not ``6.0`` or ``6E0``). These bytes feed request bodies and fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

JsonValue = Any


def decimal_text(value: Decimal) -> str:
    """The one text of a finite decimal: plain digits, no exponent, no trailing zeros, no minus zero.

    Raises:
        ValueError: If *value* is NaN or infinite.
    """
    if not value.is_finite():
        raise ValueError(f"{value} is no number that JSON can carry")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def time_text(value: date) -> str:
    """A day as ISO 8601 has it, an instant as RFC 3339 in UTC with ``Z``.

    Raises:
        ValueError: If *value* is an instant without zone.
    """
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise ValueError("a time without zone is no instant")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def dumps(value: JsonValue) -> bytes:
    """Canonical JSON, UTF-8.

    Raises:
        ValueError: For NaN, infinities and naive times.
        TypeError: For floats and other types without an exact JSON form.
    """
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts).encode()


def _write(value: JsonValue, out: Callable[[str], None]) -> None:
    if isinstance(value, str):
        out(encode_basestring(value))
    elif value is None:
        out("null")
    elif isinstance(value, bool):
        out("true" if value else "false")
    elif isinstance(value, int):
        out(str(value))
    elif isinstance(value, Decimal):
        out(decimal_text(value))
    elif isinstance(value, dict):
        _write_members(value, out)
    elif isinstance(value, list | tuple):
        _write_items(value, out)
    elif isinstance(value, date):
        out(f'"{time_text(value)}"')
    else:
        raise TypeError(f"{type(value).__name__} has no exact JSON form")


def _write_members(members: dict[str, JsonValue], out: Callable[[str], None]) -> None:
    separator = "{"
    for name in sorted(members):
        out(f"{separator}{encode_basestring(name)}:")
        _write(members[name], out)
        separator = ","
    out("{}" if separator == "{" else "}")


def _write_items(items: Iterable[JsonValue], out: Callable[[str], None]) -> None:
    separator = "["
    for item in items:
        out(separator)
        _write(item, out)
        separator = ","
    out("[]" if separator == "[" else "]")


def loads(body: bytes | str) -> JsonValue:
    """Read JSON; numbers with a point or exponent come as `Decimal`, others as `int`.

    Raises:
        ValueError: If *body* is not UTF-8 JSON, repeats a member name, or holds NaN, an infinity or half a character.
    """
    try:
        text = body if isinstance(body, str) else body.decode()
        value = json.loads(text, parse_float=_exact, parse_constant=_refuse, object_pairs_hook=_members)
        if "\\ud" in text or "\\uD" in text:
            dumps(value)  # an escape may hide half a character, which no UTF-8 can carry
        return value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} stands twice in one object")
    return members


def _exact(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation as error:
        raise ValueError("a number has too large an exponent") from error


def _refuse(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")
