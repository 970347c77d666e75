"""Rows of one record on several pages of a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import httpx
import pytest
from tests.unit.testing.reference_connector import TOKEN, Orders, OrdersContract, ShopSettings, connector

from crossdock import Context, RawBatch
from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import ConfigError, ConnectorError
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError, IncompleteListError
from crossdock.runs.batches_read_from_connector import fetch_checked_batches, pull_checked_batches
from crossdock.sources import Checkpoint, Cursor
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.values.raw_rows_and_records import LINE

Batch = tuple[list[int], list[str]]  # the orders of its rows, and deleted orders


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)


class Lines(Orders):
    """One row for each line of an order, in pages."""

    mode: Any = "snapshot"
    group_by: Any = ("id",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[Any]:
        for page in ctx.api.pages("/lines"):
            yield RawBatch.json(page.items("/lines"), source=page.address)

    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        for _ in keys:
            yield from self.pull(ctx, None)


class Changes(Lines):
    """Changes with all lines of each order, and the keys of deleted orders."""

    mode: Any = "incremental"
    whole_groups = yields_deleted = True
    batches: Sequence[Batch | Checkpoint] = ()

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[Any]:
        for number, each in enumerate(self.batches):
            if isinstance(each, Checkpoint):
                yield each
            else:
                ids, deleted = each
                yield RawBatch.json([{"id": key} for key in ids], source=f"page {number}", deleted=deleted)


def bound(stream: type[Orders], **members: Any) -> BoundStream:
    """The stream of an API that lists two pages of two lines, with *members* beside them."""

    def answer(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params.get("page", 1))
        following = {"link": '<https://shop.example/lines?page=2>; rel="next"'} if page == 1 else {}
        found = [{"id": 1, "line": page}, {"id": page + 1, "line": page + 2}]
        return httpx.Response(200, json={"lines": found, **members}, headers=following)

    case = type("Case", (OrdersContract,), {"connector": connector(stream)})()
    return bind_checked_stream(case.connector, case.context_over(httpx.MockTransport(answer)), "orders")


def places(batches: Iterable[Any]) -> list[tuple[str, list[int]]]:
    """The last part of the source of each batch, and the lines of its rows."""
    return [
        (each.source.rpartition("/")[2], each.load()[LINE].to_list()) for each in batches if isinstance(each, RawBatch)
    ]


def test_pages_of_a_list_are_one_source() -> None:
    """So that rows on two pages make one record."""
    assert places(pull_checked_batches(bound(Lines), None)) == [("lines", [1, 2]), ("lines", [3, 4])]


def test_pages_of_a_list_that_is_fetched_are_one_source() -> None:
    """The list of another key is another source: it may have the same rows."""
    read = places(fetch_checked_batches(bound(Lines), [("1",), ("2",)]))
    assert read == [(source, rows) for source in ("lines", "lines (2)") for rows in ([1, 2], [3, 4])]


def test_nothing_of_a_list_that_may_lack_rows_is_joined() -> None:
    """Without groups its records are delivered, and the next run reads it again."""
    with pytest.raises(IncompleteListError, match="total is 9, and 4 were read") as refused:
        places(pull_checked_batches(bound(Lines, total=9), None))
    assert not isinstance(refused.value, DoubtfulListError)
    assert "nothing of it is delivered" in (refused.value.hint or "")
    with pytest.raises(DoubtfulListError, match="total is 9, and 4 were read"):
        places(pull_checked_batches(bound(type("Single", (Lines,), {"group_by": None}), total=9), None))


class Exploded(Lines):
    """A page of orders with their lines, of which some have no id, and one is there twice."""

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[Any]:
        listed = [(1, 2), (2, 1), (1, 2), (None, 1), (None, 1), (3, 0)]
        orders = [{"id": key, "lines": [{"line": n} for n in range(lines)]} for key, lines in listed]
        yield RawBatch.json(orders, source="page", explode="lines", keeps_empty=True)


def test_an_object_that_a_page_lists_twice_is_another_version_of_its_group() -> None:
    """Its rows are no further rows of the first one; those without a key are rejected where they are."""
    assert places(pull_checked_batches(bound(Exploded), None)) == [("page", [1, 2, 3, 6, 7, 8]), ("page#2", [4, 5])]


def test_deleted_keys_do_not_divide_what_is_joined() -> None:
    """They may come before all rows, after them, and after a checkpoint."""
    first: Batch = [1], []
    second: Batch = [1, 2], []
    gone: Batch = [], ["3"]
    for batches in ([gone, first, second], [first, second, gone], [first, Checkpoint("1"), ([1], ["3"]), second]):
        places(pull_checked_batches(bound(type("Given", (Changes,), {"batches": batches})), None))
    for batches in ([first, gone, second], [first, ([1, 2], ["3"])]):
        with pytest.raises(ConnectorError, match="named deleted records between rows that group_by may join"):
            places(pull_checked_batches(bound(type("Given", (Changes,), {"batches": batches})), None))


@pytest.mark.parametrize(
    "wrong",
    [{"group_by": None}, {"cursor": Cursor(column="updated_at")}, {"whole_groups": "yes"}],
    ids=["no group", "sorted", "text"],
)
def test_whole_groups_need_groups_and_a_list_that_is_read_whole(wrong: dict[str, Any]) -> None:
    """A part of a sorted list ends anywhere, also between two rows of one record."""
    with pytest.raises(ConfigError, match="whole_groups"):
        bound(type("Wrong", (Changes,), wrong))
