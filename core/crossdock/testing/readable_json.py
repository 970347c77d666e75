"""JSON in files for people, in which numbers keep their original text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from crossdock.values import exact_json

_INDENT = 2
_WIDTH = 120


class NumberText(str):
    """The digits of a JSON number."""

    __slots__ = ()


def loads_keeping_number_texts(text: str) -> Any:
    """Read JSON with numbers as `Number`.

    Raises:
        ValueError: As `exact_json.loads`.
    """
    exact_json.loads(text)
    return json.loads(text, parse_int=NumberText, parse_float=NumberText)


def dumps_on_one_line(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{dumps_on_one_line(name)}: {dumps_on_one_line(inner)}" for name, inner in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(dumps_on_one_line, value)) + "]"
    return str(value) if isinstance(value, NumberText) else json.dumps(value, ensure_ascii=False)


def dumps_indented(value: Any, depth: int = 0) -> str:
    """Format *value* in lines for people. What fits is in one line."""
    line = dumps_on_one_line(value)
    if not isinstance(value, dict | list) or not value:
        return line
    is_flat = not any(
        isinstance(inner, dict | list) for inner in (value.values() if isinstance(value, dict) else value)
    )
    if is_flat and isinstance(value, list) and len(line) + depth <= _WIDTH:
        return line
    inner = " " * (depth + _INDENT)
    if isinstance(value, dict):
        lines = [
            f"{inner}{dumps_on_one_line(name)}: {dumps_indented(each, depth + _INDENT)}" for name, each in value.items()
        ]
        return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"
    return (
        "[\n" + ",\n".join(inner + dumps_indented(each, depth + _INDENT) for each in value) + "\n" + " " * depth + "]"
    )


def apply_change_to_json_text(text: str, change: Callable[[Any], Any]) -> str:
    """Apply *change* to the value of *text*. Returns exactly *text* if that changes nothing.

    Raises:
        ValueError: If it is not JSON.
    """
    before = loads_keeping_number_texts(text)
    after = change(before)
    return text if after == before else dumps_on_one_line(after)
