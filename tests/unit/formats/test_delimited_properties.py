"""Tables written and damaged at random: the reader agrees with the oracle, or both refuse."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import chain, product
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.formats.oracle import OracleRefusalError, parse, table

from crossdock.errors import RefusedError
from crossdock.reading.formats import polars_delimited_parser
from crossdock.reading.formats.delimited_files import read_delimited_rows, read_delimited_rows_at_lines
from crossdock.reading.formats.delimited_layout import DelimitedFormat
from crossdock.reading.formats.polars_delimited_parser import DelimitedRecordForm, PolarsDelimitedParser

SETTINGS = settings(deadline=None, max_examples=examples(120), suppress_health_check=[HealthCheck.too_slow])
CHUNKS = st.sampled_from([1, 2, 3, 5, 7, 16, 64, 1 << 20])
DELIMITERS = st.sampled_from([",", ";", "|", "\t", "+|", "||", "¦", " ", "a", "\x01", "^", "]", "-", "\\"])
ENDS = st.sampled_from(["\n", "\r\n"])
QUOTES = st.sampled_from(['"', "'"])
TAILS = st.sampled_from(["", "cut", "DOS", "cut, DOS"])  # without the last line end, with DOS's end of a file
QUOTED = st.integers(0, 2)  # only what needs quotes, every column, every other one
SPECIAL = st.sampled_from([*"\"',;|+a^]-\\ \n\tTRL0", "\r\n", "ü", "€", "🚚", "\u2028"])
TEXT = st.lists(SPECIAL | st.characters(codec="utf-8"), max_size=6).map("".join)
ODD_BYTES = st.sampled_from(
    [b'"', b",", b"\n", b"\r", b"\r\n", b"\x00", b"\x1a", b"\xff", b"\xef\xbb\xbf", b'""', b"x"]
)


def allowed(cell: str) -> bool:
    """Whether a cell may stand in a file at all, in quotes."""
    return not any(
        (ord(here) < 32 and here not in "\t\n") or 127 <= ord(here) < 160 or here == "\ufeff"
        for here in cell.replace("\r\n", "\n")
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    width = draw(st.integers(1, 4))
    header = [f"C{n}" + draw(st.sampled_from(["", ",", '"', "\n", "'"])) for n in range(width)]
    header[-1] = draw(st.sampled_from([header[-1], "*", "^C0$", "_beside"]))  # as any other
    row = st.lists(TEXT.filter(allowed), min_size=width, max_size=width)
    rows = draw(st.lists(row.filter(lambda cells: cells != header), max_size=6))
    return header, rows


def write(records: Sequence[Sequence[str]], delimiter: str, quote: str, end: str, each: int) -> bytes:
    """The records as text; quotes where they are needed, and around one column in *each*, none for 0."""

    def cell(number: int, value: str, alone: bool) -> str:
        special = delimiter in value or any(here in value for here in (quote, "\n", "\r", delimiter[0]))
        wanted = special or (alone and not value) or (each and number % each == 0)
        return quote + value.replace(quote, quote * 2) + quote if wanted else value

    lines = (delimiter.join(cell(number, value, len(row) == 1) for number, value in enumerate(row)) for row in records)
    return "".join(line + end for line in lines).encode()


def looked_at(few: bool) -> AbstractContextManager[object]:
    """Takes small files for those in which quotes are few, so that each is looked at."""
    return mock.patch.object(polars_delimited_parser, "_FEW", 0 if few else polars_delimited_parser._FEW)


def read_some(data: bytes, layout: DelimitedFormat, chunk: int, lines: list[int]) -> list[pl.DataFrame]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        return list(read_delimited_rows_at_lines(path, layout, lines, name="file", batch_rows=2, _chunk=chunk))


def read(
    data: bytes, layout: DelimitedFormat, chunk: int, batch_rows: int = 50_000, *, few: bool
) -> list[pl.DataFrame]:
    with tempfile.TemporaryDirectory() as folder, looked_at(few):
        path = Path(folder) / "file"
        path.write_bytes(data)
        return list(read_delimited_rows(path, layout, name="file", batch_rows=batch_rows, _chunk=chunk))


@SETTINGS
@given(
    table=tables(),
    delimiter=DELIMITERS,
    quote=QUOTES,
    end=ENDS,
    each=QUOTED,
    tail=TAILS,
    sizes=st.tuples(CHUNKS, st.integers(1, 4)),
    wanted=st.sets(st.integers(0, 5)),
    few=st.booleans(),
)
def test_what_is_written_is_read(
    table: tuple[list[str], list[list[str]]],
    delimiter: str,
    quote: str,
    end: str,
    each: int,
    tail: str,
    sizes: tuple[int, int],
    wanted: set[int],
    few: bool,
) -> None:
    """Any table of text comes back cell by cell, with the lines that the oracle counts, in batches as asked.

    So do some of its rows, where only those are read.
    """
    header, rows = table
    chunk, batch_rows = sizes
    data = write([header, *rows], delimiter, quote, end, each)
    data = (data.removesuffix(end.encode()) if "cut" in tail else data) + (b"\x1a" if "DOS" in tail else b"")
    records = parse(data, delimiter=delimiter, quote=quote)
    assert [cells for _, cells in records] == [header, *rows]
    frames = read(data, DelimitedFormat(delimiter=delimiter, quote=quote), chunk, batch_rows, few=few)
    assert [row for frame in frames for row in frame.rows()] == [(*cells, line) for line, cells in records[1:]]
    assert all(frame.height <= batch_rows for frame in frames)
    some = [record for number, record in enumerate(records[1:]) if number in wanted]
    picked = read_some(data, DelimitedFormat(delimiter=delimiter, quote=quote), chunk, [line for line, _ in some])
    assert [row for frame in picked for row in frame.rows()] == [(*cells, line) for line, cells in some]
    for frame in (*frames, *picked):
        assert frame.schema == {**dict.fromkeys(header, pl.String()), "_line": pl.UInt64()}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good file with some bytes cut out, put in or moved."""
    header, rows = draw(tables())
    data = write([header, *rows], ",", '"', draw(ENDS), draw(QUOTED))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(len(data), at + 3)))
        data = data[:at] + draw(st.one_of(ODD_BYTES, st.binary(max_size=3), st.just(b""))) + data[end:]
    return data


