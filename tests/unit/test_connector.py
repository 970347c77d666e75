"""What connector authors write against: the facts of a stream, its version, and what a run gives its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from crossdock import Context, Filter, OrderBy, ProductDraft, RawBatch, Record, Repair, Settings, Stream
from crossdock.errors import ConnectorError
from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.row_order_and_cursors import Cursor
from crossdock.mapping.stream_declaration import FailureLimits, removal_problem
from crossdock.pacing.rate_limit_and_retry_settings import RateLimit
from crossdock.reading.sources.api_token_buckets import ApiUsage, SharedBuckets
from crossdock.reading.sources.run_context import SourceContext
from crossdock.resources import ResourceModel
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.sources import Api
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress


class Products(Stream[Settings]):
    def pull(self, ctx: Context[Settings], since: str | None) -> Iterator[RawBatch]:
        yield from ()

    def to_resource(self, record: Record) -> ResourceModel | Mapping[str, Any]:
        record.row["id"] = "changed"
        return {"sku": record.row["sku"], "name": "Lamp", "unitPrice": Decimal(2)}


class Minimal(Products):
    name, resource, key = "minimal", "product", ("id",)


class Full(Products):
    name, resource, mode, key = "full", "invoice", "append", ["NO", "YEAR"]
    group_by, order_by = ["NO", "YEAR"], ["SEQ"]
    columns = {"NO": Repair(strip="both", null="NULL")}
    skip = {"test": Filter(field="NO", starts_with="T"), "empty": Filter(field="SEQ", empty=True)}
    uses = ["SEQ", "NO"]
    fingerprint, duplicates, adopt = "xxh3_128", "last", "external_id"
    personal, mapping_version = ["customerId"], "7"


@pytest.mark.parametrize(
    ("stream", "version"),
    [(Minimal(), "36af1059ba79a70fe886215bb3786f5e"), (Full(), "e38bbf83879d07981b2a91c6a42ce876")],
)
def test_the_version_of_a_stream_in_code_stays(stream: Stream[Settings], version: str) -> None:
    """A state knows which version read its files: another hash for the same facts would read everything again."""
    assert stream.version == version


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("resource", "customer"),
        ("key", ["id", "shop"]),
        ("group_by", ["id"]),
        ("order_by", ["at"]),
        ("order_by", [OrderBy(column="at", as_="instant")]),
        ("columns", {"id": Repair(strip="left")}),
        ("skip", {"old": Filter(field="id", equals="0")}),
        ("uses", ["id"]),
        ("fingerprint", "xxh3_128"),
        ("mapping_version", "2"),
    ],
)
def test_the_version_changes_with_what_makes_other_records(fact: str, value: object) -> None:
    """Each of these facts can give another record or draft for the same rows."""
    stream = Minimal()
    setattr(stream, fact, value)
    assert stream.version != Minimal().version


@pytest.mark.parametrize("fact", ["mode", "duplicates", "adopt", "personal", "on_gone", "gone", "mapping_failed"])
def test_the_version_ignores_what_makes_the_same_records(fact: str) -> None:
    """Limits and rules of removal change no record."""
    stream = Minimal()
    setattr(stream, fact, object())
    assert stream.version == Minimal().version


def test_the_version_names_what_a_column_of_order_by_holds() -> None:
    """Another meaning of the column may make another row the newest; the version of such a stream stays."""
    stream = Minimal()
    versions = set()
    for facts in ({"as_": "instant"}, {"as_": "decimal"}, {"as_": "instant", "timezone": "Europe/Berlin"}):
        stream.order_by = (OrderBy.model_validate({"column": "at", **facts}),)
        versions.add(stream.version)
    assert len(versions) == 3
    assert "139797e9fc3df9975680a222625df76d" in versions


@pytest.mark.parametrize(
    ("revisions", "lines", "parts"),
    [
        ("11", "12", {}),
        ("11", "11", {"row equal to another one of its record": 1}),
        ("1122", "1212", {"record of rows with different order_by": 1}),
        ("1111", "1212", {"row equal to another one of its record": 2}),
    ],
)
def test_a_record_that_may_be_listed_twice_is_counted(revisions: str, lines: str, parts: dict[str, int]) -> None:
    """All rows of a group are mapped, so the lines of an order that is twice in a file are doubled."""
    stream = Minimal()
    stream.group_by, stream.order_by = ("id",), ("rev",)
    pairs = zip(revisions, lines, strict=True)
    rows: list[dict[str, str | None]] = [{"id": "1", "sku": "A", "rev": rev, "line": line} for rev, line in pairs]
    record = Record("1", tuple(rows), "a.csv", tuple(range(2, 2 + len(rows))))
    stream.draft(record)
    assert record.parts == parts


def test_a_draft_is_checked_and_its_record_stays_as_read() -> None:
    """What a mapping does to the rows it is given never reaches the state."""
    record = Record("1", ({"id": "1", "sku": "0017"},), "page", (1,))
    draft = Minimal().draft(record)
    assert isinstance(draft, ProductDraft)
    assert draft.sku == "0017"
    assert record.row["id"] == "1"
    with pytest.raises(ValidationError):
        Minimal().draft(Record("1", ({"id": "1", "sku": ""},), "page", (1,)))


def test_a_json_record_from_the_state_gets_columns_that_were_declared_later() -> None:
    """It waited while the mapping changed; the record that is stored stays as it was."""

    class Nested(Minimal):
        uses = ("product.sku",)

        def to_resource(self, record: Record) -> dict[str, str | None]:
            return {"sku": record.row["product.sku"], "name": "x"}

    record = Record("1", ({"id": "1", "_json": '{"product": {"sku": "0017"}}'},), "page", (1,))
    assert Nested().draft(record).payload()["sku"] == "0017"
    assert "product.sku" not in record.row


def test_what_is_shared_is_made_once() -> None:
    """Streams of a connection share a log-in, say; None is a value like any other."""
    context: Context[Settings] = Context(Settings(kind="none"), "shop", None)  # type: ignore[arg-type]  # no run needed
    made: list[Path] = []

    def make() -> None:
        made.append(Path())

    assert context.shared("session", make) is context.shared("session", make) is None
    assert len(made) == 1


def test_a_connection_has_one_api_in_a_run() -> None:
    """Its streams share it, and its rate limit; it is closed at the end of the run, which reports its requests."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={}))
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path(), transport=transport)
    context = Context(
        Settings(kind="none"),
        "shop",
        run,
        _declared_api=lambda _: Api("https://shop.example"),
    )
    with run.at_end:
        assert context.api is context.api
        context.api.get("/orders")
    assert run.api_usage == {"shop": ApiUsage(requests=1)}
    assert run.limits["shop"].spent == 1
    with pytest.raises(RuntimeError, match="closed"):
        context.api.get("/orders")


