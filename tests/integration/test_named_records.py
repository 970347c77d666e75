"""Named records are fetched and delivered, with what they refer to, and no list is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.mappings import Bench, BenchSettings, open_bench
from tests.chaos.shelves import Customers, Item, Orders

import crossdock
from crossdock import Context, RawBatch, Record, Stream
from crossdock.errors import ConfigError
from crossdock.runs import sync_and_replay
from crossdock.runs.named_record_delivery import named_records
from crossdock.runs.run_report import Report
from crossdock.sources import Cursor
from crossdock.state import StateUrl
from crossdock.values.run_progress_and_messages import SilentProgress


class Invoices(Stream[BenchSettings]):
    """Fetches nothing."""

    name, resource, key = "invoices", "invoice", ("id",)

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        yield from ()

    def to_resource(self, record: Record) -> dict[str, Any]:
        raise NotImplementedError


class ChangedCustomers(Customers):
    """Customers of which the changes are listed. `fetch` yields *row*, whatever it is asked for."""

    mode, cursor = "incremental", Cursor(column="version", as_="integer")
    row: Item = {}

    def fetch(self, ctx: Context[BenchSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        yield RawBatch.json([self.row], source="/customers/1")


class Desk:
    """A bench with customers and orders."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.customers, self.orders = bench, Customers(), Orders()
        bench.begin([self.customers, self.orders, Invoices()])

    def fetch(self, stream: str, *keys: str) -> Report:
        return crossdock.run(self.bench.folder / "c.yaml", keys={stream: keys})

    def effects(self) -> list[tuple[str, str]]:
        """Each operation and the record's name on the platform, since the last call."""
        found = [(operation, body.get("externalId", "")) for operation, _, body in self.bench.platform.effects]
        self.bench.platform.effects.clear()
        return found


@pytest.fixture
def desk(tmp_path: Path, state_url: StateUrl) -> Iterator[Desk]:
    with open_bench(tmp_path, state_url) as bench:
        yield Desk(bench)


def test_only_the_named_records_are_read(desk: Desk) -> None:
    """A record that is named is created or updated; others are not, and no list is read."""
    desk.customers.put("1", name="Ada")
    desk.customers.put("2", name="Bob")
    report = desk.fetch("b.customers", "2")
    assert (report.status, report.balanced, report.tallies["b.customers"].delivered) == ("done", True, 1)
    assert desk.effects() == [("create", "b:2")]
    desk.customers.put("2", name="Bo")
    assert desk.fetch("b.customers", "2", "2", "7").tallies["b.customers"].records["updated"] == 1
    assert desk.fetch("b.customers", "2").tallies["b.customers"].records["unchanged"] == 1
    assert [operation for operation, _ in desk.effects()] == ["update"]
    assert desk.customers.pulls == 0
    assert desk.bench.sync().tallies["b.customers"].records["created"] == 1, "the next sync brings the others"


def test_what_a_record_refers_to_is_fetched_too(desk: Desk) -> None:
    """An order whose customer was not delivered yet brings the customer with it."""
    desk.customers.put("C1", name="Ada")
    desk.orders.put("O1", customer="C1")
    report = desk.fetch("b.orders", "O1")
    assert (report.status, report.balanced) == ("done", True)
    assert desk.effects() == [("create", "b:C1"), ("create", "b:O1")]


def test_what_waited_for_a_record_follows_it(desk: Desk) -> None:
    """An order that waits for a customer who does not exist yet is delivered when the customer is fetched."""
    desk.orders.put("O1", customer="C1")
    report = desk.fetch("b.orders", "O1")
    assert (report.exit_code, report.all_open.waiting) == (1, 1)
    desk.customers.put("C1", name="Ada")
    assert desk.fetch("b.customers", "C1").status == "done"
    assert desk.effects() == [("create", "b:C1"), ("create", "b:O1")]


def test_keys_are_fetched_in_parts(desk: Desk) -> None:
    """At most `fetch_size` keys are asked for at a time, each once."""
    desk.customers.put("C1", name="Ada")
    for number in range(5):
        desk.orders.put(f"O{number}", customer="C1")
    report = desk.fetch("b.orders", *(f"O{number}" for number in range(5)))
    assert report.tallies["b.orders"].delivered == 5
    assert [len(each) for each in desk.orders.asked[:3]] == [2, 2, 1]


