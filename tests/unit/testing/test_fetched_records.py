"""The records that a stream fetches, as the contract compares them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.unit.testing.reference_connector import Orders, OrdersContract, ShopSettings, connector

from crossdock import Context, Filter, RawBatch
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.contract import fetched_rows_by_key
from crossdock.values.raw_rows_and_records import JSON

ROWS: list[Any] = [{"id": 1, "n": 1}, {"id": "a|b", "n": 2}, {"id": 1, "n": 3}, {"n": 4}, {"id": 5, "n": 5, "gone": 1}]


class Fetched(Orders):
    """Yields `ROWS`, whatever is asked for."""

    asked: Sequence[tuple[str, ...]] = ()

    def fetch(self, ctx: Context[ShopSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        self.asked = keys
        yield RawBatch.json(ROWS, source="rows")


def numbers(**facts: Any) -> dict[str, list[Any]]:
    """The member ``n`` of the rows of each record of a stream with *facts*."""
    case = OrdersContract()
    bound = bind_checked_stream(connector(type("Changed", (Fetched,), facts)), case.new_context(), "orders")
    found = fetched_rows_by_key(bound, ["1", "a%7Cb"])
    assert isinstance(bound.stream, Fetched)
    assert bound.stream.asked == [("1",), ("a|b",)]
    return {key: [row[JSON].partition('"n":')[2][0] for row in rows] for key, rows in found.items()}


def test_the_last_row_of_a_record_counts() -> None:
    """Rows without a key are left out, and keys have their text form."""
    assert numbers() == {"1": ["3"], "a%7Cb": ["2"], "5": ["5"]}


def test_rows_of_a_group_belong_together() -> None:
    """In the order of the batch."""
    assert numbers(group_by=("id",))["1"] == ["1", "3"]


def test_rows_that_a_run_would_not_map() -> None:
    """Those that a filter leaves out, or that say that the record was deleted."""
    marked = Filter(field="gone", equals="1")
    assert "5" not in numbers(skip={"gone": marked})
    assert "5" not in numbers(deleted=marked)
