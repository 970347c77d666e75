"""Records that a source names as deleted: limits, approvals, what is open, and defects of a connector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.mappings import Bench, BenchSettings, open_bench

from crossdock import Context, Filter, ProductDraft, RawBatch, Record, RecordError, Stream
from crossdock.errors import ConfigError, RemoteError
from crossdock.mapping.row_order_and_cursors import Checkpoint
from crossdock.mapping.stream_declaration import GoneLimits, OnGone
from crossdock.runs import parts_between_checkpoints
from crossdock.state import StateUrl
from crossdock.values.raw_rows_and_records import with_path_columns


class Changes(Stream[BenchSettings]):
    """Pages of changes from a cursor on: keys, those with a minus sign are deleted."""

    name, resource, key, yields_deleted = "products", "product", ("id",), True
    on_gone: OnGone = "delete"
    gone = GoneLimits(at_most=2, at_most_percent=100)

    def __init__(self) -> None:
        self.pages: list[str] = []

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for number in range(int(since or 0), len(self.pages)):
            keys = self.pages[number].split()
            rows = [{"id": key} for key in keys if not key.startswith("-")]
            deleted = [key[1:] for key in keys if key.startswith("-")]
            yield RawBatch.json(rows, source=f"/changes/{number}", key="id", deleted=deleted)
            yield Checkpoint(str(number + 1))

    def to_resource(self, record: Record) -> ProductDraft:
        if record.key.startswith("bad"):
            raise RecordError("bad_value", "is bad")
        return ProductDraft(sku=record.key, name=record.key)


class Listed(Stream[BenchSettings]):
    """All records each time, and a list of those that exist."""

    name, resource, key = "products", "product", ("id",)
    on_gone: OnGone = "delete"
    gone = GoneLimits(at_most=10, at_most_percent=100, rows_within_percent=50)

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.listed: list[str] | Exception = []

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        yield RawBatch.json([{"id": key} for key in self.changed], source="/changes", key="id")

    def existing(self, ctx: Context[BenchSettings]) -> Iterator[RawBatch]:
        if isinstance(self.listed, Exception):
            raise self.listed
        yield RawBatch.json([{"id": key} for key in self.listed], source="/ids")

    def to_resource(self, record: Record) -> ProductDraft:
        return ProductDraft(sku=record.key, name=record.key)


@pytest.fixture
def bench(tmp_path: Path, state_url: StateUrl) -> Iterator[Bench]:
    with open_bench(tmp_path, state_url) as bench:
        yield bench


def held(bench: Bench) -> str:
    """The keys of the products that the platform has."""
    return " ".join(sorted(body["sku"] for body in bench.platform._stored.values()))


def records(report: Any) -> dict[str, int]:
    return {term: number for term, number in report.tallies["b.products"].records.items() if number}


def test_deleted_records_beyond_the_limits_need_approval(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is removed, other changes are delivered, and the next run reads them again; a plan says the same."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)
    stream = Changes()
    bench.begin([stream])
    stream.pages = ["a b c d"]
    assert bench.sync().exit_code == 0
    stream.pages += ["-a e", "-b -x", "-c f"]
    for _ in range(2):
        planned, _ = bench.plan()
        assert "3 records are gone, more than gone.at_most (2)" in str(planned.errors["b.products"])
        report = bench.sync()
        assert str(report.errors["b.products"]) == str(planned.errors["b.products"])
        assert (report.exit_code, report.balanced, held(bench)) == (4, True, "a b c d e f")
    approve(bench)
    report = bench.sync()
    assert (report.exit_code, report.balanced, held(bench)) == (0, True, "d e f")
    assert records(report)["deleted"] == 3
    report = bench.sync()
    assert (report.exit_code, records(report)) == (0, {})


def approve(bench: Bench) -> None:
    assert bench._project is not None
    with closing(bench._project.open_state()) as state, state.begin() as tx:
        pending = tx.pending_approvals.get("b.products")
        assert pending is not None
        tx.pending_approvals.approve(pending, at=bench.clock.now())


def test_a_deleted_record_needs_no_correction(bench: Bench) -> None:
    """Its dead letter is removed, although it was never delivered."""
    stream = Changes()
    bench.begin([stream])
    stream.pages = ["a bad"]
    assert bench.sync().exit_code == 1
    stream.pages += ["-bad"]
    report = bench.sync()
    assert (report.exit_code, report.balanced, records(report)) == (0, True, {"read": 1, "ignored": 1})
    assert bench.dead_letters() == []


def test_without_on_gone_deleted_records_are_counted(bench: Bench) -> None:
    """They stay as they are."""
    stream = Changes()
    stream.on_gone = "nothing"
    bench.begin([stream])
    stream.pages = ["a b"]
    bench.sync()
    stream.pages += ["-a"]
    report = bench.sync()
    assert (report.exit_code, records(report), held(bench)) == (0, {"read": 1, "ignored": 1}, "a b")


def test_a_deleted_record_is_archived_once(bench: Bench) -> None:
    """A source that names it again changes nothing."""
    stream = Changes()
    stream.on_gone = "archive"
    bench.begin([stream])
    stream.pages = ["a b"]
    bench.sync()
    stream.pages += ["-a"]
    report = bench.sync()
    assert (report.exit_code, records(report)) == (0, {"read": 1, "updated": 1})
    stream.pages += ["-a"]
    report = bench.sync()
    assert (report.exit_code, records(report), held(bench)) == (0, {"read": 1, "ignored": 1}, "a b")


def test_a_source_that_fails_later_deletes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted records are removed at the end of the reading; the next run reads them again."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", 1)

    class Failing(Changes):
        fails = False

        def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
            yield from super().pull(ctx, since)
            if self.fails:
                raise RemoteError("responded with HTTP 502")

    stream = Failing()
    bench.begin([stream])
    stream.pages = ["a b"]
    bench.sync()
    stream.pages += ["-a c"]
    stream.fails = True
    report = bench.sync()
    assert (report.exit_code, report.balanced, held(bench)) == (3, True, "a b c")
    stream.fails = False
    assert (bench.sync().exit_code, held(bench)) == (0, "b c")


def test_a_list_that_cannot_be_read_removes_nothing(bench: Bench) -> None:
    """The changes are delivered; the error is the list's own, and the tally balances."""
    stream = Listed()
    bench.begin([stream])
    stream.changed, stream.listed = ["a", "b"], RemoteError("responded with HTTP 502", where="/ids")
    report = bench.sync()
    assert (report.exit_code, report.balanced, held(bench)) == (3, True, "a b")
    assert "/ids: responded with HTTP 502" in str(report.errors["b.products"])
    stream.listed = KeyError("Erika@example.com")
    report = bench.sync()
    assert "existing raised KeyError in line" in str(report.errors["b.products"])
    assert "Erika" not in str(report.errors["b.products"])


