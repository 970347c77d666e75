r"""Values in JSON that are no exact JSON: each is replaced, so that one record is rejected and not the whole document.

A lone surrogate such as ``"\ud83d"`` is half of a character (RFC 8259, section 8.2). Programs write it that cut texts
by UTF-16 units within an emoji, as JavaScript does, and no state and no target can hold it. Other programs write NaN,
as Python does, a number with thousands of digits, or one member twice. An object takes the place of such a value, and
the record that has it becomes a dead letter.
"""

from __future__ import annotations

import json
from typing import Any

from crossdock.values import exact_json
from crossdock.values.json_paths import escaped_pointer_part

_HALF, _INVALID = "\x1dhalf_character", "\x1dinvalid_value"  # members; no API has such names
REPLACED_VALUE = exact_json.dumps({"\x1d": ""}).decode().removesuffix('":""}')
"""How the objects begin in canonical JSON, where no text can have it."""
INVALID_VALUE = REPLACED_VALUE + _INVALID[1:]
"""How those begin that do not differ with what they stand for, so that none is a key."""
_FAULTS = {
    _HALF: "has half of a character (a lone surrogate), which UTF-8 cannot represent, as a text has that was cut within"
    " an emoji",
    _INVALID: "is no exact JSON: {}",
}


def loads_replacing_invalid_values(body: bytes) -> Any:
    """Read JSON as `exact_json.loads` does, with an object in place of each value that alone is no exact JSON.

    Control characters in texts are read as they are.

    Raises:
        ValueError: The document cannot be read otherwise, or the name of a member has half of a character.
    """
    try:
        return exact_json.loads(body)
    except ValueError:
        value = _replace_lone_surrogate_texts(
            exact_json.loads_replacing_values(body, lambda reason: {_INVALID: reason})
        )
    exact_json.dumps(value)  # raises ValueError if the marks exceed a limit
    return value


def _replace_lone_surrogate_texts(value: Any) -> Any:
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


def is_cell_of_invalid_value(cell: str | None) -> bool:
    """Return whether the *cell* of a column stands for a value that is no exact JSON."""
    return cell is not None and cell.startswith(REPLACED_VALUE)


def pointer_and_fault_of_invalid_value(text: str) -> tuple[str, str] | None:
    """Return JSON pointer and fault of the first value in canonical JSON that stands for an invalid one, or None."""
    return _pointer_and_fault(exact_json.loads(text), "") if REPLACED_VALUE in text else None


def _pointer_and_fault(value: Any, pointer: str) -> tuple[str, str] | None:
    if isinstance(value, dict):
        for kind, fault in _FAULTS.items():
            if kind in value:
                return pointer, f"{fault.format(value[kind])}: correct it in the source"
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = (_pointer_and_fault(each, f"{pointer}/{escaped_pointer_part(str(name))}") for name, each in members)
    return next((each for each in found if each is not None), None)
