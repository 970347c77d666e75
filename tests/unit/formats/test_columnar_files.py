"""Parquet and Arrow files: values exactly as declared, or the file is refused with its column or row, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Literal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.formats.layouts import Content, layout
from tests.unit.formats.parquet import BYTES, STRUCT, with_footer

from crossdock.errors import RefusedError
from crossdock.reading.formats import parquet_and_arrow_files, parquet_and_arrow_reader_process
from crossdock.reading.formats.file_formats import read_rows, read_rows_at_lines
from crossdock.reading.formats.parquet_and_arrow_reader_process import answer_request
from crossdock.values.raw_rows_and_records import JSON, LINE

GOLDEN = Path(__file__).parent / "golden"
TEXTS = {
    "text": ["0017", "", ""],
    "int8": ["1", "-2", ""],
    "uint64": ["18446744073709551615", "0", ""],
    "double": ["0.1", "12", ""],
    "decimal": ["12.30", "-0.01", ""],
    "decimal38": ["12345678901234567890123456789012.345678", "-0.010000", ""],
    "date": ["2026-11-01", "0001-01-01", ""],
    "local": ["2026-11-01T12:00:00.120", "2026-11-01T00:00:00", ""],
    "nanoseconds": ["2026-11-01T12:00:00.000000001", "1970-01-01T00:00:00", ""],
    "zone": ["2026-11-01T13:00:00.120+01:00", "2026-07-01T02:00:00+02:00", ""],
    "time": ["12:00:00", "12:00:01.000005", ""],
    "truth": ["true", "false", ""],
    "dictionary": ["a", "b", ""],
    "nothing": ["", "", ""],
}
NESTED = {
    "list": [[1, 2], [], None],
    "object": [{"price": 1.5, "on": "2026-11-01"}, {"price": None, "on": None}, None],
    "map": [[{"key": "k", "value": "v"}], [], None],
}
DUCKDB = {
    "id": "e4eaaaf2-d142-11e1-b3e4-080027620cdd", "amount": "1.50", "enum": "x", "small": "200", "time": "12:00:00",
    "instant": "2026-11-01T11:00:00+00:00", "json": '{"a":1}',
}  # fmt: skip
SMALL = pl.DataFrame({"SKU": ["0017", "0018", None], "QTY": [1, 2, 3]})


class Here:
    """What the process of a file answers, without the process, which takes half a second to begin."""

    def __init__(self, file: BinaryIO, request: Mapping[str, Any]) -> None:
        self._found = answer_request(file, request)
        self._frame = b""

    def __iter__(self) -> Iterator[Any]:
        for line in self._found:
            answer = json.loads(line)
            if "frame" in answer:
                self._frame = next(self._found)
            yield answer

    def read_bytes_after_answer(self, size: int) -> bytes:
        assert len(self._frame) == size
        return self._frame


@contextmanager
def here(_task: object, file: BinaryIO, request: Mapping[str, Any], _limits: object) -> Iterator[Here]:
    with TemporaryFile() as copy:
        file.seek(0)
        copy.write(file.read())
        copy.flush()
        yield Here(copy, request)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_and_arrow_files, "run_reader_process", here)


def read(data: bytes, batch_rows: int = 100_000, kind: str = "parquet", **keys: Any) -> pl.DataFrame:
    return pl.concat(read_rows(Content(data), layout(kind=kind, **keys), name="f", batch_rows=batch_rows))


def refused(data: bytes, kind: str = "parquet", **keys: Any) -> str:
    """The refusal of a file, none of whose rows count."""
    with pytest.raises(RefusedError) as error:
        read(data, kind=kind, **keys)
    assert str(error.value.where).startswith("f")
    assert error.value.hint
    return f"{error.value.where}: {error.value.message}"


def parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    file = BytesIO()
    frame.write_parquet(file, **options)
    return file.getvalue()


def arrow(frame: pl.DataFrame, **options: Any) -> bytes:
    file = BytesIO()
    frame.write_ipc(file, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_values_of_another_writer_are_read_as_they_are_declared(kind: str) -> None:
    """Types of pyarrow: as texts in columns, and as members of JSON objects with lists and objects in them."""
    data = (GOLDEN / f"pyarrow.{kind}").read_bytes()
    assert read(data, kind=kind, columns=list(TEXTS), floats=["double"]).to_dict(as_series=False) == {
        **TEXTS, LINE: [1, 2, 3],
    }  # fmt: skip
    columns = ["text", "double", "decimal38", "truth", "zone", *NESTED]
    found = read(data, 2, kind=kind, columns=columns, floats=["double"], objects=True)
    assert found[LINE].to_list() == [1, 2, 3]
    objects = [json.loads(text) for text in found[JSON]]
    assert {name: [each[name] for each in objects] for name in NESTED} == NESTED
    assert [each["text"] for each in objects] == ["0017", "", None]
    assert '"decimal38":12345678901234567890123456789012.345678,"double":0.1' in found[JSON][0]
    assert (objects[0]["truth"], objects[0]["zone"]) == (True, TEXTS["zone"][0])


def test_types_that_only_the_footer_shows_are_read() -> None:
    """A UUID, an enum and JSON of DuckDB; instants of the old type are in UTC, or refused where they are not exact."""
    found = read((GOLDEN / "duckdb.parquet").read_bytes(), columns=list(DUCKDB))
    assert found.drop(LINE).to_dicts() == [DUCKDB, DUCKDB]
    old = (GOLDEN / "int96.parquet").read_bytes()
    assert refused(old) == "f:row 2, column at: a date that cannot be read"
    nested = (GOLDEN / "int96_list.parquet").read_bytes()
    assert "column list: a list or an object with instants of a deprecated type" in refused(nested, objects=True)
    at = pl.DataFrame({"AT": [datetime(2026, 11, 1, 12)]})  # noqa: DTZ001  without a zone

    def without_logical_type(footer: dict[int, Any]) -> None:
        column = footer[2][1][1][1]
        column.pop(10)
        column[6] = (5, 10)  # TIMESTAMP_MICROS
        footer.pop(5, None)  # what polars says of its types

    assert read(parquet(at))["AT"].to_list() == ["2026-11-01T12:00:00"]
    assert read(with_footer(parquet(at), without_logical_type))["AT"].to_list() == ["2026-11-01T12:00:00+00:00"]


@pytest.mark.parametrize("write", [parquet, arrow])
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_dates_out_of_range_are_refused_wherever_they_are(
    write: Callable[..., bytes], unit: Literal["ms", "us"]
) -> None:
    """In columns, and in lists and objects inside of each other, with the number of the row."""
    last, later = datetime(9999, 12, 31, tzinfo=UTC), pl.Datetime(unit, "UTC")
    at = pl.Series([None, last, last]).cast(later)
    shift = pl.when(pl.int_range(pl.len()) == 2).then(pl.duration(days=1)).otherwise(pl.duration())
    frame = at.to_frame("at").with_columns(pl.col("at") + shift)
    nested = {
        "column": pl.col("at"),
        "list": pl.concat_list("at", pl.lit(None, later)),
        "array": pl.concat_list("at").cast(pl.Array(later, 1)),
        "object": pl.struct("at", other=pl.lit("x")),
        "deeper": pl.concat_list(pl.struct(inner=pl.struct(list=pl.concat_list("at")))),
    }
    for name, value in nested.items():
        data = write(frame.select(value.alias(name)))
        assert refused(data, write.__name__, objects=True) == f"f:row 3, column {name}: a date that cannot be read"
        good = write(frame[:2].select(value.alias(name)))
        assert read(good, kind=write.__name__, objects=True).height == 2


def test_columns_that_cannot_be_exact_text_are_refused() -> None:
    """Each with its name and what to do; those that are not chosen do no harm."""
    for kind in ("parquet", "arrow"):
        data = (GOLDEN / f"pyarrow.{kind}").read_bytes()
        for column, says in {
            "double": "a floating-point number",
            "float": "a floating-point number of fewer than 64 bits, which holds six digits",
            "bytes": "bytes and no text",
            "duration": "of a type that cannot be read (Duration(time_unit='us'))",
            "list": "a list or an object",
            "other": "the file lacks this column",
        }.items():
            assert refused(data, kind, columns=["text", column]) == f"f:column {column}: {says}"
    nested = parquet(pl.DataFrame({"LINES": [[{"weight": 1.5, "n": 1}]]}))
    assert refused(nested, objects=True) == "f:column LINES.weight: a floating-point number"
    found = read(nested, objects=True, floats=["LINES.weight"])
    assert found[JSON].to_list() == ['{"LINES":[{"n":1,"weight":1.5}]}']


def test_doubles_have_their_shortest_text_or_are_refused() -> None:
    """As those of sheets: a double keeps 15 digits."""
    good = {
        "0.1": 0.1, "12": 12.0, "-0.0000001": -1e-7, "123456789.123": 123456789.123, "0": -0.0,
        "999999999999999": 999999999999999.0, "100000000000.25": 100000000000.25, "0.30000000000000004": 0.1 + 0.2,
    }  # fmt: skip
    data = parquet(pl.DataFrame({"X": [*good.values(), None]}))
    assert read(data, floats=["X"])["X"].to_list() == [*good, ""]
    assert json.loads(read(data, floats=["X"], objects=True)[JSON][1]) == {"X": 12}
    for bad in (float("nan"), float("inf"), 1e15, 123456789012.12345):
        data = parquet(pl.DataFrame({"X": [1.0, bad]}))
        assert refused(data, floats=["X"]).startswith("f:row 2, column X: ")
        assert refused(data, floats=["X"], objects=True).startswith("f:row 2: ")


def test_batches_are_numbered_and_rows_read_again() -> None:
    """In any row groups, with no row, and from a file that is in memory or on disk."""
    frame = pl.DataFrame({"SKU": [f"{number:04}" for number in range(500)]})
    pages = parquet(frame, data_page_size=64, compression="zstd")
    for kind, data in (
        ("parquet", parquet(frame, row_group_size=70)),
        ("parquet", pages),
        ("arrow", arrow(frame, record_batch_size=70)),
    ):
        form = layout(kind=kind)
        frames = list(read_rows(Content(data), form, name="f", batch_rows=64))
        assert max(each.height for each in frames) <= 64
        whole = pl.concat(frames)
        assert whole.rows() == [(text, number) for number, text in enumerate(frame["SKU"], 1)]
        assert whole.schema == {"SKU": pl.String, LINE: pl.UInt64}
        some = pl.concat(read_rows_at_lines(Content(data), form, [3, 400], name="f"))
        assert some.rows() == [("0002", 3), ("0399", 400)]
        empty = parquet(frame.head(0)) if kind == "parquet" else arrow(frame.head(0))
        assert read(empty, kind=kind).schema == whole.schema
        assert read(empty, kind=kind, objects=True).schema == {JSON: pl.String, LINE: pl.UInt64}


def test_long_texts_make_more_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has few bytes, and one row has a limit of its own."""
    monkeypatch.setattr(parquet_and_arrow_reader_process, "FRAME_BYTES", 5)
    monkeypatch.setattr(parquet_and_arrow_reader_process, "MAX_ROW", 6)
    data = parquet(pl.DataFrame({"A": ["12", "34", "56", "123456", ""], "B": ["", "", "78", "", None]}))
    frames = list(read_rows(Content(data), layout(kind="parquet"), name="f"))
    assert [each[LINE].to_list() for each in frames] == [[1, 2], [3], [4], [5]]
    assert pl.concat(frames)["A"].to_list() == ["12", "34", "56", "123456", ""]
    data = parquet(pl.DataFrame({"A": ["12", "1234"], "B": ["", "567"]}))
    assert refused(data) == "f:row 2: a row of more than 0 MiB"


