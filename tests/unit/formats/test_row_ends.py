"""Rows that end with declared text: whatever line breaks are in them, they are read as they were written."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_files import read_delimited_rows, read_delimited_rows_at_lines
from crossdock.reading.formats.delimited_layout import DelimitedFormat

SETTINGS = settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
CHUNKS = st.sampled_from([1, 2, 3, 5, 7, 16, 1 << 20])
CELL = st.text(st.sampled_from([*"ab+|&#~\r\n\"'", "ü", "🚚", " "]), max_size=6)
Rows = list[tuple[str | int, ...]]


def read(data: bytes, layout: DelimitedFormat, chunk: int = 1 << 20, lines: Sequence[int] | None = None) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        if lines is None:
            return [row for frame in read_delimited_rows(path, layout, name="f", _chunk=chunk) for row in frame.rows()]
        return [
            row
            for frame in read_delimited_rows_at_lines(path, layout, lines, name="f", _chunk=chunk)
            for row in frame.rows()
        ]


@SETTINGS
@example(table=[["x", "\r\ny"]], delimiter="+|", end="|\n", encoding="utf-8", chunk=7, wanted=set())
@given(
    table=st.integers(2, 3).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=6)),
    delimiter=st.sampled_from(["+|", "|", "\t", ";", "\x0e"]),
    end=st.sampled_from(["&|\n", "&|\r\n", "\r\n", "|\n", "~", "\r", "\x1e", "\x85", "#@#@#\n", "||"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-be", "cp037", "gb18030"]),
    chunk=CHUNKS,
    wanted=st.sets(st.integers(0, 5)),
)
def test_rows_are_cut_at_their_ends_alone(
    table: list[list[str]], delimiter: str, end: str, encoding: str, chunk: int, wanted: set[int]
) -> None:
    """A file is what splitting its text at row ends and delimiters gives; so are some of its rows, read alone."""
    assume(end not in delimiter)
    text = "".join(delimiter.join(row) + end for row in [["A"] * len(table[0]) if table else ["A", "B"], *table])
    names = [f"C{number}" for number in range(len(table[0]) if table else 2)]
    rows = [line.split(delimiter) for line in text.split(end)]
    assume(end[0] in "\r\n" or end.replace("\n", "\r\n") not in text)  # LF may be CRLF, and both are refused
    assume(rows.pop() == [""] and all(len(row) == len(names) for row in rows))
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        assume(False)
    layout = DelimitedFormat(
        delimiter=delimiter, row_end=end, quote=None, encoding=encoding, header=False, names=tuple(names)
    )
    assert read(data, layout, chunk) == [(*row, number) for number, row in enumerate(rows, 1)]
    some = [(*row, number) for number, row in enumerate(rows, 1) if number in wanted]
    assert read(data, layout, chunk, [number for number in range(1, len(rows) + 1) if number in wanted]) == some


@pytest.mark.parametrize("end", ["&|\n", "&|\r\n"])
def test_a_line_break_in_the_row_end_is_lf_or_crlf(end: str) -> None:
    """As in lines: what is declared with LF may be CRLF in the file, and what is quoted comes back as it was."""
    data = f'A+|B{end}1+|x\ny\r\nz{end}2+|"a{end}b"{end}'.encode()
    layout = DelimitedFormat(delimiter="+|", row_end="&|\n")
    for chunk in (1, 7, 1000):
        assert read(data, layout, chunk) == [("1", "x\ny\r\nz", 2), ("2", f"a{end}b", 3)]
        assert read(data, layout, chunk, [3]) == [("2", f"a{end}b", 3)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("A+|B&|\n1+|x&|\r\n", "LF and with CRLF", id="both line ends"),
        pytest.param("A+|B&|\n1+|x&|\n2+|y&|", "ends within a row end", id="cut in the row end"),
        pytest.param("A+|B&|\n1+|x&|\n2&|\n", "1 field instead of 2", id="cut in a row"),
        pytest.param("A+|B&|\n1+|\x0e&|\n", "control character U\\+000E", id="control character"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 1000])
def test_damage_is_refused_at_its_row(text: str, says: str, chunk: int) -> None:
    """A file that is not what is declared is refused as a whole, with the row."""
    with pytest.raises(RefusedError, match=says) as refused:
        read(text.encode(), DelimitedFormat(delimiter="+|", row_end="&|\n"), chunk)
    assert refused.value.where is not None
    assert refused.value.where.startswith(("f:2", "f:3"))
