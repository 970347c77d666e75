"""A frame that was read from a file gives that file again, if it was written in a usual way."""

from __future__ import annotations

import csv
import io
from typing import Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.formats.polars_delimited_parser import CsvRoundTrip

CELLS = st.text(st.sampled_from('ab,"\n'), max_size=4)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8)
WAYS = CsvRoundTrip(["A", "B"], ",", '"', "\n")


def written(rows: list[tuple[str, str]], quoting: Literal[0, 1]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def frame_of(rows: list[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"A": pl.String, "B": pl.String}, orient="row")


@given(rows=ROWS)
def test_a_file_with_quotes_around_all_cells_is_proved(rows: list[tuple[str, str]]) -> None:
    """And a file that differs in its last byte is not."""
    data, frame = written(rows, csv.QUOTE_ALL), frame_of(rows)
    assert WAYS.is_written_back_as_same_bytes(data, frame, ["A", "B"])
    assert not WAYS.is_written_back_as_same_bytes(data[:-1] + b"x", frame, ["A", "B"])
    assert not WAYS.is_written_back_as_same_bytes(data + b"x", frame, ["A", "B"])


@pytest.mark.parametrize(
    ("data", "columns"),
    [
        (b'"a",b\n"c",d\n', ["A"]),
        (b'a,"b"\nc,"d"\n', ["B"]),
        (b'a,"b,"\nc,d\n', []),
        (b'"a","b"\n"c","d"\n', ["A", "B"]),
    ],
)
def test_columns_that_are_always_quoted_are_found(data: bytes, columns: list[str]) -> None:
    """Quotes that a cell needs show nothing."""
    frame = pl.read_csv(data, has_header=False, new_columns=["A", "B"])
    assert WAYS.find_needlessly_quoted_columns(data, frame) == columns
    assert WAYS.is_written_back_as_same_bytes(data, frame, columns)
