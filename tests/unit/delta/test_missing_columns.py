"""Errors about missing columns name what is there, but never a cell."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delta.row_preparation import missing_columns_hint
from crossdock.values.raw_rows_and_records import REFUSED, record_number_column


def rows(*lines: tuple[str, ...]) -> pl.DataFrame:
    """A file of *lines*, the first of which is taken for its header."""
    header, *cells = lines
    columns = {name: [row[number] for row in cells] for number, name in enumerate(header)}
    return pl.DataFrame(columns, schema=dict.fromkeys(header, pl.String)).with_row_index("_line", offset=2)


CUSTOMERS = [("Ada", "London", "1815"), ("Grace", "New York", "1906"), ("Edsger", "Rotterdam", "1930")]


@pytest.mark.parametrize(
    ("header", "needed"),
    [
        pytest.param(("NAME", "CITY", "BORN"), {"CUSTNO", "VAT"}, id="numbers below a name"),
        pytest.param(("cust_no", "City", "x"), {"CUSTNO"}, id="another spelling"),
        pytest.param(("NAME", "CITY", "BORN"), {"NAME", "VAT"}, id="one of them is there"),
    ],
)
def test_a_header_is_listed(header: tuple[str, ...], needed: set[str]) -> None:
    """What the file has instead is what a person needs to correct the config."""
    hint = missing_columns_hint(needed, rows(header, *CUSTOMERS))
    assert hint == f"its columns: {', '.join(header)}"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(CUSTOMERS, id="a number in the first line"),
        pytest.param([line[:2] for line in CUSTOMERS], id="words alone"),
        pytest.param([("ada@example.com", "x"), ("g@example.com", "1"), ("e@example.com", "2")], id="mail"),
        pytest.param([("Ada", "x"), ("Grace", "1")], id="too few rows to judge"),
        pytest.param([("Ada", "x" * 65), *[("Grace", "1")] * 3], id="long text"),
    ],
)
def test_a_first_line_that_may_be_a_record_is_not_shown(lines: list[tuple[str, ...]]) -> None:
    """A file without a header has people in its first line."""
    hint = missing_columns_hint({"CUSTNO"}, rows(*lines))
    assert hint.startswith("check that the first line is a header")
    assert not any(cell in hint for cell in lines[0])


@given(st.lists(st.tuples(st.text(max_size=8), st.integers().map(str)), min_size=2, max_size=8))
def test_rows_of_one_form_have_no_header(lines: list[tuple[str, str]]) -> None:
    """Where the first line has the form of the others, nothing of it is shown."""
    if lines[0][0] != lines[0][1] and "_line" not in lines[0]:
        assert "its columns" not in missing_columns_hint({"--"}, rows(*lines))


def test_what_readers_say_of_rows_is_not_shown() -> None:
    """Why a set of an EDI file was refused is in a column of its own, whose name is not for people."""
    frame = pl.DataFrame({"NO": ["1"], REFUSED: [""], record_number_column(["NO"]): ["2"]})
    assert missing_columns_hint({"NO", "SKU"}, frame) == "its columns: NO"
