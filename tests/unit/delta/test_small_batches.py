"""Many small files are read as if each were read alone, in less time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.delta.things import Rows, Things, batch, known_of, rereadable, scanned

from crossdock.delta import changed_record_reading, latest_records
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import KEY_HASH, add_key_filter_and_fingerprint_columns
from crossdock.errors import RefusedError
from crossdock.mapping.stream_declaration import Repair
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.run_states_and_tally import Tally

cells = st.tuples(st.sampled_from(["", "1", "2", "3", " 4"]), st.sampled_from(["a", "b", "-c"]))
files = st.lists(st.tuples(st.lists(cells, min_size=1, max_size=5), st.integers(1, 5), st.booleans()), max_size=8)


def _batches(contents: list[tuple[list[tuple[str, str]], int, bool]]) -> list[RawBatch]:
    """The files, each in parts of its own size, some with one column more."""
    found = list[RawBatch]()
    for number, (file, size, has_more) in enumerate(contents):
        more = {"M": "x"} if has_more else {}
        found += rereadable(batch([{"K": key, "V": value} | more for key, value in file], f"{number}.csv"), size)
    return found


def _read(
    contents: list[tuple[list[tuple[str, str]], int, bool]], known: pl.DataFrame, held: int
) -> tuple[object, ...]:
    """Everything that a scan says of these files."""
    stream = Things(mode="append", columns={"V": Repair(strip_prefix="-")})
    with TemporaryDirectory() as work, mock.patch.object(latest_records, "_HELD_BYTES", held):
        scan, tally = LatestRecords(stream, "w.things", Path(work)), Tally()
        scan.find_latest_of_each_key(_batches(contents), tally, lambda _rows: None, lambda: known)
        found = [(each.record, each.identity) for each in scan.read_chosen_records(scan.latest)]
        letters = [(each.identity, each.raw) for each in scan.dead_letters_without_key]
    return scan.latest.sort(KEY_HASH).rows(), found, letters, sum(scan.trimmed_rows), tally


@settings(max_examples=examples(20), deadline=None)
@given(contents=files, before=files, held=st.sampled_from([0, 600, 1 << 20]))
def test_files_together_are_the_same_records(
    contents: list[tuple[list[tuple[str, str]], int, bool]],
    before: list[tuple[list[tuple[str, str]], int, bool]],
    held: int,
) -> None:
    """Records, their places, rejected rows and the tally are those of files that are prepared one by one."""
    with TemporaryDirectory() as work:
        known = known_of(scanned(Things(mode="append"), _batches(before), Path(work))[0])
    together = _read(contents, known, held)
    with mock.patch.object(changed_record_reading, "SMALL", 0):
        assert _read(contents, known, held) == together


def test_many_files_are_prepared_at_once(tmp_path: Path) -> None:
    """A thousand files of one row are one call, and the records are found without reading a file again."""
    reads: list[Sequence[int] | None] = []
    parts = [rereadable(batch([{"K": f"{n}", "V": "a"}], f"{n}.csv"), 1, reads)[0] for n in range(1_000)]
    with mock.patch(
        "crossdock.delta.changed_record_reading.add_key_filter_and_fingerprint_columns",
        wraps=add_key_filter_and_fingerprint_columns,
    ) as prepared:
        scan, _ = scanned(Things(mode="append"), parts, tmp_path)
        assert [each.record.key for each in scan.read_chosen_records(scan.latest)] == [f"{n}" for n in range(1_000)]
    assert prepared.call_count == 1
    assert not reads


def test_files_are_prepared_together_up_to_a_size(tmp_path: Path) -> None:
    """The first part of a file that goes on is not one of them, and does not count."""
    goes_on = rereadable(batch([{"K": "x", "V": "a"}, {"K": "y", "V": "a"}], "x.csv"), 1)
    files = [rereadable(batch([{"K": f"{n}", "V": "a"}], f"{n}.csv"), 1)[0] for n in range(8)]
    limit = 4 * int(files[0].load().estimated_size())
    with (
        mock.patch.object(changed_record_reading, "_BYTES_AT_ONCE", limit),
        mock.patch(
            "crossdock.delta.changed_record_reading.add_key_filter_and_fingerprint_columns",
            wraps=add_key_filter_and_fingerprint_columns,
        ) as prepared,
    ):
        scanned(Things(mode="append"), [*goes_on, *files], tmp_path)
    assert prepared.call_count == 2


def test_an_error_names_the_file(tmp_path: Path) -> None:
    """Also if its rows were to be prepared with those of other files."""
    rows: list[Rows] = [[{"K": "1", "V": "a"}], [{"L": "2", "V": "a"}]]
    parts = [part for number, file in enumerate(rows) for part in rereadable(batch(file, f"{number}.csv"), 1)]
    with pytest.raises(RefusedError, match=r"^1\.csv:1: missing column"):
        scanned(Things(mode="append"), parts, tmp_path)