def test_only_parquet_states_its_rows() -> None:
    """In a footer that is written last; and columns of JSON objects have paths."""
    assert layout(kind="parquet").states_rows
    assert not layout(kind="arrow").states_rows
    assert layout(kind="arrow", objects=True).has_paths
    assert not layout(kind="arrow").has_paths


def replaced(*path: int, to: Any) -> Callable[[dict[int, Any]], object]:
    """A change of a number in a footer; in lists, of the first element."""

    def change(footer: dict[int, Any]) -> None:
        place = footer
        for number in path[:-1]:
            found = place[number][1]
            place = found[1][0] if isinstance(found, tuple) else found
        place[path[-1]] = to

    return change


def _same_names(footer: dict[int, Any]) -> None:
    footer[2][1][1][2][4] = (BYTES, b"SKU")


LIES: Mapping[str, Callable[[dict[int, Any]], object]] = {
    "states 4 rows, and its row groups do not": replaced(3, to=(6, 4)),
    "row group 1: states 9,000,000,000 bytes, more than the limit": replaced(4, 2, to=(6, 9_000_000_000)),
    "row group 1: has its columns in another file": replaced(4, 1, 1, to=(BYTES, b"../other")),
    "is encrypted": replaced(8, to=(STRUCT, {})),
    "column SKU: two columns have the same name": _same_names,
    "the footer is damaged": replaced(4, 3, to=(BYTES, b"3")),
}


