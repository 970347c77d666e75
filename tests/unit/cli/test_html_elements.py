"""Elements of a report's page: any text is shown as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.report_page import HOSTILE, Page

from crossdock.cli import html_elements
from crossdock.printable import printable


@given(st.text(max_size=html_elements.MAX_CELL))
def test_any_text_comes_back_as_it_was(value: str) -> None:
    """A cell shows any text unchanged, except for characters that are not printable."""
    read = Page(f"<table>{html_elements.row(('key',), (value,))}</table>")
    assert read.tags == {"table", "tr", "td"}
    ((cell,),) = read.tables[0]
    assert cell == printable(value)
    assert not any(ord(character) < 32 or 0xD800 <= ord(character) < 0xE000 for character in cell)


def test_each_cell_names_its_column() -> None:
    """So that a narrow screen can show a row as a block; the names of filters are text of others."""
    text = html_elements.table(
        ("stream", f"skip {HOSTILE}"), [html_elements.row(("s", f"skip {HOSTILE}"), ("a", 1200))]
    )
    page = Page(text)
    assert page.tables == [[["stream", f"skip {HOSTILE}"], ["a", "1,200"]]]
    assert page.names == {"class", "data-name"}
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_list_takes_no_more_room_than_it_has() -> None:
    """Rows that do not fit are counted; an empty list is left out."""
    rows = [html_elements.row(("key",), (f"K{number}",)) for number in range(10)]
    page = Page(html_elements.listing("All", ("key",), rows, 12, 3 * len(rows[0]), "waiting"))
    assert page.under("key") == [["K0"], ["K1"], ["K2"]]
    assert "9 more: crossdock records list --state waiting --limit 12" in page.text
    assert html_elements.listing("All", ("key",), [], 0, 100, "waiting") == ""


def test_lines_of_a_cell_are_text() -> None:
    """Each on a line of its own, and any markup in them is escaped."""
    made = html_elements.row(["example"], [html_elements.lines(["<b>one</b>", "two"])])
    assert "&lt;b&gt;one&lt;/b&gt;<br>two" in made
