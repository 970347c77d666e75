"""Rows of a file or page that are read a second time, from each place where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.unit.delta.things import batch

from crossdock.delta.changed_record_reading import SourceUnit
from crossdock.values.raw_rows_and_records import LINE

ROWS = batch([{"K": str(number)} for number in range(6)]).load()  # lines 2 to 7


def unit(place: str, folder: Path, reads: list[Sequence[int] | None]) -> SourceUnit:
    if place == "held":
        return SourceUnit("a.csv", None, [], held=[ROWS.head(4).reverse(), ROWS.tail(2)])
    if place == "stored":
        paths = [folder / "1.arrow", folder / "2.arrow"]
        ROWS.head(3).write_ipc(paths[0])
        ROWS.tail(3).write_ipc(paths[1])
        return SourceUnit("a.csv", None, paths)

    def again(lines: Sequence[int] | None) -> list[pl.DataFrame]:
        reads.append(lines)
        return [ROWS if lines is None else ROWS.filter(pl.col(LINE).is_in(lines))]

    return SourceUnit("a.csv", lambda lines: iter(again(lines)), [])


@pytest.mark.parametrize("place", ["held", "stored", "again"])
def test_rows_are_found_by_line(place: str, tmp_path: Path) -> None:
    """The rows at the requested lines come in the order of the lines, wherever they are."""
    reads: list[Sequence[int] | None] = []
    lines = pl.Series([2, 4, 7], dtype=pl.UInt64)
    found = pl.concat(unit(place, tmp_path, reads).read_rows_at_lines(lines))
    assert found.select("K", LINE).rows() == [("0", 2), ("2", 4), ("5", 7)]
    assert reads == ([[2, 4, 7]] if place == "again" else [])


@pytest.mark.parametrize("place", ["stored", "again"])
def test_all_rows_are_read(place: str, tmp_path: Path) -> None:
    """Without lines the whole unit is read."""
    reads: list[Sequence[int] | None] = []
    assert pl.concat(unit(place, tmp_path, reads).read_rows()).equals(ROWS)
    assert reads == ([None] if place == "again" else [])