@SETTINGS
@given(data=damaged(), chunk=CHUNKS, few=st.booleans())
def test_damage_is_never_misread(data: bytes, chunk: int, few: bool) -> None:
    """A damaged file gives what the oracle reads in it, or both refuse it."""
    assume(not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")))
    try:
        _, expected = table(data)
    except OracleRefusalError:
        with pytest.raises(RefusedError):
            read(data, DelimitedFormat(), chunk, few=few)
    else:
        assert [row for frame in read(data, DelimitedFormat(), chunk, few=few) for row in frame.rows()] == expected


@pytest.mark.parametrize(("end", "special", "most"), [("\n", ["\n"], 6), ("\r\n", ["\r\n", "\r", "\n"], 5)])
def test_every_short_text_is_looked_at_right(end: str, special: list[str], most: int) -> None:
    """Of all texts of some marks those are taken that the oracle reads as two columns, and as it reads them."""
    marks, shape = ["a", ",", '"', *special], DelimitedRecordForm(["A", "B"], ",", '"', end == "\r\n", None)
    proof, taken = PolarsDelimitedParser(shape)._parse_if_counts_agree, 0
    with looked_at(few=True):
        for text in chain.from_iterable(product(marks, repeat=length) for length in range(1, most + 1)):
            data = ("".join(text).removesuffix(end) + end).encode()
            frame = proof(data, data.count(b"\n"))
            taken += frame is not None
            assert (frame.rows() if frame is not None else None) == _two_columns(data), data
    assert taken > 30


def _two_columns(data: bytes) -> list[tuple[str, ...]] | None:
    try:
        records = [tuple(cells) for _, cells in parse(data)]
    except OracleRefusalError:
        return None
    return records if all(len(cells) == 2 for cells in records) else None


@SETTINGS
@given(text=st.text(st.sampled_from(list('ab,"\n')), max_size=24), end=ENDS, chunk=CHUNKS, few=st.booleans())
def test_short_alphabet_is_never_misread(text: str, end: str, chunk: int, few: bool) -> None:
    """Files of hardly anything but quotes, delimiters and line ends are read as the oracle reads them, or refused."""
    data = f"A,B\n{text}".replace("\n", end).encode()
    try:
        _, expected = table(data)
    except OracleRefusalError:
        with pytest.raises(RefusedError):
            read(data, DelimitedFormat(), chunk, few=few)
    else:
        assert [row for frame in read(data, DelimitedFormat(), chunk, few=few) for row in frame.rows()] == expected
