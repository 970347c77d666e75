"""Tables of a page as plain values; `page_templates/elements.html` gives them their form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from crossdock.console import page_rendering
from crossdock.runs import tables_and_sentences_of_run

_SHORT = 20  # rows: longer lists are folded at first


Rectangle = tuple[int, int, int, int]
"""x, y, width and height."""


class Drawing(Struct, frozen=True):
    width: int
    height: int
    rectangles: Sequence[Rectangle]


class Link(Struct, frozen=True):
    """A text that leads to another page of the console; without an address, as in a file, it is only the text.

    The *kind* is a class of the style sheet.
    """

    text: str
    address: str
    kind: str = ""


MakePageAddress = Callable[..., str]
"""Makes the address of a console page from its parts and parameters: `PageRequest.link`, or `omit_address_in_file`."""


def omit_address_in_file(*_: object, **__: object) -> str:
    """Make no address: a page that is a file leads nowhere."""
    return ""


Cell = str | int | Sequence[str] | Sequence[Link] | Drawing | Link
"""What a cell shows; a sequence has a line for each text."""


class Table(Struct, frozen=True):
    """A table. The *kind* ``numbers`` aligns all columns but the first right, ``named`` wraps the first."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kind: str

    @property
    def row_count_text(self) -> str:
        return f"{len(self.rows):,}"

    @property
    def is_short(self) -> bool:
        return len(self.rows) <= _SHORT


class RecordListing(Struct, frozen=True):
    """The first of *number* records, as rows of HTML. *state* selects them in ``crossdock records list``."""

    columns: Sequence[str]
    rows: Sequence[str]
    number: int
    state: str

    @property
    def hidden_count_text(self) -> str:
        hidden = self.number - len(self.rows)
        return f"{hidden:,}" if hidden else ""

    @property
    def is_short(self) -> bool:
        return self.number <= _SHORT


def table(columns: Sequence[str], rows: Iterable[Iterable[Cell]], *, kind: str = "") -> Table:
    return Table(columns, [_cells_with_digits_grouped(row) for row in rows], kind)


def tally_tables(streams: Mapping[str, Any]) -> list[tuple[str, Table]]:
    found = (account for account in tables_and_sentences_of_run.tally_tables(streams) if account.has_counts)
    return [(account.title, table(account.columns, account.lines, kind="numbers")) for account in found]


def listing_within_bytes(
    columns: Sequence[str], rows: Iterable[Iterable[Cell]], number: int, state: str, *, room: int
) -> RecordListing:
    """Return a list of those of *rows* that fit into *room* bytes."""
    row, shown = page_rendering.macro_function("elements.html", "row"), list[str]()
    for cells in rows:
        made = row(columns, _cells_with_digits_grouped(cells))
        room -= len(made.encode())
        if room < 0:
            break
        shown.append(made)
    return RecordListing(columns, shown, number, state)


def _cells_with_digits_grouped(cells: Iterable[Cell]) -> list[Cell]:
    return [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