def test_runs_that_read_one_api_share_its_limit() -> None:
    """Each begins where the bucket is now, and reports its own requests."""
    transport, buckets = httpx.MockTransport(lambda _: httpx.Response(200, json={})), SharedBuckets()
    clock, limit = ManualClock(), RateLimit(per_minute=60, burst=3)
    runs = [
        SourceContext(
            clock,
            SilentProgress(),
            EmptyIntakeLog(),
            Path(),
            Path(),
            Path(),
            transport=transport,
            buckets=buckets,
            live=live,
        )
        for live in (False, True)
    ]
    with runs[0].at_end, runs[1].at_end:
        for run, requests in zip(runs, (3, 2), strict=True):
            context = Context(
                Settings(kind="none"), "shop", run, _declared_api=lambda _: Api("https://shop.example", rate=limit)
            )
            for _ in range(requests):
                context.api.get("/orders")
    assert runs[0].api_usage == {"shop": ApiUsage(requests=3)}
    assert runs[1].api_usage["shop"].requests == 2
    assert runs[1].api_usage["shop"].waited_s == pytest.approx(2.0)
    assert runs[0].limits["shop"].spent == 5


def test_an_api_that_is_not_declared() -> None:
    """The error says how to declare it."""
    run = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    with pytest.raises(ConnectorError, match="declares no API") as failed:
        _ = Context(Settings(kind="none"), "shop", run).api
    assert failed.value.hint is not None
    assert "api=" in failed.value.hint


@pytest.mark.parametrize(
    ("failed", "records", "exceeded"),
    [(20, 20, False), (21, 420, False), (21, 419, True), (0, 0, False)],
)
def test_both_failure_limits_must_be_exceeded(failed: int, records: int, exceeded: bool) -> None:
    """More than 20 records and more than 5 % of them."""
    assert FailureLimits().exceeded(failed, records) is exceeded


def test_only_what_a_snapshot_lists_can_be_removed() -> None:
    """Invoices are written once, only a snapshot shows what is gone, and only some resources can be made inactive."""
    assert removal_problem(RESOURCES["product"], "snapshot", "archive", finds_deleted=False) is None
    assert removal_problem(RESOURCES["invoice"], "append", "nothing", finds_deleted=False) is None
    assert "snapshot" in (removal_problem(RESOURCES["product"], "append", "delete", finds_deleted=False) or "")
    assert "written once" in (removal_problem(RESOURCES["invoice"], "snapshot", "delete", finds_deleted=False) or "")
    assert "no member active" in (
        removal_problem(RESOURCES["customer"], "snapshot", "archive", finds_deleted=False) or ""
    )


def test_a_cursor_of_another_meaning_is_not_used() -> None:
    """The version under which a cursor is stored depends on its column and type, and not on how the source sorts."""

    class Things(Minimal):
        cursor: Cursor | None = Cursor(column="changed", as_="instant")

    first = Things()
    assert first.version == Minimal().version == Minimal().cursor_version
    for change in (Cursor(column="created", as_="instant"), Cursor(column="changed"), None):
        other = Things()
        other.cursor = change
        assert other.cursor_version != first.cursor_version
    same = Things()
    same.cursor = Cursor(column="changed", as_="instant", sorted=False, overlap_s=5)
    assert same.cursor_version == first.cursor_version


def test_records_of_another_namespace_are_other_records() -> None:
    """A stream with another namespace reads everything again: under it, none of its records was sent."""

    class Things(Minimal):
        pass

    other = Things()
    other.namespace = "live"
    assert other.version != Things().version
    assert Things().version == Minimal().version
