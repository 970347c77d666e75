"""Changes that arrive out of order, and snapshots without rows, in runs over a real state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.mappings import Bench, BenchSettings, Row, batch, open_bench

from crossdock import Context, OrderBy, RawBatch, Record, Stream
from crossdock.mapping.stream_declaration import OrderColumns
from crossdock.state import StateUrl

SUMMER, WINTER = "2026-10-25T02:30:00+02:00", "2026-10-25T02:10:00+01:00"  # the second is 40 minutes later


class Products(Stream[BenchSettings]):
    name, resource, key = "products", "product", ("K",)
    order_by: OrderColumns | None = (OrderBy(column="AT", as_="instant"),)

    def __init__(self) -> None:
        self.pages: list[list[Row]] = []

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        for number, rows in enumerate(self.pages):
            made = batch(rows or [row("1", "")], f"page {number}")
            yield RawBatch(made.source, made.load().head(len(rows)), "1")

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"sku": "x", "name": record.row["V"]}


class AsText(Products):
    order_by: OrderColumns | None = ("AT",)


def row(key: str, at: str, value: str = "v") -> Row:
    return {"K": key, "AT": at, "V": value}


@pytest.fixture
def bench(tmp_path: Path, state_url: StateUrl) -> Iterator[Bench]:
    with open_bench(tmp_path, state_url) as opened:
        yield opened


def synced(bench: Bench, stream: Products, *rows: Row) -> tuple[int, dict[str, int]]:
    """The exit code, and the numbers of the stream's records that are not zero."""
    stream.pages = [list(rows)]
    report = bench.sync()
    assert report.balanced
    tally = report.tallies.get("b.products")
    return report.exit_code, {name: number for name, number in (tally.records if tally else {}).items() if number}


def test_the_newer_of_two_instants_is_delivered_whatever_its_offset(bench: Bench) -> None:
    """A change after the end of summer time is newer than one before it, and an older one is ignored."""
    bench.begin([stream := Products()])
    assert synced(bench, stream, row("1", SUMMER, "a"))[1]["created"] == 1
    assert synced(bench, stream, row("1", WINTER, "b"))[1]["updated"] == 1
    assert synced(bench, stream, row("1", SUMMER, "c"))[1]["ignored"] == 1


def test_a_text_with_another_offset_than_the_stored_one_is_refused(bench: Bench) -> None:
    """Nothing is imported, and declaring instants is enough to continue."""
    bench.begin([stream := AsText()])
    assert synced(bench, stream, row("1", SUMMER, "a"))[0] == 0
    stream.pages = [[row("1", WINTER, "b"), row("2", WINTER)]]
    report = bench.sync()
    assert (report.exit_code, report.balanced) == (4, True)
    assert "page 0:2: order_by compares text" in str(report.errors["b.products"])
    stream.order_by = Products.order_by
    code, records = synced(bench, stream, row("1", WINTER, "b"), row("2", WINTER))
    assert (code, records["updated"], records["created"]) == (0, 1, 1)


def test_a_record_whose_order_is_unknown_is_a_dead_letter(bench: Bench) -> None:
    """The others are delivered, and the record is delivered once its cell is right."""
    bench.begin([stream := Products()])
    code, records = synced(bench, stream, row("1", "yesterday"), row("2", SUMMER))
    assert (code, records["rejected"], records["created"]) == (1, 1, 1)
    (dead_letter,) = bench.dead_letters()
    assert (dead_letter.code, dead_letter.pointer) == ("bad_value", "AT")
    code, records = synced(bench, stream, row("1", WINTER), row("2", SUMMER))
    assert (code, records["created"], records["unchanged"]) == (0, 1, 1)
    assert bench.dead_letters() == []


def test_a_snapshot_without_rows_is_refused(bench: Bench) -> None:
    """A page without rows does not show that everything is gone; an incremental stream may have none."""
    bench.begin([stream := Products()])
    assert synced(bench, stream)[0] == 0
    stream.mode = "snapshot"
    bench.begin([stream])
    assert synced(bench, stream, row("1", SUMMER))[0] == 0
    stream.pages = [[], []]
    report = bench.sync()
    assert (report.exit_code, report.balanced) == (4, True)
    assert "is a snapshot without rows" in str(report.errors)
    planned, _ = bench.plan()
    assert planned.exit_code == 4
