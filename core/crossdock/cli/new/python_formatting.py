"""Lays out Python expressions as ``ruff format`` does with its defaults, since what is written must pass it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

WIDTH = 88


class Call(Struct, frozen=True):
    """Items in brackets after *head*: a call, a list or a dict."""

    head: str
    items: Sequence[Item]
    brackets: str = "()"


class Named(Struct, frozen=True):
    """An item with what is before it, ``name=`` or ``"key": ``, and a comment above it."""

    before: str
    value: str | Call
    comment: str = ""


Item = str | Call | Named


def format_code(before: str, value: str | Call, indent: int = 0, after: str = "") -> str:
    """Return lines of *before*, *value* and *after*: one if it fits, else one for each item."""
    margin = " " * indent
    line = f"{margin}{before}{_on_one_line(value)}{after}"
    if isinstance(value, str) or not value.items or (len(line) <= WIDTH and not _has_comment(value)):
        return line
    items = [_formatted_item(each, indent + 4) for each in value.items]
    return "\n".join(
        [f"{margin}{before}{value.head}{value.brackets[0]}", *items, f"{margin}{value.brackets[1]}{after}"]
    )


def literal(value: Any) -> str | Call:
    """Return the expression for a JSON value with exact numbers."""
    match value:
        case Mapping():
            return Call("", [Named(f"{quoted(name)}: ", literal(each)) for name, each in value.items()], "{}")
        case list():
            return Call("", [literal(each) for each in value], "[]")
        case Decimal():
            return f'Decimal("{value}")'
        case str():
            return quoted(value)
    return repr(value)


def quoted(text: str) -> str:
    """Return a literal in the quotes that ruff prefers."""
    plain = repr(text)
    return plain if '"' in text or plain[0] == '"' else f'"{plain[1:-1]}"'


def _formatted_item(item: Item, indent: int) -> str:
    named = item if isinstance(item, Named) else Named("", item)
    comment = f"{' ' * indent}# {named.comment}\n" if named.comment else ""
    return comment + format_code(named.before, named.value, indent, ",")


def _on_one_line(item: Item) -> str:
    match item:
        case Call(head, items, brackets):
            return f"{head}{brackets[0]}{', '.join(map(_on_one_line, items))}{brackets[1]}"
        case Named(before, value):
            return before + _on_one_line(value)
    return item


def _has_comment(item: Item) -> bool:
    if isinstance(item, Named):
        return bool(item.comment) or _has_comment(item.value)
    return isinstance(item, Call) and any(map(_has_comment, item.items))


def import_lines(names: Mapping[str, Sequence[str]], package: str) -> str:
    """Return import lines in the order of isort: those of Python, those of others, and those of *package*."""
    groups: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for module in sorted(name for name, needed in names.items() if needed):
        top = module.partition(".")[0]
        group = 2 if top == package else 0 if top in sys.stdlib_module_names else 1
        items = sorted(dict.fromkeys(names[module]), key=_imported_name_order)
        line = f"from {module} import {', '.join(items)}"
        groups[group].append(line if len(line) <= WIDTH else format_code(f"from {module} import ", Call("", items)))
    return "\n\n".join("\n".join(lines) for lines in groups.values() if lines)


def _imported_name_order(name: str) -> tuple[int, str]:
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name
