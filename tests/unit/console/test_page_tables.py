"""Tables of a page: any text is shown as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.report_page import HOSTILE, Page

from crossdock.console import page_rendering
from crossdock.console.page_tables import Cell, RecordListing, Table, listing_within_bytes, table
from crossdock.printable import printable


def row(columns: list[str], cells: list[Cell]) -> str:
    return page_rendering.macro_function("elements.html", "row")(columns, cells)


def shown(made: Table) -> str:
    return page_rendering.macro_function("elements.html", "table")(made)


def listed(made: RecordListing) -> str:
    return page_rendering.macro_function("elements.html", "listing")(made, caller=lambda: "All")


@given(st.text(max_size=page_rendering.MAX_TEXT))
def test_any_text_comes_back_as_it_was(value: str) -> None:
    """A cell shows any text unchanged, except for characters that are not printable."""
    read = Page(f"<table>{row(['key'], [value])}</table>")
    assert read.tags == {"table", "tr", "td"}
    ((cell,),) = read.tables[0]
    assert cell == printable(value)
    assert not any(ord(character) < 32 or 0xD800 <= ord(character) < 0xE000 for character in cell)


def test_each_cell_names_its_column() -> None:
    """So that a narrow screen can show a row as a block; the names of filters are text of others."""
    page = Page(shown(table(("stream", f"skip {HOSTILE}"), [("a", 1200)])))
    assert page.tables == [[["stream", f"skip {HOSTILE}"], ["a", "1,200"]]]
    assert page.names == {"class", "data-name", "scope"}
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_list_takes_no_more_room_than_it_has() -> None:
    """Rows that do not fit are counted."""
    rows = [(f"K{number}",) for number in range(10)]
    room = 3 * len(row(["key"], ["K0"]))
    page = Page(listed(listing_within_bytes(("key",), rows, 12, "waiting", room=room)))
    assert page.under("key") == [["K0"], ["K1"], ["K2"]]
    assert "9 more: crossdock records list --state waiting --limit 12" in page.text


def test_a_list_of_more_than_twenty_is_folded() -> None:
    """However many of them are shown."""
    assert "<details open>" in listed(listing_within_bytes(("key",), [("K",)], 20, "waiting", room=1_000))
    assert "<details>" in listed(listing_within_bytes(("key",), [("K",)], 21, "waiting", room=1_000))


def test_lines_of_a_cell_are_text() -> None:
    """Each on a line of its own, and any markup in them is escaped."""
    assert "&lt;b&gt;one&lt;/b&gt;<br>two" in row(["example"], [["<b>one</b>", "two"]])
