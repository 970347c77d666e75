"""JSON in and out, exact: numbers are `Decimal` or `int`, never float (law 5).

One value has one text: keys are sorted, no white space, decimals without exponent or trailing zeros
(``6``, not ``6.0`` or ``6E0``). These bytes feed request bodies and fingerprints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
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
    return _text(value).encode()


def _text(value: JsonValue) -> str:
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    for kind, write in _WRITERS.items():  # a subclass; what is more special stands first
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"{type(value).__name__} has no exact JSON form")


def _members_text(members: dict[str, JsonValue]) -> str:
    return f"{{{','.join([f'{_name(name)}:{_text(members[name])}' for name in sorted(members)])}}}"


def _items_text(items: Iterable[JsonValue]) -> str:
    return f"[{','.join([_text(item) for item in items])}]"


_name = lru_cache(maxsize=4096)(encode_basestring)  # the same few in every record
_WRITERS: dict[type, Callable[[Any], str]] = {
    datetime: lambda value: f'"{time_text(value)}"',
    str: encode_basestring,
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    Decimal: decimal_text,
    dict: _members_text,
    list: _items_text,
    tuple: _items_text,
    date: lambda value: f'"{time_text(value)}"',
}


def loads(body: bytes | str) -> JsonValue:
    """Read JSON; numbers with a point or exponent come as `Decimal`, others as `int`.

    Raises:
        ValueError: If *body* is not UTF-8 JSON, repeats a member name, or holds NaN, an infinity or half a character.
    """
    try:
        text = body if isinstance(body, str) else body.decode()
        value = _READER.decode(text)
        if "\\ud" in text or "\\uD" in text:
            dumps(value)  # an escape may hide half a character, which no UTF-8 can carry
        return value
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def loads_own(text: str) -> JsonValue:
    """Read what `dumps` has written: as `loads` does, in half its time, since what it refuses cannot be there."""
    return _OWN.raw_decode(text)[0]


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


_OWN = json.JSONDecoder(parse_float=Decimal)
_READER = json.JSONDecoder(parse_float=_exact, parse_constant=_refuse, object_pairs_hook=_members)
