"""Delimited records of several types are taken apart in columns, and one by one where that is not certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.layouts import Content, read

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_files import read_delimited_rows
from crossdock.reading.formats.delimited_layout import DelimitedFormat

TYPES = {
    "A": {"names": ["T", "X", "Y"]},
    "B": {"names": ["T", "Z"]},
    "rest": {"otherwise": True, "names": ["R"]},
}
CELLS = st.text(st.sampled_from('ab1 ,"\n|'), max_size=4)
RECORD = st.one_of(st.tuples(st.just("A"), CELLS, CELLS), st.tuples(st.just("B"), CELLS), st.tuples(st.just("c")))


@given(st.lists(RECORD, min_size=1), st.sampled_from([",", "||"]), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40))
def test_records_survive_being_written_and_read(
    rows: list[tuple[str, ...]], delimiter: str, end: str, chunk: int
) -> None:
    """Of each type, in the order of the file, with the line where each begins, whatever is in quotes."""
    texts = [delimiter.join(quoted(cell) for cell in row) + end for row in rows]
    begins = [1 + "".join(texts[:number]).count("\n") for number in range(len(rows))]
    content = Content("".join(texts).encode())
    for name, code in (("A", "A"), ("B", "B"), ("rest", "c")):
        form = DelimitedFormat.model_validate({"delimiter": delimiter, "record_types": TYPES, "records": name})
        found = [row for frame in read_delimited_rows(content, form, name="f", _chunk=chunk) for row in frame.rows()]
        assert found == [(*row, line) for row, line in zip(rows, begins, strict=True) if row[0] == code]


def quoted(cell: str) -> str:
    """*cell* in quotes if it needs them."""
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if any(mark in cell for mark in ',"\n|') else cell


def test_the_code_may_be_in_any_field() -> None:
    """Fields are counted from 0, as everywhere in a format."""
    types = {"A": {"names": ["N", "T"]}, "B": {"names": ["N", "T"]}}
    found = read("1,A\n2,B\n3,A\n", {"record_type": 1, "record_types": types, "records": "A"})
    assert found["N"].to_list() == ["1", "3"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"A,1,2\nA,1\n", "f:2: 2 fields instead of 3 in a record of A"),
        (b"A,1,2\nB,\xe4\n", "f:2:3: byte 0xE4 is not UTF-8"),
        (b"A,1,2\nB,\x01\n", r"f:2:3: control character U\+0001"),
        (b"A,1,2\r\nB,1\n", "f:2: the line ends with LF, the lines before it with CRLF"),
        (b'A,1,"2\n', "f:1:5: .*never closed"),
        (b"", "f: the file is empty"),
    ],
)
def test_faults_have_their_places(data: bytes, expected: str) -> None:
    """The slow way decides about each record that the fast one does not prove right."""
    with pytest.raises(RefusedError, match=f"^{expected}"):
        read(data, {"record_types": TYPES, "records": "A"})


def test_row_ends_may_be_declared() -> None:
    """Line breaks inside of rows are then text."""
    config = {"delimiter": "+|", "row_end": "&|\n", "quote": None, "record_types": TYPES, "records": "B"}
    assert read("A+|1+|2&|\nB+|x\ny&|\n", config).rows() == [("B", "x\ny", 2)]
