"""Chunks of records are bounded in number and in memory."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delta import changed_record_reading
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.state import RecordIdentity
from crossdock.values.raw_rows_and_records import Record


def keyed(number: int, cells: Mapping[str, str | None]) -> KeyedRecord:
    record = Record(f"{number}", (dict(cells),), "a.csv", (2,))
    return KeyedRecord(record, RecordIdentity("s", record.key, number, 5, None, "a.csv", 2))


def test_chunks_are_small_where_records_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk has the requested number of records, or fewer if they exceed the memory bound."""

    def chunk_sizes(cells: Mapping[str, str | None]) -> list[int]:
        reads = (keyed(number, cells) for number in range(100))
        return [len(chunk) for chunk in changed_record_reading.chunks_of_bounded_count_and_size(reads, 30)]

    monkeypatch.setattr(changed_record_reading, "MAX_BYTES", 10_000)
    assert chunk_sizes({"K": "a"}) == [30, 30, 30, 10]
    assert chunk_sizes({"K": "a" * 2_500}) == [4] * 25
    assert chunk_sizes(dict.fromkeys(map(str, range(100)), "")) == [2] * 50
    assert chunk_sizes({"K": f"[{'0,' * 99}0]"}) == [2] * 50  # values of JSON count as cells


@given(lengths=st.lists(st.integers(0, 5_000), max_size=30), most=st.integers(1, 10))
def test_chunks_keep_every_record_in_order(lengths: list[int], most: int) -> None:
    """No record is lost or moved, and only its last record takes a chunk beyond the memory bound."""
    reads = [keyed(number, {"K": "a" * length}) for number, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_record_reading, "MAX_BYTES", 10_000)
        chunks = list(changed_record_reading.chunks_of_bounded_count_and_size(iter(reads), most))
    assert [read for chunk in chunks for read in chunk] == reads
    for chunk in chunks:
        assert 1 <= len(chunk) <= most
        assert sum(64 + len(read.record.row["K"] or "") for read in chunk[:-1]) < 10_000