def test_a_list_must_be_complete(bench: Bench) -> None:
    """It is compared with three earlier ones; an empty, a short and a damaged one are not believed."""
    stream = Listed()
    bench.begin([stream])
    stream.changed = stream.listed = ["a", "b", "c", "d"]
    for _ in range(3):
        assert bench.sync().exit_code == 0
    for listed, told in (
        ([], "the list of existing records lists no records"),
        (["a"], "the list of existing records has 1 rows; the previous ones had 4, 4, 4"),
        (["a", "b", ""], "1 row has no key"),
    ):
        stream.changed, stream.listed = [], listed
        report = bench.sync()
        assert (report.exit_code, report.balanced, held(bench)) == (4, True, "a b c d")
        assert told in str(report.errors["b.products"])
    for _ in range(3):
        stream.listed = ["a", "b", "c"]
        report = bench.sync()
    assert (report.exit_code, held(bench)) == (0, "a b c")


def test_a_record_that_this_run_reads_exists(bench: Bench) -> None:
    """It may have been created after the list was made; if it is gone, the next list shows it."""
    stream = Listed()
    bench.begin([stream])
    stream.changed = stream.listed = ["a", "b", "c", "d"]
    for _ in range(3):
        bench.sync()
    stream.changed, stream.listed = ["d", "e"], ["a", "b", "c"]
    assert (bench.sync().exit_code, held(bench)) == (0, "a b c d e")


def test_a_list_is_read_as_often_as_the_stream_says(bench: Bench) -> None:
    """Other runs read the changes only; while removals need approval, each run reads it. A plan says the same."""
    stream = Listed()
    stream.gone = GoneLimits(at_most=0, at_most_percent=100, rows_within_percent=50, every="1d")
    bench.begin([stream])
    stream.changed = stream.listed = ["a", "b", "c", "d"]
    for _ in range(3):
        bench.sync()
        bench.clock.advance(86_400 - 5)  # a daily job does not begin at the same second
    stream.changed, stream.listed = [], RemoteError("responded with HTTP 502", where="/ids")
    assert bench.sync().exit_code == 3
    stream.listed = ["a", "b", "c"]
    report = bench.sync()
    assert (report.exit_code, "1 record is gone, more" in str(report.errors["b.products"])) == (4, True)
    approve(bench)
    assert (bench.sync().exit_code, held(bench)) == (0, "a b c")
    stream.listed = RemoteError("responded with HTTP 502", where="/ids")
    assert (bench.plan()[0].errors, bench.sync().exit_code) == ({}, 0)
    bench.clock.advance(86_400)
    assert list(bench.plan()[0].errors) == ["b.products"]
    assert bench.sync().exit_code == 3


