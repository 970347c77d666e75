"""What a cursor misses arrives with a full list beside the changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.mappings import Bench, BenchSettings, open_bench
from tests.integration.runs.silent_shop import Following, Rereading, Shop, held, night

from crossdock import Context, RawBatch, Record, Reference, Stream
from crossdock.errors import ConfigError
from crossdock.mapping.stream_declaration import OpenUntil, Reread
from crossdock.runs import sync_and_replay
from crossdock.sources import Checkpoint
from crossdock.state import parse_database_url


class Waiting(Rereading):
    """Orders that wait for their customer."""

    name, resource = "orders", "order"  # type: ignore[assignment]  # of another resource than the shop's customers

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {
            "customerId": Reference("customer", record.at("/customer", str)),
            "currency": "EUR",
            "placedAt": "2026-07-01T00:00:00Z",
            "items": [{"productId": "prd_1", "quantity": 1, "unitPrice": 1}],
        }


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("phases")
    with open_bench(folder, parse_database_url("sqlite:///state.db", folder)) as opened:
        yield opened


def test_a_change_that_the_cursor_misses_arrives_with_the_full_list(bench: Bench) -> None:
    """A full list is read when it is due, after the changes; unchanged records send nothing and the cursor stays."""
    shop = Rereading()
    bench.begin([shop])
    for key in "abc":
        shop.put(key, name=key)
    assert night(bench).tallies["b.customers"].records["created"] == 3
    shop.put("a", name="A", silently=True)
    for _ in range(5):
        assert night(bench).tallies["b.customers"].records["updated"] == 0
    shop.put("d", name="d")
    shop.asked.clear()
    report = night(bench, days=2)
    tally = report.tallies["b.customers"].records
    assert (tally["created"], tally["updated"], tally["read"], tally["ignored"]) == (1, 1, 6, 2), report.tallies
    assert shop.asked == ["3", None] * 2, "a plan reads what the sync reads"
    assert held(bench) == {"a": "A", "b": "b", "c": "c", "d": "d"}
    shop.asked.clear()
    night(bench)
    assert shop.asked == ["4", "4"], "the cursor is that of the changes, and the list is not due"


def test_a_full_list_that_was_never_read_is_due_at_once(bench: Bench) -> None:
    """The key ``reread`` can be added to the config of a stream that has run for long."""
    shop = Shop()
    bench.begin([shop])
    shop.put("a", name="a")
    shop.put("z", name="z")
    night(bench)
    shop.put("a", name="A", silently=True)
    shop.reread = Reread(every="7d")
    assert night(bench).tallies["b.customers"].records["updated"] == 1


def test_changes_are_delivered_though_the_full_list_fails(bench: Bench) -> None:
    """The list is an error of the stream, what changed is delivered and remembered, and the next run lists again."""
    shop = Rereading()
    bench.begin([shop])
    shop.put("a", name="a")
    shop.put("z", name="z")
    night(bench)
    shop.put("a", name="silent", silently=True)
    shop.put("b", name="b")
    shop.is_listed = False
    report = night(bench, days=8)
    assert (report.exit_code, report.tallies["b.customers"].records["created"]) == (3, 1)
    assert "full list is not available" in str(report.errors["b.customers"])
    shop.is_listed = True
    shop.asked.clear()
    assert night(bench).tallies["b.customers"].records["updated"] == 1
    assert shop.asked == ["3", None] * 2


def test_a_run_that_ends_in_the_middle_of_the_full_list_reads_it_again(bench: Bench) -> None:
    """Until a list was read to its end and its records are settled, it is due."""
    shop = Rereading()
    bench.begin([shop])
    shop.put("a", name="a")
    shop.put("z", name="z")
    night(bench)
    shop.put("a", name="A", silently=True)
    bench.clock.advance(8 * 86_400)

    interrupt = threading.Event()

    def interrupted(ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        if since is None:
            interrupt.set()
        yield from Rereading.pull(shop, ctx, since)

    shop.pull = interrupted  # type: ignore[method-assign]
    assert bench._project is not None
    report = sync_and_replay.sync(bench._project, [], **bench._kept() | {"interrupt": interrupt})
    assert (report.balanced, report.tallies["b.customers"].records["updated"]) == (True, 0)
    del shop.pull
    assert night(bench).tallies["b.customers"].records["updated"] == 1


def test_a_run_is_stopped_between_checkpoints_without_records(bench: Bench) -> None:
    """A source may tell of one empty window after the other, and a run that is to stop does not read them all."""
    shop, interrupt = Rereading(), threading.Event()
    bench.begin([shop])

    def empty(ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for number in range(100):
            yield Checkpoint(str(number))
            interrupt.set()
        raise AssertionError("it reads on")

    shop.pull = empty  # type: ignore[method-assign]
    assert bench._project is not None
    report = sync_and_replay.sync(bench._project, [], **bench._kept() | {"interrupt": interrupt})
    assert (report.exit_code, report.balanced) == (130, True)
    assert "stopped while reading" in str(report.errors["b.customers"])


def test_a_full_list_without_records_does_not_count(bench: Bench) -> None:
    """The shop may be out of order: the list is due again in the next run."""
    shop = Rereading()
    bench.begin([shop])
    shop.put("a", name="a")
    shop.put("z", name="z")
    night(bench)
    shop.put("a", name="A", silently=True)
    kept, shop.items = shop.items, {}
    night(bench, days=8)
    shop.items = kept
    assert night(bench).tallies["b.customers"].records["updated"] == 1


def test_a_waiting_record_is_decided_about_once_as_the_full_list_has_it(bench: Bench) -> None:
    """An order that waits is counted once though the list names it again, and its correction there is taken."""
    customers, orders = Shop(), Waiting()
    bench.begin([customers, orders])
    orders.put("1", customer="x")
    orders.put("2", customer="y")
    tally = night(bench).tallies["b.orders"].records
    assert (tally["read"], tally["carried_on"]) == (2, 2)
    customers.put("z", name="z")
    orders.put("1", customer="z", silently=True)
    orders.put("3", customer="nobody")
    tally = night(bench, days=8).tallies["b.orders"].records
    assert (tally["carried_over"], tally["created"], tally["carried_on"]) == (2, 1, 2)


def test_a_complete_list_shows_what_is_gone(bench: Bench) -> None:
    """With ``finds_gone`` the list decides as a list of existing records does; without it nothing is deleted."""
    shop = Rereading()
    bench.begin([shop])
    for key in "abc":
        shop.put(key, name=key)
    night(bench)
    del shop.items["b"]
    assert night(bench, days=8).tallies["b.customers"].records["gone"] == 0
    shop.on_gone, shop.reread = "delete", Reread(every="7d", finds_gone=True)
    for _ in range(3):
        report = night(bench, days=8)
        assert (report.exit_code, sorted(held(bench))) == (0, ["a", "b", "c"]), "lists to compare with are needed"
    shop.put("d", name="d")
    assert night(bench, days=8).tallies["b.customers"].records["deleted"] == 1
    assert sorted(held(bench)) == ["a", "c", "d"]
    shop.items.clear()
    report = night(bench, days=8)
    assert (report.tallies["b.customers"].records["deleted"], sorted(held(bench))) == (0, ["a", "c", "d"])


def test_both_ways_in_one_run_read_each_record_once(bench: Bench) -> None:
    """The list leaves out what the changes and the fetches have brought."""
    shop = Following()
    shop.reread = Reread(every="7d")
    bench.begin([shop])
    for key in "abc":
        shop.put(key, name=key, state="open")
    shop.put("z", name="z", state="paid")
    night(bench)
    shop.put("a", name="A", state="paid", silently=True)
    shop.put("z", name="Z", silently=True)
    shop.put("b", name="B")
    tally = night(bench, days=8).tallies["b.customers"].records
    assert (tally["updated"], tally["read"], tally["ignored"]) == (3, 8, 4)


# ---- declarations


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("{customers: {reread: {every: 7}}}", "reread.every"),
        ("{customers: {on_gone: delete}}", "needs mode: snapshot, or deleted, or reread with finds_gone"),
        ("{customers: {reread: {every: 1d, finds_gone: true}, deleted: {field: x, equals: y}}}", "choose one way"),
        ("{customers: {open_until: {field: state, in: []}}}", "open_until.in"),
    ],
)
def test_a_config_that_cannot_work_is_refused(bench: Bench, overrides: str, message: str) -> None:
    """The error names the key."""
    with pytest.raises(ConfigError, match=message):
        bench.begin([Shop()], overrides)


def test_a_config_may_set_both(bench: Bench) -> None:
    """Streams of any connector in code have them."""
    shop = Shop()
    bench.begin([shop], "{customers: {reread: {every: 7d}, open_until: {field: state, in: [paid], at_most: 9}}}")
    shop.put("a", name="a", state="open")
    shop.put("b", name="b", state="paid")
    night(bench)
    shop.put("a", name="A", silently=True)
    assert night(bench).tallies["b.customers"].records["updated"] == 1


def test_a_stream_in_code_is_checked_too(bench: Bench) -> None:
    """Other modes read everything, and without ``fetch`` no record can be followed."""

    class Whole(Rereading):
        mode = "snapshot"
        cursor = None  # type: ignore[assignment]  # a snapshot has none

    with pytest.raises(ConfigError, match="reread needs mode: incremental"):
        bench.begin([Whole()])

    class Unfetched(Stream[BenchSettings]):
        name, resource, key = "customers", "customer", ("id",)
        open_until = OpenUntil(field="state", in_=["paid"])

        def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
            yield from ()

        def to_resource(self, record: Record) -> dict[str, Any]:
            raise NotImplementedError

    with pytest.raises(ConfigError, match="open_until needs a way to read one record by its key"):
        bench.begin([Unfetched()])
