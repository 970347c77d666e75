"""Streams of JSON records in whole runs: columns of dotted paths, fingerprints and lists as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.mappings import Bench, BenchSettings, open_bench

from crossdock import Context, DeclaredStream, Filter, OrderBy, RawBatch, Record, Repair, Stream, StreamConfig
from crossdock.reading.sources.list_completeness_evidence import IncompleteListError
from crossdock.sources import Cursor
from crossdock.state import StateUrl, parse_database_url

Item = dict[str, Any]


class Products(Stream[BenchSettings]):
    """Pages of *items*, with the given attributes."""

    name, resource, mode = "products", "product", "append"
    key: Sequence[str] = ("product.id",)

    def __init__(self, *items: Item, explode: str | None = None, **facts: Any) -> None:
        self.items, self.explode, self.mapped = list(items), explode, 0
        for name, value in facts.items():
            setattr(self, name, value)

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        for number, item in enumerate(self.items, 1):
            yield RawBatch.json([item], source=f"page {number}", explode=self.explode)

    def to_resource(self, record: Record) -> Mapping[str, Any]:
        self.mapped += 1
        return {"sku": record.key_parts[-1], "name": record.at("/name", str), "unitPrice": record.decimal("/price")}


def item(number: int | str | None = 1, name: str = "Bolt", **members: Any) -> Item:
    return {"product": {"id": number}, "name": name, "price": "1.50", "status": "live", **members}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with open_bench(tmp_path, parse_database_url("sqlite:///state.db", tmp_path)) as opened:
        yield opened


@pytest.fixture
def each(tmp_path: Path, state_url: StateUrl) -> Iterator[Bench]:
    """The same, once on each database."""
    with open_bench(tmp_path, state_url) as opened:
        yield opened


def synced(bench: Bench, exit_code: int = 0) -> Any:
    """The report of a run that balances, and whose plan said the same."""
    planned, _ = bench.plan()
    report = bench.sync()
    assert {name: str(error) for name, error in planned.errors.items()} == {
        name: str(error) for name, error in report.errors.items()
    }
    assert (report.balanced, report.exit_code) == (True, exit_code), report.errors
    return report.tallies["b.products"]


def stored(bench: Bench) -> dict[str, Item]:
    """What the platform has, by key."""
    found: dict[str, Item] = {}
    for operation, _, body in bench.platform.effects:
        assert operation == "create"
        found[body["externalId"].removeprefix("b:")] = body
    return found


def test_keys_filters_and_repairs_use_dotted_paths(each: Bench) -> None:
    """Without naming the columns a second time; a record without its key is a dead letter."""
    stream = Products(
        item(" P1 "),
        item(17, status="draft"),
        item(None),
        item("x", stock={"levels": [{"at": "HAM1"}, {"at": "void"}]}),
        item("0017"),
        columns={"product.id": Repair(strip="both")},
        skip={
            "drafts": Filter(field="status", equals="draft"),
            "void": Filter(field="stock.levels.1.at", equals="void"),
        },
    )
    each.begin([stream])
    tally = synced(each, exit_code=1)
    assert tally.rows_filtered == {"drafts": 1, "void": 1}
    assert set(stored(each)) == {"P1", "0017"}
    assert stored(each)["P1"]["unitPrice"] == Decimal("1.5")
    assert [letter.code for letter in each.dead_letters()] == ["key_missing"]


def test_the_newest_item_wins_by_a_dotted_path(bench: Bench) -> None:
    """Times with different offsets are compared as instants."""
    late = {"changed": {"at": "2026-11-20T10:00:00+01:00"}}
    later = {"changed": {"at": "2026-11-20T09:30:00Z"}}
    order_by = (OrderBy(column="changed.at", as_="instant"),)
    bench.begin([Products(item(1, "new", **later), item(1, "old", **late), order_by=order_by)])
    assert synced(bench).rows_superseded == 1
    assert stored(bench)["1"]["name"] == "new"


def test_a_time_that_cannot_be_read_is_a_dead_letter(bench: Bench) -> None:
    """The error names the path."""
    order_by = (OrderBy(column="changed.at", as_="instant"),)
    bench.begin([Products(item(1, changed={"at": "yesterday"}), order_by=order_by)])
    synced(bench, exit_code=1)
    (letter,) = bench.dead_letters()
    assert (letter.code, letter.pointer) == ("bad_value", "changed.at")


@pytest.mark.parametrize(("uses", "mapped"), [(None, 1), (("name", "price"), 0), (("name", "views"), 1)])
def test_only_the_declared_members_make_a_change(bench: Bench, uses: Sequence[str] | None, mapped: int) -> None:
    """A counter that changes every night does not cost a mapping every night; without ``uses`` any change counts."""
    stream = Products(item(1, views=1), uses=uses)
    bench.begin([stream])
    synced(bench)
    stream.items, stream.mapped = [item(1, views=2)], 0
    bench.plan()
    assert stream.mapped == mapped
    stream.items = [item(1, name="Nut", views=2)]
    bench.plan()
    assert stream.mapped == mapped + 1


def test_another_notation_of_a_number_is_no_change(bench: Bench) -> None:
    """``1.50`` and ``1.5`` are one number, with and without ``uses``."""
    for uses in (None, ("price", "name")):
        stream = Products(item(1, price=Decimal("1.50")), uses=uses)
        bench.begin([stream])
        synced(bench)
        stream.items, stream.mapped = [item(1, price=Decimal("1.5"))], 0
        assert synced(bench).records["unchanged"] == 1
        assert stream.mapped == 0


def lines(*skus: str, number: int = 1) -> Item:
    made = [{"sku": sku, "price": {"amount": "2.00"}} for sku in skus]
    return item(number, currency="EUR", lines=made)


class Lines(Products):
    """One record of each line."""

    key = ("product.id", "lines.sku")

    def to_resource(self, record: Record) -> Mapping[str, Any]:
        price = record.decimal("/lines/price/amount")
        return {"sku": record.at("/lines/sku", str), "name": record.at("/name", str), "unitPrice": price}


def test_each_element_of_a_list_becomes_a_record(each: Bench) -> None:
    """With the members of its object; the key has parts of both. A new line is one new record."""
    stream = Lines(lines("a", "b"), lines(number=2), lines("a", number=3), explode="lines")
    each.begin([stream])
    assert synced(each).rows_read == 3
    assert set(stored(each)) == {"1|a", "1|b", "3|a"}
    stream.items, stream.mapped = [lines("c", "b", "a")], 0
    assert synced(each).records["unchanged"] == 2
    assert set(stored(each)) == {"1|a", "1|b", "1|c", "3|a"}
    assert set(Counter(each.created()).values()) == {1}


def test_an_object_without_the_list_is_a_dead_letter(bench: Bench) -> None:
    """It is not lost, and the others are delivered."""
    without = item(2)
    bench.begin([Lines(lines("a"), without, item(3, lines="none"), item(4, lines=None), explode="lines")])
    assert synced(bench, exit_code=1).rows_rejected == 2
    assert set(stored(bench)) == {"1|a"}


def test_a_bad_element_is_named_with_its_index(bench: Bench) -> None:
    """The others are delivered."""
    page = lines("a", "b")
    page["lines"][1]["price"] = {"amount": "two"}
    bench.begin([Lines(page, explode="lines")])
    synced(bench, exit_code=1)
    (letter,) = bench.dead_letters()
    assert (letter.code, letter.pointer, letter.line) == ("bad_value", "/lines/1/price/amount", 2)


class Declared(DeclaredStream[BenchSettings]):
    """A declarative mapping over JSON."""

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        yield RawBatch.json([item(7, price=Decimal("2.50"))], source="page")


def test_a_declarative_mapping_reads_dotted_paths(bench: Bench) -> None:
    """As it reads the columns of a file."""
    section = {
        "resource": "product",
        "mode": "append",
        "key": ["product.id"],
        "map": {
            "sku": {"from": "product.id"},
            "name": {"from": "name"},
            "unitPrice": {"from": "price", "as": "decimal"},
        },
    }
    bench.begin([Declared("products", StreamConfig.model_validate(section), {})])
    synced(bench)
    assert stored(bench)["7"]["unitPrice"] == Decimal("2.5")


class Changes(Products):
    """A list of changes; unless `whole`, it ends after its first page."""

    cursor, whole = Cursor(column="changed.at", as_="instant"), False

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        yield from super().pull(ctx, since)
        if not self.whole:
            raise IncompleteListError("the list ended here, although /total is 9")


def test_the_plan_of_a_list_of_changes_that_ends_early_says_so(each: Bench) -> None:
    """The plan writes nothing and has the error of the sync, before and after a cursor was stored."""
    each.begin([stream := Changes(item(1, changed={"at": "2026-11-20T10:00:00Z"}), mode="incremental")])
    synced(each, exit_code=4)
    stream.whole = True
    synced(each)
    stream.whole = False
    synced(each, exit_code=4)
    assert stored(each).keys() == {"1"}
