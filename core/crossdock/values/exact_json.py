"""Exact JSON: numbers are `Decimal` or `int`, never float (law 5).

Each value has one text: keys are sorted, no white space, decimals without exponent or trailing zeros (``6``, not
``6.0`` or ``6E0``). These bytes are request bodies and the input of fingerprints.

Numbers (`MAX_EXPONENT`), nesting (`MAX_DEPTH`) and size (`MAX_VALUES`) are limited, as RFC 8259 section 9 allows.
Otherwise a small text could take gigabytes, hours or the whole stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Clamped, Context, Decimal, InvalidOperation, Overflow, Rounded, Subnormal
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from crossdock.values.texts_of_numbers_and_times import json_time_text

T = TypeVar("T")
JsonValue = Any
_has_whole_characters = re.compile(
    r"""(?:[^\\]++|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\(?!u[dD][89a-fA-F]).)*+""", re.DOTALL
).fullmatch  # of JSON text: surrogates in pairs, other escapes, and everything that is not an escape

_strings_of = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL).finditer

MAX_EXPONENT = 1_000
MAX_DEPTH = 64  # levels of objects and arrays; Python's recursion limit ends `dumps` at about 300
MAX_VALUES = 1_000_000  # of one text; a value of four bytes takes a hundred bytes of memory
BEYOND = f"a number has an exponent beyond {MAX_EXPONENT:,} or more than {MAX_EXPONENT + 1:,} digits"
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
TOO_MANY = f"more than {MAX_VALUES:,} values"
_NO_JSON = "{} is not JSON"
_REPEATED = "an object repeats a member name"

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


@lru_cache(maxsize=4096)
def _number_text(digits: str) -> msgspec.Raw:
    return msgspec.Raw(decimal_text(Decimal(digits)).encode())


def dumps(value: JsonValue) -> bytes:
    """Return canonical JSON in UTF-8.

    Raises ValueError for NaN, infinities, naive times, lone surrogates and values beyond the limits of this module;
    TypeError for floats and other types without an exact JSON form.
    """
    try:
        body = _WRITER.encode(_items_in_encodable_form((value,))[0])
    except ValueError:
        _check_integers(value)  # Python converts no more than 4,300 digits
        raise
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except TypeError as error:
        place, _ = pointer_and_type_if_inexact(value) or ("", "")
        raise TypeError(f"{place}: {error}" if place else str(error)) from None
    _check_depth(value, _check_size_and_count_brackets(body))
    if _may_have_long_number(body):
        _check_integers(value)
    return body


def pointer_and_type_if_inexact(value: JsonValue, pointer: str = "") -> tuple[str, str] | None:
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
        if (
            type(inner) not in _SCALARS
            and (found := pointer_and_type_if_inexact(inner, f"{pointer}/{name}")) is not None
        ):
            return found
    return None


def _members_in_encodable_form(members: dict[str, JsonValue]) -> JsonValue:
    "".join(members)  # raises TypeError for a name that is not a text, which the writer would turn into one
    return {
        name: value if (kind := type(value)) in _PLAIN else _WRITERS.get(kind, _written_as_base_type)(value)
        for name, value in members.items()
    }


def _items_in_encodable_form(items: Iterable[JsonValue]) -> JsonValue:
    return [
        item if (kind := type(item)) in _PLAIN else _WRITERS.get(kind, _written_as_base_type)(item) for item in items
    ]


def _written_as_base_type(value: JsonValue) -> JsonValue:
    for kind, write in _WRITERS.items():  # more special types come first
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"{type(value).__name__} has no exact JSON form")


_PLAIN = frozenset({str, int, bool, type(None)})  # which the writer takes as they are
_WRITERS: dict[type, Callable[[Any], JsonValue]] = {
    datetime: json_time_text,
    str: str.__str__,
    int: int.__int__,
    Decimal: lambda value: _number_text(str(value)),
    dict: _members_in_encodable_form,
    list: _items_in_encodable_form,
    tuple: _items_in_encodable_form,
    date: json_time_text,
}


def _check_integers(value: JsonValue) -> None:
    if isinstance(value, int) and not -_INTEGERS_END < value < _INTEGERS_END:
        raise ValueError(BEYOND)
    if isinstance(value, dict | list | tuple):
        for inner in _inner_values(value):
            _check_integers(inner)


def loads(body: bytes | str) -> JsonValue:
    """Read JSON. Numbers with a point or exponent become `Decimal`, others `int`.

    Raises ValueError if *body* is not UTF-8 JSON, repeats a name, has NaN, an infinity or a lone surrogate, or is
    beyond the limits of this module. The message quotes nothing of *body*.
    """
    encoded = body.encode(errors="surrogatepass") if isinstance(body, str) else body
    brackets = _check_size_and_count_brackets(encoded)
    if brackets <= MAX_DEPTH and (value := _fast_loads(encoded)) is not _UNREAD:
        return value
    text = body if isinstance(body, str) else body.decode()
    value = _slow_loads(text, _READER)
    _check_depth_and_surrogates(value, text, brackets)
    return value


def _loads_replacing_values(body: bytes, replacement: Callable[[str], JsonValue]) -> JsonValue:
    """Read JSON, with what *replacement* returns for the reason in place of each value that `loads` refuses alone.

    These are NaN, infinities, numbers beyond the limits of this module, and a member that an object has twice with
    different values. Control characters but NUL, the sign of a damaged file, are read as they are in texts (RFC 8259,
    section 9), and so are lone surrogates, which `dumps` refuses.

    Raises:
        ValueError: The text is no JSON otherwise, not UTF-8, nested too deep, has NUL or too many values.
    """
    brackets, text = _check_size_and_count_brackets(body), body.decode()
    if "\0" in text:
        raise json.JSONDecodeError("NUL, the sign of a damaged file, at", text, text.index("\0"))
    value = _slow_loads(text, _reader_replacing_invalid_values(replacement))
    _check_depth(value, brackets)
    return value


def _reader_replacing_invalid_values(replacement: Callable[[str], JsonValue]) -> json.JSONDecoder:
    def number(digits: str) -> JsonValue:
        try:
            return _BOUNDED.create_decimal(digits)
        except ArithmeticError:
            return replacement(BEYOND)

    def integer(digits: str) -> JsonValue:
        return replacement(BEYOND) if len(digits.lstrip("-")) > _DIGITS else int(digits)

    def members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        for name, value in pairs:
            former = found.get(name, value)
            same = type(former) is type(value) and former == value
            found[name] = value if same else replacement(_REPEATED)
        return found

    return json.JSONDecoder(
        parse_float=number,
        parse_int=integer,
        parse_constant=lambda name: replacement(_NO_JSON.format(name)),
        object_pairs_hook=members,
        strict=False,
    )


def _slow_loads(text: str, reader: json.JSONDecoder) -> JsonValue:
    try:
        return reader.decode(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ArithmeticError:
        raise ValueError(BEYOND) from None


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
    _check_depth_and_surrogates(value, part, _check_size_and_count_brackets(part.encode(errors="surrogatepass")))
    return value, end


def _check_depth_and_surrogates(value: JsonValue, text: str, brackets: int) -> None:
    _check_depth(value, brackets)
    if ("\\ud" in text or "\\uD" in text) and not _has_whole_characters(text):
        raise ValueError("an escape is a lone surrogate, which UTF-8 cannot represent")


def loads_trusted_canonical(text: str) -> JsonValue:
    """Read what `dumps` has written, in a fifth of the time of `loads`. Other texts may be accepted."""
    try:
        return _QUICK_READER.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ArithmeticError:
        raise ValueError(BEYOND) from None


def typed_canonical_reader(kind: type[T]) -> Callable[[str], T]:
    """Return what reads a *kind* without numbers that have decimals from what `dumps` has written.

    Members that *kind* does not have are ignored, which takes a fifth of the time of `loads_trusted_canonical`.
    """
    return msgspec.json.Decoder(kind).decode


def canonicalize_json_object_lines(lines: Sequence[bytes]) -> list[str] | None:
    """Return the text that `dumps` gives for each of *lines*, or None if one is not an object that `loads` accepts.

    It takes a fifth of the time of `loads` and `dumps`. Of some objects that `loads` accepts, it returns None, too.
    """
    for line in lines:
        if line.count(b"{") + line.count(b"[") > MAX_DEPTH or len(line) > MAX_VALUES or _may_have_long_number(line):
            return None
    try:
        objects = [_READER_OF_TEXTS.decode(line) for line in lines]
    except (msgspec.DecodeError, ValueError, ArithmeticError):
        return None
    if any(type(value) is not dict for value in objects):
        return None
    written = _WRITER.encode_lines(objects)
    if _count_quotes(b"".join(lines)) != _count_quotes(written):
        return None
    return written.decode().split("\n")[:-1]


def _fast_loads(text: bytes) -> JsonValue:
    """Read *text*, or return `_UNREAD` where the slower reader must report what is wrong, or is needed."""
    if _may_have_long_number(text):
        return _UNREAD
    try:
        value = _QUICK_READER.decode(text)
    except (msgspec.DecodeError, ValueError, ArithmeticError):
        return _UNREAD
    return value if _count_quotes(text) == _count_quotes(_WRITER.encode(value)) else _UNREAD


def _may_have_long_number(text: bytes) -> bool:
    return len(text) > _DIGITS and _long_number(text) is not None


def _count_quotes(text: bytes) -> int:
    """Return twice the number of strings in JSON. It shows members of one name, since a `dict` has the last alone."""
    if b"\\" not in text:
        return text.count(b'"')
    text = text.replace(b"\\\\", b"")
    return text.count(b'"') - text.count(b'\\"')


def _check_size_and_count_brackets(text: bytes) -> int:
    """Count the opening brackets in *text*, also those in strings. Those outside limit its values, with the commas."""
    brackets = text.count(b"[") + text.count(b"{")
    values = brackets + text.count(b",")
    if values > MAX_VALUES and values - sum(map(_count_structure_characters_in_string, _strings_of(text))) > MAX_VALUES:
        raise ValueError(TOO_MANY)
    return brackets


def _count_structure_characters_in_string(found: re.Match[bytes]) -> int:
    return sum(found[0].count(mark) for mark in (b"[", b"{", b","))


def _check_depth(value: JsonValue, brackets: int) -> None:
    """Check the depth level by level, without recursion. Most values have too few *brackets* to be deep."""
    if brackets <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inner_values(outer) if type(inner) in _CONTAINERS]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _inner_values(value: JsonValue) -> Iterable[JsonValue]:
    return value.values() if isinstance(value, dict) else value


def _object_without_repeats(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(_REPEATED)
    return members


def _bounded_integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _DIGITS:
        raise ValueError(BEYOND)
    return int(digits)


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(_NO_JSON.format(name))


_UNREAD = object()
_long_number = re.compile(rb"[0-9]{%d}" % (_DIGITS + 1)).search
_QUICK_READER = msgspec.json.Decoder(float_hook=_BOUNDED.create_decimal)
_READER_OF_TEXTS = msgspec.json.Decoder(float_hook=_number_text)
_WRITER = msgspec.json.Encoder(order="sorted", decimal_format="number")
_READER = json.JSONDecoder(
    parse_float=_BOUNDED.create_decimal,
    parse_int=_bounded_integer,
    parse_constant=_refuse_constant,
    object_pairs_hook=_object_without_repeats,
)

# ---- values that are no exact JSON: each is replaced, so that one record is rejected and not the whole document
#
# A lone surrogate such as "\\ud83d" is half of a character (RFC 8259, section 8.2). Programs write it that cut texts by
# UTF-16 units within an emoji, as JavaScript does, and no state and no target can hold it. Other programs write NaN, as
# Python does, a number with thousands of digits, or one member twice.

_HALF, _INVALID = "\x1dhalf_character", "\x1dinvalid_value"  # members; no API has such names
REPLACED_VALUE = dumps({"\x1d": ""}).decode().removesuffix('":""}')
"""How the objects begin in canonical JSON, where no text can have it."""
INVALID_VALUE = REPLACED_VALUE + _INVALID[1:]
"""How those begin that do not differ with what they stand for, so that none is a key."""
_FAULTS = {
    _HALF: "has half of a character (a lone surrogate), which UTF-8 cannot represent, as a text has that was cut within"
    " an emoji",
    _INVALID: "is no exact JSON: {}",
}


def loads_replacing_invalid_values(body: bytes) -> JsonValue:
    """Read JSON as `loads` does, with an object in place of each value that alone is no exact JSON.

    Control characters in texts are read as they are.

    Raises:
        ValueError: The document cannot be read otherwise, or the name of a member has half of a character.
    """
    try:
        return loads(body)
    except ValueError:
        value = _replace_lone_surrogate_texts(_loads_replacing_values(body, lambda reason: {_INVALID: reason}))
    dumps(value)  # raises ValueError if the marks exceed a limit
    return value


def _replace_lone_surrogate_texts(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return {_HALF: json.dumps(value)[1:-1]} if _has_lone_surrogate(value) else value
    if isinstance(value, list):
        return [_replace_lone_surrogate_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    if any(map(_has_lone_surrogate, value)):
        raise ValueError("the name of a member has a lone surrogate, which UTF-8 cannot represent")
    return {name: _replace_lone_surrogate_texts(each) for name, each in value.items()}


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def fault_of_replaced_value(value: dict[str, JsonValue]) -> str | None:
    """Return what is wrong with the value that the object *value* stands for, or None if it stands for itself."""
    for kind, fault in _FAULTS.items():
        if kind in value:
            return f"{fault.format(value[kind])}: correct it in the source"
    return None


def is_cell_of_invalid_value(cell: str | None) -> bool:
    """Return whether the *cell* of a column stands for a value that is no exact JSON."""
    return cell is not None and cell.startswith(REPLACED_VALUE)
