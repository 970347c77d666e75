"""A stream, its batches and its scan, for tests of this package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from crossdock.connector import Context, Stream
from crossdock.delta.latest_records import LatestRecords
from crossdock.delta.row_preparation import FP, KEY_HASH
from crossdock.state.sidecar_files.key_index_files import KNOWN_FP
from crossdock.values.raw_rows_and_records import LINE, RawBatch, Record
from crossdock.values.run_states_and_tally import Tally

Rows = Sequence[Mapping[str, str | None]]


class Things(Stream[Any]):
    """A stream of products with key K, and the given attributes."""

    name, resource, key = "things", "product", ("K",)

    def __init__(self, **facts: Any) -> None:
        for name, value in facts.items():
            setattr(self, name, value)

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        raise AssertionError("the tests pass batches")

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise AssertionError("the tests map nothing")


def batch(rows: Rows, source: str = "a.csv", first_line: int = 2) -> RawBatch:
    columns = list(rows[0])
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    return RawBatch(
        source, frame.with_columns(pl.int_range(first_line, first_line + len(rows), dtype=pl.UInt64).alias(LINE))
    )


def rereadable(whole: RawBatch, size: int, reads: list[Sequence[int] | None] | None = None) -> list[RawBatch]:
    """The rows of *whole* in batches of *size* from a source that can be read again; appends each read to *reads*."""
    frame = whole.load()

    def again(lines: Sequence[int] | None) -> Iterator[pl.DataFrame]:
        if reads is not None:
            reads.append(lines)
        return (frame if lines is None else frame.filter(pl.col(LINE).is_in(lines))).iter_slices(size)

    return [RawBatch(whole.source, part, again=again) for part in frame.iter_slices(size)]


def scanned(stream: Stream[Any], batches: Sequence[RawBatch], work: Path) -> tuple[LatestRecords, Tally]:
    """A scan of *batches*, whose row tally balances."""
    scan, tally = LatestRecords(stream, "w.things", work), Tally()
    scan.find_latest_of_each_key(batches, tally, lambda _rows: None)
    assert tally.rows_read == (
        sum(tally.rows_filtered.values()) + tally.rows_superseded + tally.rows_rejected + tally.rows_in_records
    )
    return scan, tally


def records(scan: LatestRecords) -> list[Record]:
    return [read.record for read in scan.read_chosen_records(scan.latest)]


def known_of(scan: LatestRecords) -> pl.DataFrame:
    """The known keys of a state that has delivered everything in *scan*."""
    return scan.latest.select(KEY_HASH, pl.col(FP).alias(KNOWN_FP))
