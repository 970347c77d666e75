"""Tests that every stream should pass, to inherit in the tests of a connector.

Their assertions name the record by its place. Values appear only where they are the author's example data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from unittest import SkipTest, mock

import polars as pl

from crossdock.config.project.connections import BoundStream
from crossdock.delta.row_preparation import DELETED, KEY, SKIP, is_added, prepare
from crossdock.errors import RecordError
from crossdock.mapping.own_names import at_source
from crossdock.planning.draft_records import drafted
from crossdock.records import RawBatch, Record
from crossdock.testing.connector_context import bound_stream
from crossdock.testing.drifted_records import drifted, numbers_in, with_numbers
from crossdock.testing.hash_seeds import readings
from crossdock.testing.sync_contract import SyncContract
from crossdock.values.record_keys import key_parts_of

_SHORT, _LONG = Decimal(4321), Decimal("123456789012345.6789")  # as many digits as a resource accepts; a float has 17
_ZONES = ("UTC", "America/St_Johns", "Pacific/Kiritimati")


class StreamContract(SyncContract):
    """Tests of one stream, for any source; `HttpStreamContract` has more.

    Set the attributes of `StreamUnderTest`, and define `network` or `prepare`.

    Attributes:
        decimals: Decimal places to which the mapping rounds amounts, as the source's own sums do; None if it rounds
            nothing.
    """

    decimals: int | None = None

    def example_records(self) -> tuple[BoundStream, list[Record]]:
        trial = self.example()
        return trial.bound, [tried.record for tried in trial.records]

    # ---- tests

    def test_the_example_is_read_and_mapped(self) -> None:
        """Reading ends without an error, and every record has a draft."""
        for tried in self.example().records:
            assert tried.problem is None, f"{_place(tried.record)}: {tried.problem}"

    def test_a_second_run_reads_the_same(self) -> None:
        """Two runs over the same data give the same keys, rows and drafts."""
        first, second = (
            [(tried.record.key, tried.record.rows, tried.members) for tried in self.example().records] for _ in range(2)
        )
        assert first == second, "a second run over the same data reads other keys, rows or drafts"

    def test_a_record_is_fetched_as_it_is_pulled(self) -> None:
        """`Stream.fetch` gives the rows that `pull` gives. Otherwise webhooks and runs would change records back and
        forth.

        Keys that cannot be fetched by themselves are allowed, but not all of them.
        """
        trial = self.example()
        if not trial.bound.stream.fetches:
            raise SkipTest("the stream fetches no named records")
        pulled = {tried.record.key: tried.record for tried in trial.records}
        bound = bound_stream(self.connector, self.new_context(), self.stream)
        with self.in_environment():
            found = fetched_records(bound, list(pulled)[: bound.stream.fetch_size])
        assert found.keys() & pulled.keys(), "fetch gives none of the records that pull gives"
        for key, rows in found.items():
            same = key not in pulled or rows == pulled[key].rows
            assert same, f"{_place(pulled[key])}: fetch gives other rows of it"

    def test_the_mapping_is_pure(self) -> None:
        """A draft depends on its record alone: not on other records, their order, the time or the time zone."""
        bound, records = self.example_records()
        expected = [_mapped(bound, record) for record in records]
        for record in records:
            for _, changed in drifted(record):
                _mapped(bound, changed)  # a mapping that keeps records now keeps others
        again = [_mapped(bound, record) for record in reversed(records)][::-1]
        for record, one, other in zip(records, expected, again, strict=True):
            assert one == other, f"{_place(record)}: mapped twice, the drafts differ"
        fresh = bound_stream(self.connector, bound.context, self.stream)
        for record, one in zip(records, expected, strict=True):
            assert one == _mapped(fresh, record), f"{_place(record)}: a new instance of the stream maps it differently"
        for zone in _ZONES:
            with _time_zone(zone):
                for record, one in zip(records, expected, strict=True):
                    assert one == _mapped(bound, record), f"{_place(record)}: the draft depends on the time zone"

    def test_keys_and_drafts_are_the_same_in_every_process(self) -> None:
        """The key, the rows and the draft of a record do not depend on how Python hashes texts (PYTHONHASHSEED)."""
        self.example()
        one, other = (sorted(reading) for reading in readings(type(self)))
        assert len(one) == len(other), f"one process reads {len(one)} records, and another {len(other)}"
        for (key, rows, draft), (other_key, other_rows, other_draft) in zip(one, other, strict=True):
            assert key == other_key, f"{key!r} is the key of a record in one process, and {other_key!r} in another"
            assert rows == other_rows, f"record {key!r} has other rows in another process"
            assert draft == other_draft, f"record {key!r} has another draft in another process"

    def test_drift_of_a_record_never_breaks_the_mapping(self) -> None:
        """A record with an unknown, missing or null member, or one of another type, gives a draft or a
        `RecordError`.
        """
        bound, records = self.example_records()
        for record in records:
            for change, changed in drifted(record):
                made = _mapped(bound, changed)
                if isinstance(made, _Problem):
                    text = f"{_place(record)} with {change}: {made.text}; read it with a method of the record, or"
                    assert made.code != "mapping_failed", f"{text} raise RecordError"
                if change == "an unknown member":
                    assert made == _mapped(bound, record), f"{_place(record)}: the draft changes with {change}"

    def test_numbers_are_exact(self) -> None:
        """A number of a record that its draft shows has all its digits, also if it has 19 of them, or is rounded to
        `decimals`.
        """
        bound, records = self.example_records()
        wanted = {_LONG} if self.decimals is None else {_LONG, round(_LONG, self.decimals)}
        for record in records:
            before = _numbers(_mapped(bound, record))
            for place, with_number in with_numbers(record):
                if _SHORT in before or _SHORT not in _numbers(_mapped(bound, with_number(_SHORT))):
                    continue  # the draft does not show this number
                longer = _mapped(bound, with_number(_LONG))
                is_exact = isinstance(longer, _Problem) or not wanted.isdisjoint(_numbers(longer))
                assert is_exact, f"{_place(record)}: {place} loses digits, as in a float"


def _place(record: Record) -> str:
    return f"record {record.key!r} of {record.source}, line {record.lines[0]}"


class _Problem(NamedTuple):
    code: str
    text: str


def _mapped(bound: BoundStream, record: Record) -> dict[str, Any] | _Problem:
    try:
        return drafted(bound, record)[0]
    except RecordError as error:
        return _Problem(error.code, str(error))


def _numbers(made: dict[str, Any] | _Problem) -> Collection[Decimal]:
    return () if isinstance(made, _Problem) else numbers_in(made)


@contextmanager
def _time_zone(name: str) -> Iterator[None]:
    """Set another time zone for the process."""
    try:
        with mock.patch.dict(os.environ, {"TZ": name}):
            time.tzset()
            yield
    finally:
        time.tzset()


Rows = tuple[dict[str, Any], ...]


def fetched_records(bound: BoundStream, keys: Sequence[str]) -> dict[str, Rows]:
    """Return the rows of each record that `fetch` yields and no filter leaves out, by key. The last rows of a key
    count.

    Args:
        keys: In their text form, at most `Stream.fetch_size`, each once.
    """
    found: dict[str, Rows] = {}
    for batch in bound.stream.fetch(
        bound.context, at_source(bound.stream.own_keys, [key_parts_of(key) for key in keys])
    ):
        rows = sorted(_kept(bound, batch), key=itemgetter(KEY))
        for key, group in groupby(rows, key=itemgetter(KEY)):
            cells = [{name: cell for name, cell in row.items() if not is_added(name)} for row in group]
            found[key] = tuple(cells) if bound.stream.group_by else (cells[-1],)
    return found


def _kept(bound: BoundStream, batch: RawBatch) -> list[dict[str, Any]]:
    """Keep the rows with a key that no filter leaves out and that are not marked as deleted."""
    frame = prepare(bound.stream, batch.source, batch.load())
    frame = frame.filter(pl.col(SKIP).is_null() & pl.col(KEY).is_not_null())
    if bound.stream.deleted is not None:
        frame = frame.filter(~pl.col(DELETED))
    return frame.to_dicts()
