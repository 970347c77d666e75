"""The profile of a stream: columns of files, members of JSON records, and the places of what is odd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from crossdock.migration import source_profile
from crossdock.migration.source_profile import SourceProfile
from crossdock.values.raw_rows_and_records import LINE, REFUSED, RawBatch, record_number_column


def batch(source: str, cells: Mapping[str, Sequence[str | None]]) -> RawBatch:
    """Rows from the second line on."""
    rows = pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))
    return RawBatch(source, rows.with_row_index(LINE, offset=2).cast({LINE: pl.UInt64}))


def profiled(*batches: RawBatch) -> SourceProfile:
    made = SourceProfile()
    for each in batches:
        made.add_batch(each)
    made.profile_buffered_rows()
    return made


@pytest.mark.parametrize("held", [1, 2, 100], ids=lambda number: f"{number} rows at once")
def test_files_may_have_different_columns(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column counts its own cells, and examples name their file and line, whatever is profiled together."""
    monkeypatch.setattr(source_profile, "_ROWS", held)
    found = profiled(
        batch("a.csv", {"A": ["1", None], "B": [" x", "y"]}), batch("b.csv", {"A": ["2", "3"], "C": ["", " z"]})
    )
    assert found.rows == 4
    assert {name: column.filled for name, column in found.columns.items()} == {"A": 3, "B": 2, "C": 1}
    places = {
        name: [(cell.source, cell.line) for each in column.findings.values() for cell in each.examples]
        for name, column in found.columns.items()
    }
    assert places == {"A": [], "B": [("a.csv", 2)], "C": [("b.csv", 3)]}


@pytest.mark.parametrize("name", ["*", "^.*$"])
def test_a_column_beyond_the_limit_is_left_out_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name is, the others are profiled."""
    monkeypatch.setattr(source_profile, "MAX_COLUMNS", 1)
    found = profiled(batch("a.csv", {"A": ["1", "2"], name: ["x", "y"]}))
    assert (found.columns["A"].whole, [*found.columns], found.has_more) == (2, ["A"], True)


def test_a_batch_on_disk_is_read(tmp_path: Path) -> None:
    """Rows that wait in an Arrow file are profiled like others."""
    kept = batch("a.csv", {"A": ["1", "2"]})
    assert isinstance(kept.rows, pl.DataFrame)
    kept.rows.write_ipc(tmp_path / "rows")
    found = profiled(RawBatch("a.csv", tmp_path / "rows"))
    assert (found.rows, found.columns["A"].whole) == (2, 2)


def test_json_records_have_a_column_for_each_scalar_member() -> None:
    """By dotted path; a list is the number of its elements, and the key's column is not counted twice."""
    items = [
        {
            "id": 1,
            "price": Decimal("9.5"),
            "to": {"city": "Ulm", "tags": ["a", "b"]},
            "lines": [{"x": 1}],
            "gone": None,
        },
        {"id": 2, "to": {}, "lines": []},
    ]
    found = profiled(RawBatch.json(items, source="/orders", key="id"))
    filled = {name: column.filled for name, column in found.columns.items()}
    assert filled == {"id": 2, "price": 1, "to.city": 1, "to.tags[]": 1, "lines[]": 2, "gone": 0}
    assert (found.columns["lines[]"].smallest, found.columns["lines[]"].largest) == ("0", "1")
    assert found.columns["price"].decimal == 1


def test_a_column_may_have_any_name() -> None:
    """Names that the profile uses itself are not mixed up."""
    names = ("place", "value", "count", "line", "hash", "day")
    found = profiled(batch("a.csv", {name: ["1", " 2"] for name in names}))
    assert {name: column.whole for name, column in found.columns.items()} == dict.fromkeys(names, 2)
    items = [{"_line": 7, "_json": 8, "*": 9}]
    assert {*profiled(RawBatch.json(items, source="/p")).columns} == {"_line", "_json", "*"}


def test_the_number_of_columns_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further members of JSON records are left out, and the profile says so."""
    monkeypatch.setattr(source_profile, "MAX_COLUMNS", 50)
    the_number_of_columns_is_bounded(50)


def the_number_of_columns_is_bounded(most: int) -> None:
    found = profiled(RawBatch.json([{f"m{number}": number for number in range(most + 1)}], source="/p"))
    assert len(found.columns) == most
    assert found.has_more
    assert not profiled(batch("a.csv", {"A": ["1"]})).has_more


def test_what_readers_say_of_rows_is_no_column() -> None:
    """Why a set of an EDI file was refused, and the number of a record."""
    assert list(profiled(batch("a.edi", {"A": ["1"], REFUSED: [""], record_number_column(["A"]): ["2"]})).columns) == [
        "A"
    ]


def test_a_batch_without_lines_is_left_to_the_engine() -> None:
    """It is the defect of a connector, which the engine reports when it uses the rows."""
    assert profiled(RawBatch("a.csv", pl.DataFrame({"A": ["1"]}))).rows == 0
