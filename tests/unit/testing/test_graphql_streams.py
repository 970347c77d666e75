"""The contract knows the records of a GraphQL connection that has edges alone, and what its query selects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.testing.relay_connector import (
    CONNECTION,
    NODE,
    PAGES,
    Products,
    ProductsContract,
    ShopSettings,
    connector,
)

from crossdock import Context, RawBatch
from crossdock.errors import RefusedError
from crossdock.sources import ApiAnswer, Cursor
from crossdock.testing.reading_with_two_hash_seeds import read_with_two_seeds


@pytest.mark.nightly
class TestProducts(ProductsContract):
    """Records are the nodes: a cursor filters them, amounts are exact, and keys are as the author states them."""


def failure(stream: type[Products], test: str, **more: Any) -> str:
    case = type("Case", (ProductsContract,), {"connector": connector(stream), **more})()
    try:
        getattr(case, f"test_{test}")()
    except AssertionError as error:
        return str(error)
    return ""


def test_the_records_of_edges_are_their_nodes() -> None:
    """Null in place of a node is an element of the list, and no list is not an empty one."""
    answer = ApiAnswer("x", {"data": {"products": {"edges": [{"node": {"id": 1}}, {"node": None}]}}})
    assert answer.items(f"{CONNECTION}/edges/*/node") == [{"id": 1}, None]
    with pytest.raises(RefusedError, match="has no list at /data/products/nodes"):
        answer.items(f"{CONNECTION}/nodes/*/node")


class Lost(Products):
    """Leaves out a record of each page."""

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for batch in super().pull(ctx, since):
            yield RawBatch(batch.source, batch.load().head(1))


class ByName(Products):
    node = "id sku price updatedAt"


class WithoutCursor(Products):
    node = "id sku name price"


class WithoutKey(Products):
    node = "sku name price updatedAt"


class WithoutPages(Products):
    node = f"{NODE} }} }} }} other: products {{ edges {{ node {{ id"


class NewestFirst(Products):
    direction = "DESC"


@pytest.mark.parametrize(
    ("stream", "test", "told"),
    [
        (Lost, "every_record_of_every_page_is_read", "Lost.pull does not yield a record of page 1"),
        (ByName, "a_query_selects_what_is_read", "does not select /data/products/edges/node/name"),
        (WithoutCursor, "a_query_selects_what_is_read", "records have no updatedAt, their cursor"),
        (WithoutKey, "a_query_selects_what_is_read", "/data/products/edges/node/id"),
        (WithoutPages, "a_query_selects_what_is_read", "without it reading fails"),
        (NewestFirst, "a_sorted_cursor_asks_for_the_oldest_change_first", "by direction DESC"),
        (Products, "a_query_selects_what_is_read", ""),
        (Products, "a_sorted_cursor_asks_for_the_oldest_change_first", ""),
    ],
)
def test_a_bug_of_a_query_is_told(stream: type[Products], test: str, told: str) -> None:
    """With the method and the member."""
    found = failure(stream, test)
    assert told in found if told else found == ""


class CursorOfRows(Products):
    """Rows have the cursor under another name, so that no record of the pages has it."""

    cursor = Cursor(column="changed", as_="instant")

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for batch in super().pull(ctx, since):
            rows = batch.load()["_json"].to_list()
            yield RawBatch.json([_renamed(each) for each in rows], source=batch.source)


def _renamed(text: str) -> Any:
    from crossdock.values import exact_json

    row = exact_json.loads(text)
    return {**row, "changed": row.pop("updatedAt", None)}


def test_a_cursor_that_no_record_has_is_told_by_the_name_of_the_method() -> None:
    """And not by records that are missing."""
    found = failure(CursorOfRows, "a_second_sync_sends_nothing")
    assert found.startswith("network_since of the test: no record of pages has the member changed, the cursor of Cur")


def test_a_record_that_expects_states_is_named_as_it_is() -> None:
    """Also if its key has characters that the state encodes."""
    found = failure(Products, "drafts_are_as_expected", expects={"UHJvZHVjdDo9==": {}})
    assert "a record 'UHJvZHVjdDo9==', which Products.pull does not read; it reads 'UHJvZHVjdDo1==', " in found
    found = failure(Products, "drafts_are_as_expected", expects={"UHJvZHVjdDo1==": {"sku": "x"}})
    assert found.startswith("Products.to_resource, record 'UHJvZHVjdDo1==': ")


def test_a_reading_that_is_left_in_the_middle_keeps_no_secret() -> None:
    """It would end later, in another test, and take the environment from it."""
    import os

    case = ProductsContract()
    bound = case._bound_stream()
    items = case._pulled_batches_and_checkpoints(bound)
    assert next(items) is not None
    assert "SHOP_TOKEN" not in os.environ
    with case.in_environment():
        items.close()
        assert os.environ["SHOP_TOKEN"] == "canary-of-the-contract"


def test_a_list_that_is_not_sorted_is_told_as_such() -> None:
    """By the method that declares it."""
    pages = [PAGES[1]["data"]["products"]["edges"], PAGES[0]["data"]["products"]["edges"]]
    told = [
        {"data": {"products": {"edges": edges, "pageInfo": one["data"]["products"]["pageInfo"]}}}
        for edges, one in zip(pages, PAGES, strict=True)
    ]
    found = failure(Products, "a_record_that_the_source_shows_late_is_read", pages=told)
    assert found.startswith("Products.pull: reading failed: ")
    assert "is not sorted by 'updatedAt'" in found


def test_the_example_is_read_in_another_process() -> None:
    """Its class is at the top level of a module."""
    one, other = read_with_two_seeds(ProductsContract)
    assert sorted(one) == sorted(other)
