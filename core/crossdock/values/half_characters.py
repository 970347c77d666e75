r"""Texts in JSON that have half of a character: a lone surrogate such as ``"\ud83d"`` (RFC 8259, section 8.2).

Programs write it that cut texts by UTF-16 units within an emoji, as JavaScript does. UTF-8 cannot represent it, so that
no state and no target can hold such a text. An object takes its place, which differs for each text and is none, and the
record that has it becomes a dead letter, in place of the whole document.
"""

from __future__ import annotations

import json
from typing import Any

from crossdock.values import exact_json
from crossdock.values.json_paths import escaped_pointer_part

_MARK = "\x1dhalf_character"
"""The only member of the object; no API has such a name."""
_BEGINNING = exact_json.dumps({_MARK: ""}).decode().removesuffix('"}')
"""How the object begins in canonical JSON, where no text can have it."""
FAULT = (
    "has half of a character (a lone surrogate), which UTF-8 cannot represent, as a text has that was cut within an"
    " emoji: correct it in the source"
)


def loads_marking_half_characters(body: bytes) -> Any:
    """Read JSON as `exact_json.loads` does, with an object in place of each text that has half of a character.

    Raises:
        ValueError: As `exact_json.loads`; also if the name of a member has it.
    """
    try:
        return exact_json.loads(body)
    except exact_json.LoneSurrogateError:
        value = _with_marks(exact_json.loads_with_lone_surrogates(body))
    exact_json.dumps(value)  # raises ValueError if the marks exceed a limit
    return value


def _with_marks(value: Any) -> Any:
    if isinstance(value, str):
        return {_MARK: json.dumps(value)[1:-1]} if _has_half_character(value) else value
    if isinstance(value, list):
        return [_with_marks(each) for each in value]
    if not isinstance(value, dict):
        return value
    if any(map(_has_half_character, value)):
        raise ValueError("the name of a member has a lone surrogate, which UTF-8 cannot represent")
    return {name: _with_marks(each) for name, each in value.items()}


def _has_half_character(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def stands_for_half_character(cell: str | None) -> bool:
    """Return whether the *cell* of a column stands for a text that has half of a character."""
    return cell is not None and cell.startswith(_BEGINNING)


def pointer_of_half_character(text: str) -> str | None:
    """Return the JSON pointer of the first text in canonical JSON that had half of a character, or None."""
    return _pointer_of_mark(exact_json.loads(text), "") if _BEGINNING in text else None


def _pointer_of_mark(value: Any, pointer: str) -> str | None:
    if isinstance(value, dict) and _MARK in value:
        return pointer
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = (_pointer_of_mark(each, f"{pointer}/{escaped_pointer_part(str(name))}") for name, each in members)
    return next((each for each in found if each is not None), None)
