"""Elements of a report's page, with all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from crossdock.printable import printable

MAX_CELL, _LONG = 500, 40  # characters: most in a cell, most in one line
_OPENED = 20  # longer lists are folded at first


class Drawing(str):
    """Markup of a cell that is drawn, without text from elsewhere."""

    __slots__ = ()


def text(value: str) -> str:
    """Return *value* as escaped, `printable` text, cut off if it is too long."""
    return escape(printable(value[:MAX_CELL])) + "…" * (len(value) > MAX_CELL)


class Lines(str):
    """Markup of a cell with several lines, made by `lines`."""

    __slots__ = ()


def lines(values: Iterable[str]) -> Lines:
    return Lines("<br>".join(map(text, values)))


def row(columns: Sequence[str], cells: Iterable[str | int]) -> str:
    return f"<tr>{''.join(map(_cell, columns, cells))}</tr>\n"


def table(columns: Sequence[str], rows: Iterable[str], *, kind: str = "") -> str:
    """Return a table. *kind* ``numbers`` aligns all columns but the first right, ``named`` wraps the first."""
    head = "".join(f"<th>{text(name)}</th>" for name in columns)
    body = f"<thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody>"
    return f'<div class="wide"><table class="{kind}">{body}</table></div>'


def listing(summary: str, columns: Sequence[str], rows: Iterable[str], number: int, room: int, state: str) -> str:
    """Return a list of those *rows* that fit into *room* bytes, and the *number* of the others."""
    shown: list[str] = []
    for each in rows:
        room -= len(each.encode())
        if room < 0:
            break
        shown.append(each)
    if not number:
        return ""
    hidden = number - len(shown)
    command = f"<code>crossdock records list --state {state} --limit {number}</code>"
    more = f'<p class="soft">{hidden:,} more: {command}</p>' if hidden else ""
    opened = " open" * (number <= _OPENED)
    return f"<details{opened}><summary>{summary}</summary>{table(columns, shown)}{more}</details>"


def _cell(column: str, value: str | int) -> str:
    """Return a cell. On a narrow screen the style shows the name of its *column* in front of it."""
    named = f'data-name="{text(column)}"'
    if isinstance(value, int):
        return f"<td {named}>{value:,}</td>"
    if isinstance(value, Drawing):
        return f"<td {named}>{value}</td>"
    if isinstance(value, Lines):
        return f'<td {named} class="long">{value}</td>'
    kind = ' class="long"' * (len(value) > _LONG)
    return f"<td {named}{kind}>{text(value)}</td>"