def test_a_footer_that_lies_is_found() -> None:
    """Counts, sizes, places and names, before polars reads anything; and a number of rows that no file has."""
    for says, change in LIES.items():
        assert says in refused(with_footer(parquet(SMALL), change))

    def many(footer: dict[int, Any]) -> None:
        replaced(3, to=(6, 10**12))(footer)
        replaced(4, 3, to=(6, 10**12))(footer)

    assert "states 1,000,000,000,000 rows in" in refused(with_footer(parquet(SMALL), many))


def test_what_is_no_whole_file_of_its_kind_is_named() -> None:
    """Nothing, a cut file, one that is being written, other kinds, and what polars ends at without an error."""
    for kind, data in (("parquet", parquet(SMALL)), ("arrow", arrow(SMALL))):
        assert refused(b"", kind) == "f: the file is empty"
        assert refused(data[:-5], kind) == "f: the file has no footer"
        assert refused(data[:6], kind) == "f: the file has no footer"
        assert refused(b"SKU,QTY\n0017,1\n", kind).startswith("f: the file is not a")
    assert refused(b"PARE" + bytes(20)) == "f: the file is an encrypted Parquet file"
    assert refused(parquet(SMALL)[:-4] + b"PARE") == "f: is encrypted"
    assert refused(arrow(SMALL)) == "f: the file is an Arrow file"
    assert refused(b"FEA1" + bytes(20), "arrow") == "f: the file is a Feather file of version 1"
    assert refused(b"\xff\xff\xff\xff" + bytes(20), "arrow") == "f: the file is a stream of Arrow"
    assert refused(b"\x1f\x8b\x08" + bytes(20)) == "f: the file is packed with gzip"
    assert refused((GOLDEN / "decimal60.parquet").read_bytes()) == "f:column a: a decimal of 60 digits"
    for bad in ("", LINE):
        assert "column 2" in refused(parquet(SMALL.rename({"QTY": bad})))


