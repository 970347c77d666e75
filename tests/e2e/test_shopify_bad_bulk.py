"""Bulk operations of a Shopify shop that fail, are cut off or are damaged: nothing is lost, and people are told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.shopify_records import completed, eight_orders, key, orders, told
from tests.partners.shop_stage import ShopifyStage, shopify_stage
from tests.partners.shopify.bulk import Failure
from tests.partners.shopify.bulk_records import BulkOperation
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

from crossdock.sandbox import SandboxServer, SandboxSettings

pytestmark = pytest.mark.nightly

UNPACED = SandboxSettings(rate_per_min=600_000, burst=100_000)


@pytest.fixture
def site() -> Site:
    return eight_orders()


@pytest.fixture
def bulk(tmp_path: Path, site: Site) -> Iterator[ShopifyStage]:
    """Reads it by bulk operations."""
    with (
        SandboxServer(tmp_path / "sandbox", UNPACED) as sandbox,
        shopify_stage(tmp_path, sandbox, site) as stage,
    ):
        yield stage


def test_a_scope_that_is_missing_for_a_bulk_operation_is_told(bulk: ShopifyStage, site: Site) -> None:
    """A bulk operation fails with ACCESS_DENIED; the hint says how the scopes are checked."""
    scopes = site.shop.scopes
    site.shop.scopes = scopes - {"read_orders"}
    report = bulk.sync("shop.products", "shop.orders")
    reason = "a bulk operation ended without a whole result: FAILED, ACCESS_DENIED"
    assert told(report) == {"shop.orders": reason}
    assert report.errors["shop.orders"].hint == "check the scopes of the token with 'crossdock check'"
    site.shop.scopes = scopes
    completed(bulk)


BAD_SHAPES = [
    ("bulkOperation", {"objectCount": None}, "a bulk operation has no number in objectCount"),
    ("bulkOperation", {"fileSize": "large"}, "a bulk operation has no number in fileSize"),
    ("bulkOperation", {"createdAt": "soon"}, "a bulk operation has no time in createdAt"),
    ("bulkOperation", {"url": "https://files.example/1"}, "the file is on another host"),
    ("bulkOperation", {"url": None}, "a bulk operation has ended without a file"),
    ("bulkOperation", {"status": "PAUSED"}, "a bulk operation ended without a whole result: PAUSED"),
    ("bulkOperationRunQuery", {"bulkOperation": None}, "refused a bulk operation: it names no reason"),
    (
        "bulkOperationRunQuery",
        {"userErrors": None},
        "has no list at /data/bulkOperationRunQuery/userErrors: it is null",
    ),
]
"""The name of a query, members that its answer cannot have, and the reason that people see."""


@pytest.mark.nightly
def test_bulk_operations_that_cannot_be_understood_are_told(bulk: ShopifyStage) -> None:
    """Whatever the shop answers in place of a bulk operation has a reason, and the next run reads all."""
    bulk_operations_are_told(bulk, BAD_SHAPES)


def bulk_operations_are_told(bulk: ShopifyStage, shapes: Sequence[tuple[str, Any, str]]) -> None:
    """One after another, each of a day on which no earlier operation can be used."""
    for query, members, reason in shapes:

        def broken(name: str, body: Any, query: str = query, members: Any = members) -> Any:
            if name == query:
                body["data"][query].update(members)
            return body

        bulk.watched.changed = broken
        assert told(bulk.sync("shop.orders")) == {"shop.orders": reason}
        assert bulk.stored("order") == {}
        bulk.site.clock.advance(86_400)
    bulk.watched.changed = None
    completed(bulk)


def test_an_earlier_bulk_operation_that_cannot_be_understood_is_not_used(bulk: ShopifyStage) -> None:
    """A null in the list of earlier operations is none that could be used; another one is begun."""

    def broken(name: str, body: Any) -> Any:
        if name == "bulkOperations":
            body["data"]["bulkOperations"]["nodes"].insert(0, None)
        return body

    bulk.watched.changed = broken
    completed(bulk)


WITHOUT_ID = [b"{}", b'{"id": 7}', b'{"id": null, "__parentId": null}']


def test_records_without_an_id_are_rejected_and_all_others_arrive(bulk: ShopifyStage) -> None:
    """Lines of a bulk file that could be any record are rejected with a reason."""
    records_without_an_id_are_rejected(bulk, WITHOUT_ID)


def records_without_an_id_are_rejected(bulk: ShopifyStage, lines: Sequence[bytes]) -> None:
    """Each of these lines is, and all others arrive."""

    def broken(name: str, body: Any) -> Any:
        if name == "file":
            return b"\n".join([*lines, body])
        operation = body["data"]["bulkOperation"] if name == "bulkOperation" else {}
        if operation.get("objectCount") not in {None, "0"}:
            operation["objectCount"] = str(int(operation["objectCount"]) + len(lines))
            operation["rootObjectCount"] = str(int(operation["rootObjectCount"]) + len(lines))
        return body

    bulk.watched.changed = broken
    report = bulk.sync("shop.products", "shop.customers", "shop.orders")
    assert bulk.dead_letters()["shop.orders "] == "key_missing key: the key is empty"
    assert report.tallies["shop.orders"].rows_rejected == len(lines)
    assert (report.exit_code, told(report), len(bulk.stored("order"))) == (1, {}, 8)


@pytest.mark.nightly(but=["in the middle"])
@pytest.mark.parametrize(
    "place", ["in the first line", "after the first line", "in the middle", "before the last line"]
)
def test_a_bulk_file_that_is_cut_off_is_refused_whole(bulk: ShopifyStage, site: Site, place: str) -> None:
    """Nothing of it is delivered, the reason tells how much is there, and the next run reads it again."""
    bulk.sync("shop.products")
    content = _file_of(bulk, "orders")
    first, last = content.index(b"\n") + 1, content.rstrip(b"\n").rindex(b"\n") + 1
    cut = {
        "in the first line": first // 2,
        "after the first line": first,
        "in the middle": len(content) // 2,
        "before the last line": last,
    }[place]
    bulk.site.shop.bulk.cuts.append(cut)
    report = bulk.sync("shop.orders")
    (reason,) = told(report).values()
    assert reason == f"the file of a bulk operation has {cut:,} bytes, and the shop says {len(content):,}"
    assert report.errors["shop.orders"].hint == "it was cut off; run again"
    assert bulk.stored("order") == {}
    completed(bulk)


@pytest.mark.nightly(but=["inside a line"])
@pytest.mark.parametrize("place", ["inside a line", "between lines"])
def test_a_bulk_file_that_is_cut_off_is_refused_where_the_shop_tells_no_size(
    bulk: ShopifyStage, site: Site, place: str
) -> None:
    """The number of its lines tells, and a line that is no JSON."""
    bulk.sync("shop.products")
    content = _file_of(bulk, "orders")

    cut = content.rstrip(b"\n").rindex(b"\n") + 1 if place == "between lines" else len(content) - 9
    bulk.watched.changed = lambda name, body: body[:cut] if name == "file" else body
    report = bulk.sync("shop.orders")
    (reason,) = told(report).values()
    assert ("has 15 objects" in reason) == (place == "between lines"), reason
    assert ("is no JSON" in reason) == (place == "inside a line"), reason
    assert bulk.stored("order") == {}


def test_lines_of_an_order_that_is_not_in_the_file_are_told(bulk: ShopifyStage, site: Site) -> None:
    """An order that was deleted while the file was written leaves its lines; the run warns, all others arrive."""
    bulk.sync("shop.products")
    gone = orders(site)[2]

    def without_parent(name: str, body: Any) -> Any:
        if name == "file":
            lines = body.splitlines(keepends=True)
            return b"".join(line for line in lines if json.loads(line).get("id") != gone.id)
        operation = (body.get("data") or {}).get("bulkOperation") if name == "bulkOperation" else None
        if operation and "{ orders" in operation["query"] and operation["status"] == "COMPLETED":
            operation["objectCount"] = str(int(operation["objectCount"]) - 1)
            operation["rootObjectCount"] = str(int(operation["rootObjectCount"]) - 1)
        return body

    bulk.watched.changed = without_parent
    report = bulk.sync("shop.customers", "shop.orders")
    assert any(
        "1 lines of shop-" in each and "belong to records that are not in it" in each for each in report.warnings
    )
    assert len(bulk.stored("order")) == 7


def test_an_order_that_is_edited_during_the_first_load_arrives_as_it_is(bulk: ShopifyStage, site: Site) -> None:
    """The file has it as it was; what changed since the file was begun is read by pages after it."""
    edited = orders(site)[2]

    def edit(_: int) -> None:
        if bulk.watched.asked[-1] == "file" and not edited.edited:
            site.shop.orders.edit(edited, Line(site.lamp, 3))

    bulk.watched.before = edit
    completed(bulk)
    units = [line["quantity"] for line in bulk.stored("order")[f"shop:{key(edited)}"]["items"]]
    assert sum(map(int, units)) == 5


@pytest.mark.nightly(but=["failure0"])
@pytest.mark.parametrize("failure", [Failure("TIMEOUT", 3), Failure("INTERNAL_SERVER_ERROR", 0)])
def test_a_bulk_operation_that_fails_is_told_and_begun_again_by_the_next_run(
    bulk: ShopifyStage, site: Site, failure: Failure
) -> None:
    """What it found until then is not taken for the whole."""
    site.shop.bulk.failures.append(failure)
    report = bulk.sync("shop.customers")
    assert [*told(report).values()] == [f"a bulk operation ended without a whole result: FAILED, {failure.code}"]
    completed(bulk)


def _file_of(stage: ShopifyStage, name: str) -> bytes:
    """The file that the next bulk operation over this list writes: it is read by a run that is not kept."""
    query_part = f"{{ {name} "
    found: list[bytes] = []

    def read(_: int) -> None:
        operations = stage.site.shop.records.all(BulkOperation)
        found.extend(one.content for one in operations if query_part in one.query and one.content)

    stage.watched.before = read
    stage.site.shop.bulk.cuts.append(1)
    stage.sync("shop.orders")
    stage.watched.before = lambda _: None
    assert json.loads(found[-1].splitlines()[0])
    return found[-1]
