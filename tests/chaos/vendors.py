"""A simulated vendor whose records change while they are read, and a stream with a cursor over it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
from tests.chaos.mappings import Bench, BenchSettings, open_bench

from crossdock import Context, ProductDraft, RawBatch, Record, Stream
from crossdock.errors import RemoteError
from crossdock.mapping.row_order_and_cursors import Checkpoint, Cursor, format_iso_instant_cursor, windows
from crossdock.runs import parts_between_checkpoints
from crossdock.state import StateUrl

PAGE, PART = 3, 4  # rows
TICK = timedelta(seconds=5)  # the coarsest resolution of a vendor's timestamps
Order = Literal["changed", "newest", "id"]
Way = Literal["cursor", "page number", "windows"]
WAYS: list[tuple[Way, Order]] = [
    ("cursor", "changed"),
    ("cursor", "id"),
    ("page number", "newest"),
    ("page number", "id"),
    ("windows", "changed"),
    ("windows", "id"),
]
"""How a list may be read, and its order. By page number, records that move towards the front push others over."""
OFFSETS = [timezone(timedelta(minutes=minutes)) for minutes in (0, 60, 120, -300, 345)]


@dataclass(slots=True)
class Vendor:
    """Records with a time of change, stamped by its own clock.

    Attributes:
        order: Of its list: by that time, oldest or newest first, or by id.
        numbers: Whether a page is a number of records from the first one on, and not what follows a record.
        excludes: Whether it lists changes after a time, without those at it.
        resolution: Of its timestamps; changes within one are ties.
        skew: Of its clock.
        fails: Probability that a page fails.
        busy: Probability of each further change while a page is read.
        deletes: Whether a change may be a deletion.
        stop_at: Number of the page that fails.
    """

    bench: Bench
    random: Random
    order: Order
    resolution: timedelta
    skew: timedelta
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: float = 0.0
    busy: float = 0.0
    numbers: bool = False
    excludes: bool = False
    deletes: bool = False
    pages: int = 0
    stop_at: int = 0

    def now(self) -> datetime:
        moment = self.bench.clock.now() + self.skew
        return moment - (moment - datetime(2020, 1, 1, tzinfo=UTC)) % self.resolution

    def change(self) -> None:
        """Create, update or delete a record."""
        key = f"K{self.random.randrange(24)}"
        if self.deletes and self.random.random() < 0.2:
            self.records.pop(key, None)
            return
        self.records[key] = {"id": key, "name": f"v{self.random.randrange(10**6)}", "at": self.now()}

    def live(self) -> None:
        """Time passes, and sometimes a record changes."""
        self.bench.clock.advance(self.random.choice((0.001, 0.4, 1.0, 7.0, 400.0)))
        while self.random.random() < self.busy:
            self.change()

    def listing(self, since: str | None, until: datetime | None = None) -> Iterator[list[dict[str, Any]]]:
        """Pages of the records from *since* on; each page is read from the records as they are then."""
        least = datetime.fromisoformat(since) if since else datetime(2000, 1, 1, tzinfo=UTC)
        after: tuple[Any, ...] = ()
        for number in itertools.count():
            self.live()
            self.pages += 1
            if self.pages == self.stop_at or self.random.random() < self.fails:
                raise RemoteError("responded with HTTP 502", where="/products")
            found = self._found(least, until)
            if self.numbers:
                page = found[number * PAGE :][:PAGE]
            else:
                page = [item for item in found if not after or item > after][:PAGE]
            yield [self._shown(self.records[key]) for _, key in page]
            if len(page) < PAGE:
                return
            after = page[-1]

    def _found(self, least: datetime, until: datetime | None) -> list[tuple[Any, str]]:
        """The places and keys of the records in this span, in the order of the list."""
        found = [
            (record["id"] if self.order == "id" else record["at"], key)
            for key, record in self.records.items()
            if (record["at"] > least or (record["at"] == least and not self.excludes))
            and (until is None or record["at"] < until)
        ]
        return sorted(found, reverse=self.order == "newest")

    def _shown(self, record: dict[str, Any]) -> dict[str, Any]:
        return record | {"at": record["at"].astimezone(self.random.choice(OFFSETS)).isoformat()}


class Products(Stream[BenchSettings]):
    """The vendor's records."""

    name, resource, key = "products", "product", ("id",)

    def __init__(self, vendor: Vendor, way: Way = "cursor") -> None:
        self._vendor, self._way = vendor, way
        if way != "windows":
            self.cursor = Cursor(column="at", as_="instant", sorted=vendor.order == "changed")

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        if self._way != "windows":
            yield from self._batches(since, None)
            return
        first = datetime(2020, 1, 1, tzinfo=UTC) if since else ctx.run.clock.now() - timedelta(hours=2)
        for window in windows(since, ctx.run.clock.now(), size=timedelta(minutes=30), first=first):
            yield from self._batches(format_iso_instant_cursor(window.start), window.end)
            yield window.checkpoint

    def _batches(self, since: str | None, until: datetime | None) -> Iterator[RawBatch]:
        if since and self._vendor.excludes:
            since = format_iso_instant_cursor(datetime.fromisoformat(since) - TICK)
        for number, page in enumerate(self._vendor.listing(since, until)):
            yield RawBatch.json(page, source=f"/products?page={number}", key=["id"])

    def to_resource(self, record: Record) -> ProductDraft:
        item = record.json()
        return ProductDraft(sku=item["id"], name=item["name"])