cells: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "int": st.integers(-(2**63), 2**63 - 1),
    "decimal": st.decimals(-(10**20), 10**20, places=4),
    "date": st.dates(),
    "at": st.datetimes(timezones=st.just(UTC)),
    "time": st.times(),
    "truth": st.booleans(),
}
SCHEMA: dict[str, Any] = {
    "text": pl.String, "int": pl.Int64, "decimal": pl.Decimal(28, 4), "date": pl.Date,
    "at": pl.Datetime("us", "UTC"), "time": pl.Time, "truth": pl.Boolean,
}  # fmt: skip


def _told(text: str, value: Any) -> bool:
    """Whether *text* says what Python's own types read as *value*."""
    match value:
        case None:
            return text == ""
        case bool():
            return text == str(value).lower()
        case datetime() | date() | time():
            return type(value).fromisoformat(text) == value
        case Decimal():
            return Decimal(text) == value
    return text == str(value)


@settings(max_examples=examples(60), deadline=None)
@given(rows=st.lists(st.fixed_dictionaries({name: st.none() | each for name, each in cells.items()}), max_size=20))
def test_what_was_written_is_read(rows: list[dict[str, Any]]) -> None:
    """Any values, in both kinds of file."""
    frame = pl.DataFrame(rows, schema=SCHEMA)
    for kind, data in (("parquet", parquet(frame)), ("arrow", arrow(frame))):
        found = read(data, kind=kind).drop(LINE).to_dicts()
        assert len(found) == len(rows)
        for texts, row in zip(found, rows, strict=True):
            assert all(_told(texts[name], row[name]) for name in SCHEMA), (texts, row)
