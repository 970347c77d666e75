"""A simulated vendor that deletes records and creates them again, and streams that find out in three ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
from tests.chaos.mappings import Bench, BenchSettings, open_bench

from crossdock import Context, Filter, ProductDraft, RawBatch, Record, Stream
from crossdock.errors import RemoteError
from crossdock.mapping.row_order_and_cursors import Checkpoint, Cursor
from crossdock.mapping.stream_declaration import GoneLimits, OnGone
from crossdock.runs import parts_between_checkpoints
from crossdock.state import StateUrl

Way = Literal["marked", "named", "listed"]
PAGE, PART = 3, 4  # rows
NO_LIMITS = GoneLimits(at_most=1_000, at_most_percent=100, rows_within_percent=100)


@dataclass(slots=True)
class Vendor:
    """Records and the events that made them, in the order of their numbers.

    Attributes:
        fails: Probability that a page fails.
    """

    random: Random
    records: dict[str, str] = field(default_factory=dict)
    events: list[tuple[int, str, str | None]] = field(default_factory=list)
    fails: float = 0.0

    def change(self, keys: int = 12) -> None:
        """Create, update or delete a record."""
        key, value = f"K{self.random.randrange(keys):02}", f"v{self.random.randrange(10**6)}"
        if key in self.records and self.random.random() < 0.4:
            del self.records[key]
            self.events.append((len(self.events), key, None))
        else:
            self.records[key] = value
            self.events.append((len(self.events), key, value))

    def pages(self, since: str | None) -> Iterator[list[tuple[int, str, str | None]]]:
        """The events from number *since* on."""
        for start in range(int(since or 0), len(self.events), PAGE):
            if self.random.random() < self.fails:
                raise RemoteError("responded with HTTP 502", where="/events")
            yield self.events[start : start + PAGE]


class Products(Stream[BenchSettings]):
    """Products made of the vendor's events."""

    name, resource, key, gone = "products", "product", ("id",), NO_LIMITS

    def __init__(self, vendor: Vendor, on_gone: OnGone) -> None:
        self.vendor, self.on_gone = vendor, on_gone

    def to_resource(self, record: Record) -> ProductDraft:
        item = record.json()
        return ProductDraft(sku=item["id"], name=item["name"], active=True)


class Marked(Products):
    """Each event is a row; a member says which are deletions."""

    deleted = Filter(field="gone", equals="true")
    cursor = Cursor(column="seq", as_="decimal")

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        for number, page in enumerate(self.vendor.pages(since)):
            rows = [{"id": key, "name": value, "gone": value is None, "seq": seq} for seq, key, value in page]
            yield RawBatch.json(rows, source=f"/events?page={number}", key="id")


class Named(Products):
    """Deleted keys are named beside rows, in the order of the events."""

    yields_deleted = True

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for page in self.vendor.pages(since):
            for rows, deleted in _in_turns(page):
                yield RawBatch.json(rows, source="/changes", key="id", deleted=deleted)
            yield Checkpoint(str(page[-1][0]))


class Listed(Products):
    """Events without deletions, and a list of what exists."""

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for page in self.vendor.pages(since):
            rows = [{"id": key, "name": value} for _, key, value in page if value is not None]
            yield RawBatch.json(rows, source="/products", key="id")
            yield Checkpoint(str(page[-1][0]))

    def existing(self, ctx: Context[BenchSettings]) -> Iterator[RawBatch]:
        if self.vendor.random.random() < self.vendor.fails:
            raise RemoteError("responded with HTTP 502", where="/ids")
        keys = self.vendor.random.sample(sorted(self.vendor.records), len(self.vendor.records))
        for start in range(0, len(keys), PAGE):
            yield RawBatch.json([{"id": key} for key in keys[start : start + PAGE]], source="/ids")


STREAMS: dict[Way, type[Products]] = {"marked": Marked, "named": Named, "listed": Listed}


def _in_turns(page: list[tuple[int, str, str | None]]) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """The events as batches in which rows follow the deletions before them."""
    rows: list[dict[str, Any]] = []
    deleted: list[str] = []
    for _, key, value in page:
        if value is not None:
            rows.append({"id": key, "name": value})
        elif rows:
            yield rows, deleted
            rows, deleted = [], [key]
        else:
            deleted.append(key)
    yield rows, deleted


def nothing_deleted_stays(folder: Path, url: StateUrl, *, way: Way, on_gone: OnGone, seed: int) -> Counter[str]:
    """The platform has what the vendor has in the end, and a plan says what the sync does.

    Returns:
        What happened.
    """
    random, happened = Random(seed), Counter[str]()
    with open_bench(folder, url) as bench, pytest.MonkeyPatch.context() as patch:
        in_parts = random.random() < 0.5
        patch.setattr(parts_between_checkpoints, "PART_ROWS", PART if in_parts else 1_000)
        vendor = Vendor(random)
        bench.begin([STREAMS[way](vendor, on_gone)])
        for _ in range(7):
            for _ in range(random.randrange(20)):
                vendor.change()
            vendor.fails = random.choice((0.0, 0.0, 0.1, 0.3))
            planned, _ = bench.plan()
            report = bench.sync()
            assert report.balanced, f"seed {seed}"
            if not vendor.fails and not in_parts:  # a record may come and go between two parts
                said, done = (each.tallies["b.products"].as_json() for each in (planned, report))
                assert said == done, f"seed {seed}"
            happened["failed"] += len(report.errors)
        vendor.fails = 0.0
        for _ in range(4):  # a list of existing records must have about as many rows as the three before it
            vendor.change(keys=2)
            assert bench.sync().balanced
        assert bench.sync().exit_code == 0
        assert _held(bench, on_gone) == vendor.records, f"seed {seed}"
        before = len(bench.platform.effects)
        assert bench.sync().exit_code == 0
        assert len(bench.platform.effects) == before, f"seed {seed}"
        happened.update(operation for operation, *_ in bench.platform.effects)
    return happened


def _held(bench: Bench, on_gone: OnGone) -> dict[str, str]:
    bodies = (body for body in bench.platform._stored.values() if on_gone == "delete" or body["active"])
    return {body["externalId"].removeprefix("b:"): body["name"] for body in bodies}