def nothing_is_lost_or_stale(folder: Path, url: StateUrl, *, seed: int, runs: int) -> dict[str, int]:
    """However a vendor lists, fails and changes while it is read, the platform has its records in the end.

    Returns:
        What happened.
    """
    random, (way, order) = Random(seed), WAYS[seed % len(WAYS)]
    happened = {"errors": 0, "pages": 0, "parts": 0}
    with open_bench(folder, url) as bench, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_between_checkpoints, "PART_ROWS", PART)
        vendor = Vendor(
            bench,
            random,
            order=order,
            resolution=random.choice((timedelta(microseconds=1), timedelta(seconds=1), TICK)),
            skew=timedelta(seconds=random.uniform(-300, 300)),
            numbers=way == "page number",
            excludes=random.random() < 0.5,
            deletes=way != "page number" and random.random() < 0.5,
        )
        bench.begin([Products(vendor, way)])
        for _ in range(random.randrange(30)):
            vendor.change()
        for _ in range(runs):
            vendor.fails, vendor.busy = random.choice((0.0, 0.1, 0.3)), random.choice((0.0, 0.2, 0.6))
            report = bench.sync()
            assert report.balanced
            happened["errors"] += len(report.errors)
            bench.clock.advance(random.choice((1, 60, 4000)))
        vendor.fails = vendor.busy = 0.0
        bench.clock.advance(600)  # a window ends now, and the vendor's clock may be ahead
        assert bench.sync().exit_code == 0
        held = {body["externalId"]: body["name"] for _, _, body in bench.platform.effects}
        expected = {f"b:{key}": record["name"] for key, record in vendor.records.items()}
        assert {name: held.get(name) for name in expected} == expected, f"seed {seed}: {way}, {order}"
        assert all(number == 1 for number in bench.created().values()), f"seed {seed}"
        before = len(bench.platform.effects)
        assert bench.sync().exit_code == 0
        assert len(bench.platform.effects) == before, f"seed {seed}"
        happened["pages"] = vendor.pages
    return happened


class _Moving(Vendor):
    """The first record changes while the second page is read."""

    def live(self) -> None:
        if self.pages == 1:
            self.records["K0"] |= {"name": "moved", "at": self.now()}


def read_while_a_record_moves(folder: Path, url: StateUrl, *, numbers: bool) -> set[str]:
    """The names of the records that two syncs of a list by oldest change first deliver."""
    with open_bench(folder, url) as bench:
        vendor = _Moving(bench, Random(0), order="changed", resolution=TICK, skew=timedelta(), numbers=numbers)
        for number in range(2 * PAGE):
            at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=number)
            vendor.records[f"K{number}"] = {"id": f"K{number}", "name": "x", "at": at}
        bench.begin([Products(vendor)])
        for _ in range(2):
            assert bench.sync().exit_code == 0
        return set(bench.created())


def stopped_load(folder: Path, url: StateUrl, *, pages: int, stops: int) -> tuple[int, int]:
    """A first load from a source that fails *stops* times.

    Returns:
        The pages that were read, and those that a load without failures reads.
    """
    random, begin = Random(pages), datetime(2025, 1, 1, tzinfo=UTC)
    with open_bench(folder, url) as bench, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_between_checkpoints, "PART_ROWS", PAGE)
        vendor = Vendor(bench, random, order="changed", resolution=timedelta(seconds=1), skew=timedelta())
        for number in range(pages * PAGE):
            at = begin + timedelta(minutes=number)
            vendor.records[f"K{number:06}"] = {"id": f"K{number:06}", "name": str(number), "at": at}
        bench.begin([Products(vendor)])
        for _ in range(stops):
            vendor.stop_at = vendor.pages + pages // (stops + 1)
            assert bench.sync().exit_code == 3
        vendor.stop_at = 0
        assert bench.sync().exit_code == 0
        assert len(bench.created()) == pages * PAGE
        assert set(bench.created().values()) == {1}
    return vendor.pages, pages + 1