def test_a_deleted_record_is_removed_within_the_limits(desk: Desk) -> None:
    """A record that the source has deleted is removed; more than the limits allow are not."""
    for number in range(60):
        desk.customers.put(f"C{number}", name="Ada")
    assert desk.bench.sync().exit_code == 0
    desk.effects()
    del desk.customers.items["C7"]
    assert desk.fetch("b.customers", "C7", "C8").tallies["b.customers"].records["deleted"] == 1
    assert [operation for operation, _ in desk.effects()] == ["delete"]
    desk.customers.items.clear()
    report = desk.fetch("b.customers", *(f"C{number}" for number in range(60)))
    assert (report.exit_code, report.balanced) == (4, True)
    assert desk.effects() == []


def test_a_rejected_record_is_a_dead_letter_until_it_is_right(desk: Desk) -> None:
    """A fetched record that cannot be mapped is a dead letter, which the next fetch resolves."""
    desk.customers.put("1", name="bad")
    assert desk.fetch("b.customers", "1").all_open.rejected == 1
    desk.customers.put("1", name="Ada")
    report = desk.fetch("b.customers", "1")
    assert (report.exit_code, report.all_open.total) == (0, 0)


def test_an_answer_without_a_key_is_a_dead_letter_until_it_has_one(tmp_path: Path, state_url: StateUrl) -> None:
    """Of a stream whose list is read by changes, too: a later answer of the same address takes its place."""
    with open_bench(tmp_path, state_url) as bench:
        customers = ChangedCustomers()
        bench.begin([customers])
        for key, version, rejected in (("", 1, 1), ("", 2, 1), ("1", 3, 0)):
            customers.row = {"id": key, "version": version, "name": "Ada"}
            report = crossdock.run(bench.folder / "c.yaml", keys={"b.customers": ["1"]})
            assert (report.all_open.rejected, report.balanced) == (rejected, True)


def test_an_older_version_does_not_replace_a_newer_one(desk: Desk) -> None:
    """What a slow server shows of an earlier time is ignored."""
    desk.customers.put("1", name="Ada")
    old = dict(desk.customers.items["1"])
    desk.customers.put("1", name="Ada L.")
    desk.fetch("b.customers", "1")
    desk.effects()
    desk.customers.items["1"] = old
    assert desk.fetch("b.customers", "1").tallies["b.customers"].records["ignored"] == 1
    assert desk.effects() == []


def test_a_source_that_fails_is_told(desk: Desk) -> None:
    """An error of `fetch` ends its stream, with the place, and the tally balances."""
    desk.customers.failing.add("1")
    report = desk.fetch("b.customers", "1")
    assert (report.exit_code, report.balanced) == (3, True)
    assert "the shop does not answer" in str(report.errors["b.customers"])


def test_a_stream_that_cannot_fetch_is_refused(desk: Desk) -> None:
    """A stream without `fetch`, an unknown stream and a call without records are errors of the caller."""
    with pytest.raises(ConfigError, match=r"b\.invoices cannot fetch named records"):
        desk.fetch("b.invoices", "1")
    with pytest.raises(ConfigError, match="no stream or connection is called 'b.customer'; did you mean"):
        desk.fetch("b.customer", "1")
    with pytest.raises(ConfigError, match="no record is named"):
        desk.fetch("b.customers")
    with pytest.raises(ConfigError, match="not both"):
        crossdock.run(desk.bench.folder / "c.yaml", ["b.customers"], keys={"b.customers": ["1"]})


def test_a_key_of_several_columns_is_a_list(desk: Desk) -> None:
    """A key is the text of its column, or the texts of its columns."""
    assert [record.key for record in named_records("s.a", ["1", ["1"], ["a|b", "c"]])] == ["1", "a%7Cb|c"]


def test_an_interrupted_run_says_so(desk: Desk) -> None:
    """A run that is told to stop before it begins delivers nothing, and exits as interrupted."""
    desk.customers.put("1", name="Ada")
    stop = threading.Event()
    stop.set()
    assert desk.bench._project is not None
    report = sync_and_replay.sync(
        desk.bench._project,
        [],
        clock=desk.bench.clock,
        progress=SilentProgress(),
        interrupt=stop,
        records=named_records("b.customers", ["1"]),
    )
    assert report.exit_code == 130
    assert desk.effects() == []