def test_names_that_a_stream_does_not_declare_are_a_defect(bench: Bench) -> None:
    """The error says what to declare."""
    stream = Changes()
    stream.yields_deleted, stream.on_gone = False, "nothing"
    bench.begin([stream])
    stream.pages = ["a -b"]
    report = bench.sync()
    assert report.exit_code == 3
    assert "names deleted records, which the stream does not declare (yields_deleted = True)" in str(
        report.errors["b.products"]
    )


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"mode": "snapshot"}, "yields_deleted is for other modes; a snapshot lists every record"),
        ({"yields_deleted": 1}, "yields_deleted must be True or False"),
        ({"yields_deleted": False}, "on_gone needs mode: snapshot, or deleted"),
        ({"deleted": Filter(field="x", empty=False), "mode": "snapshot", "yields_deleted": False}, "deleted is for"),
    ],
)
def test_declarations_that_exclude_each_other(bench: Bench, facts: dict[str, Any], told: str) -> None:
    """They are found when the config is loaded."""
    stream = Changes()
    for name, value in facts.items():
        setattr(stream, name, value)
    with pytest.raises(ConfigError, match=told):
        bench.begin([stream])


def test_one_way_to_find_deleted_records(bench: Bench) -> None:
    """A stream that lists what exists marks nothing."""
    stream = Listed()
    stream.deleted = Filter(field="gone", equals="true")
    with pytest.raises(ConfigError, match="deleted and existing exclude each other"):
        bench.begin([stream])


class Parts(Listed):
    """Pages of changes from a cursor on, and a list of the records that exist."""

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for number in range(int(since or 0), len(self.changed)):
            rows = [{"id": key} for key in self.changed[number].split()]
            yield RawBatch.json(rows, source=f"/changes/{number}", key="id")
            yield Checkpoint(str(number + 1))


@pytest.mark.parametrize("rows", [1, 1_000])
def test_a_record_that_any_part_of_a_run_reads_exists(bench: Bench, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """A list that lacks it was made before; the parts in which the changes are read make no difference."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", rows)
    stream = Parts()
    bench.begin([stream])
    stream.changed, stream.listed = ["a b c"], list("abc")
    for _ in range(4):
        assert bench.sync().exit_code == 0
    stream.changed += ["a d", "e", "f"]
    report = bench.sync()
    assert (report.exit_code, report.balanced, held(bench)) == (0, True, "a b c d e f")


class Ordered(Stream[BenchSettings]):
    """Pages of rows from a cursor on, each a key, a time and U or D for deleted, in any order."""

    name, resource, key = "products", "product", ("id",)
    order_by: tuple[str, ...] | None = ("at",)
    deleted = Filter(field="op", equals="D")
    on_gone: OnGone = "delete"
    gone = GoneLimits(at_most=10, at_most_percent=100)

    def __init__(self) -> None:
        self.pages: list[str] = []

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for number in range(int(since or 0), len(self.pages)):
            rows = [dict(zip(("id", "at", "op"), row, strict=True)) for row in self.pages[number].split()]
            yield RawBatch.json(rows, source=f"/changes/{number}", key="id")
            yield Checkpoint(str(number + 1))

    def to_resource(self, record: Record) -> ProductDraft:
        return ProductDraft(sku=record.key, name=record.at("/at", str))


@pytest.mark.parametrize("rows", [1, 1_000])
def test_a_row_that_is_older_than_a_deletion_does_not_bring_the_record_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """The newest row of a key decides, in whichever part of the reading it is; a newer one shows that it exists."""
    monkeypatch.setattr(parts_between_checkpoints, "PART_ROWS", rows)
    stream = Ordered()
    bench.begin([stream])
    stream.pages = ["a3U c3U x3U y3U z3U", "b9D a9D c5D", "b5U a5U c9U"]
    report = bench.sync()
    assert (report.exit_code, report.balanced, held(bench)) == (0, True, "c x y z")


class Grouped(Ordered):
    """As `Ordered`, but the rows of a key form its record, in the order of the page."""

    order_by: tuple[str, ...] | None = None
    group_by = ("id",)

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        for item in super().pull(ctx, since):
            yield (
                replace(item, rows=with_path_columns(item.load(), ["id", "at", "op"]))
                if isinstance(item, RawBatch)
                else item
            )

    def to_resource(self, record: Record) -> ProductDraft:
        return ProductDraft(sku=record.key, name="".join(row["at"] or "" for row in record.rows))


@pytest.mark.parametrize("order_by", [None, ("at",)])
def test_rows_after_a_deletion_form_a_new_group(bench: Bench, order_by: tuple[str, ...] | None) -> None:
    """The last row of a key decides whether its record exists; it does not have the rows before the deletion."""
    stream = Grouped()
    stream.order_by = order_by
    bench.begin([stream])
    stream.pages = ["a1U a2U b1U b2U c1U"]
    assert bench.sync().exit_code == 0
    stream.pages += ["a3U b3U a4D b4U a5U b5D a6U c2D"]
    planned, _ = bench.plan()
    report = bench.sync()
    assert (report.exit_code, report.balanced, report.errors) == (0, True, {})
    assert {body["sku"]: body["name"] for body in bench.platform._stored.values()} == {"a": "56"}
    assert planned.tallies["b.products"].as_json() == report.tallies["b.products"].as_json()
