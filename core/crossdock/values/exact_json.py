"""Exact JSON: numbers are `Decimal` or `int`, never float (law 5).

Each value has one text: keys are sorted, no white space, decimals without exponent or trailing zeros (``6``, not
``6.0`` or ``6E0``). These bytes are request bodies and the input of fingerprints.

Numbers (`MAX_EXPONENT`), nesting (`MAX_DEPTH`) and size (`MAX_VALUES`) are limited, as RFC 8259 section 9 allows.
Otherwise a small text could take gigabytes, hours or the whole stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Clamped, Context, Decimal, InvalidOperation, Overflow, Rounded, Subnormal
from functools import lru_cache
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any

JsonValue = Any
_has_whole_characters = re.compile(
    r"""(?:[^\\]++|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\(?!u[dD][89a-fA-F]).)*+""", re.DOTALL
).fullmatch  # of JSON text: surrogates in pairs, other escapes, and everything that is not an escape

_strings_of = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL).finditer

MAX_EXPONENT = 1_000
MAX_DEPTH = 64  # levels of objects and arrays; Python's recursion limit ends `dumps` at about 300
MAX_VALUES = 1_000_000  # of one text; a value of four bytes takes a hundred bytes of memory
BEYOND = f"a number has an exponent beyond {MAX_EXPONENT:,} or more than {MAX_EXPONENT + 1:,} digits"
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
TOO_MANY = f"more than {MAX_VALUES:,} values"

_DIGITS = MAX_EXPONENT + 1
_INTEGERS_END = 10**_DIGITS
_CONTAINERS = frozenset({dict, list, tuple})
_SCALARS = frozenset({str, int, bool, type(None), Decimal, date, datetime})
_BOUNDED = Context(
    prec=_DIGITS,
    Emin=-MAX_EXPONENT,
    Emax=MAX_EXPONENT,
    traps=[InvalidOperation, Overflow, Rounded, Subnormal, Clamped],  # raise instead of changing a number
)


def decimal_text(value: Decimal) -> str:
    """Return plain digits, with no exponent, trailing zeros or minus zero. Raises ValueError if there are none."""
    if not value.is_finite():
        raise ValueError(f"{value} is not a number that JSON can represent")
    try:
        text = format(_BOUNDED.plus(value), "f")
    except ArithmeticError:
        raise ValueError(BEYOND) from None
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def _integer_text(value: int) -> str:
    if not -_INTEGERS_END < value < _INTEGERS_END:
        raise ValueError(BEYOND)
    return str(value)


def time_text(value: date) -> str:
    """Format a day in ISO 8601, or an instant in RFC 3339, in UTC with ``Z``. A naive time is a ValueError."""
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise ValueError("a time without a time zone is not an instant")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def dumps(value: JsonValue) -> bytes:
    """Return canonical JSON in UTF-8.

    Raises ValueError for NaN, infinities, naive times, lone surrogates and values beyond the limits of this module;
    TypeError for floats and other types without an exact JSON form.
    """
    try:
        text = _text(value)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except TypeError as error:
        place, _ = inexact_in(value) or ("", "")
        raise TypeError(f"{place}: {error}" if place else str(error)) from None
    _check_depth(value, _brackets(text))
    return text.encode()


def inexact_in(value: JsonValue, pointer: str = "") -> tuple[str, str] | None:
    """Return JSON pointer and type of the first value without an exact form, such as a float, or None."""
    if type(value) in _SCALARS:
        return None
    if not isinstance(value, tuple(_WRITERS)):
        return pointer, type(value).__name__
    members: Iterable[tuple[object, JsonValue]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list | tuple):
        members = enumerate(value)
    for name, inner in members:
        if type(inner) not in _SCALARS and (found := inexact_in(inner, f"{pointer}/{name}")) is not None:
            return found
    return None


def _text(value: JsonValue) -> str:
    writer = _WRITERS.get(type(value))
    if writer is not None:
        return writer(value)
    for kind, write in _WRITERS.items():  # a subclass; more special types come first
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"{type(value).__name__} has no exact JSON form")


def _members_text(members: dict[str, JsonValue]) -> str:
    texts = [
        f"{_short_name(name) if len(name) <= 64 else encode_basestring(name)}:"
        f"{encode_basestring(value) if type(value) is str else _text(value)}"  # most are texts
        for name, value in sorted(members.items(), key=_NAME)
    ]
    return f"{{{','.join(texts)}}}"


def _items_text(items: Iterable[JsonValue]) -> str:
    return f"[{','.join([encode_basestring(item) if type(item) is str else _text(item) for item in items])}]"


_NAME = itemgetter(0)
_short_name = lru_cache(maxsize=4096)(encode_basestring)  # the same names in every record; long ones would fill memory
_WRITERS: dict[type, Callable[[Any], str]] = {
    datetime: lambda value: f'"{time_text(value)}"',
    str: encode_basestring,
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: _integer_text,
    Decimal: decimal_text,
    dict: _members_text,
    list: _items_text,
    tuple: _items_text,
    date: lambda value: f'"{time_text(value)}"',
}


def loads(body: bytes | str) -> JsonValue:
    """Read JSON. Numbers with a point or exponent become `Decimal`, others `int`.

    Raises ValueError if *body* is not UTF-8 JSON, repeats a name, has NaN, an infinity or a lone surrogate, or is
    beyond the limits of this module. The message quotes nothing of *body*.
    """
    text = body if isinstance(body, str) else body.decode()
    brackets = _brackets(text)
    try:
        value = _READER.decode(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ArithmeticError:
        raise ValueError(BEYOND) from None
    _check(value, text, brackets)
    return value


def loads_at(text: str, start: int) -> tuple[JsonValue, int]:
    """Read the value that begins at *start*, as `loads` does, and return it with the index after it.

    A value with too many values is refused only after it was read, so *text* should be short.
    """
    try:
        value, end = _READER.raw_decode(text, start)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ArithmeticError:
        raise ValueError(BEYOND) from None
    part = text[start:end]
    _check(value, part, _brackets(part))
    return value, end


def _check(value: JsonValue, text: str, brackets: int) -> None:
    _check_depth(value, brackets)
    if ("\\ud" in text or "\\uD" in text) and not _has_whole_characters(text):
        raise ValueError("an escape is a lone surrogate, which UTF-8 cannot represent")


def loads_own(text: str) -> JsonValue:
    """Read what `dumps` has written, in half the time of `loads`. Other texts may be accepted."""
    try:
        return _OWN.raw_decode(text)[0]
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ArithmeticError:
        raise ValueError(BEYOND) from None


def _brackets(text: str) -> int:
    """Count the opening brackets in *text*, also those in strings. Those outside limit its values, with the commas."""
    brackets = text.count("[") + text.count("{")
    values = brackets + text.count(",")
    if values > MAX_VALUES and values - sum(map(_marks, _strings_of(text))) > MAX_VALUES:
        raise ValueError(TOO_MANY)
    return brackets


def _marks(found: re.Match[str]) -> int:
    return sum(found[0].count(mark) for mark in "[{,")


def _check_depth(value: JsonValue, brackets: int) -> None:
    """Check the depth level by level, without recursion. Most values have too few *brackets* to be deep."""
    if brackets <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _contents(outer) if type(inner) in _CONTAINERS]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _contents(value: JsonValue) -> Iterable[JsonValue]:
    return value.values() if isinstance(value, dict) else value


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object repeats a member name")
    return members


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _DIGITS:
        raise ValueError(BEYOND)
    return int(digits)


def _refuse(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")


_OWN = json.JSONDecoder(parse_float=_BOUNDED.create_decimal)
_READER = json.JSONDecoder(
    parse_float=_BOUNDED.create_decimal, parse_int=_integer, parse_constant=_refuse, object_pairs_hook=_members
)
