"""Trials of a stream in code: what is read, and when reading stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.testing.reference_connector import TOKEN, ShopSettings

from crossdock import Connector, Context, RawBatch, Record, RefusedError, Stream
from crossdock.errors import ConnectorError
from crossdock.runs.stream_trial import Trial
from crossdock.testing import context, read


class Products(Stream[ShopSettings]):
    """Pages of two products each, without end unless *last* is given."""

    name, resource, key = "products", "product", ("id",)

    def __init__(self, last: int | None = None, error: Exception | None = None) -> None:
        self.last, self.error = last, error
        self.pages, self.closed, self.was_finished = 0, False, False

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        try:
            while self.last is None or self.pages < self.last:
                first, self.pages = 2 * self.pages, self.pages + 1
                items = [{"id": number, "sku": str(number)} for number in (first, first + 1)]
                yield RawBatch.json(items, source=f"page {self.pages}", key=["id"], cursor=since)
            if self.error:
                raise self.error
        finally:
            self.closed = True

    def finished(self, ctx: Context[ShopSettings]) -> None:
        self.was_finished = True

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"sku": record.json()["sku"], "name": "x"}


def trial(stream: Products, most: int) -> Trial:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_TOKEN", TOKEN)
        shop = Connector(name="shop", title="A shop", settings=ShopSettings, streams=lambda _: (stream,))
        ctx = context(shop, {"base_url": "https://shop.example", "token": "env:SHOP_TOKEN"})
        return read(shop, ctx, "products", most=most)


@given(st.integers(1, 9))
def test_reading_stops_after_the_wanted_records(most: int) -> None:
    """No page is read that is not needed, the source is closed, and it is not told that anything is finished."""
    stream = Products()
    found = trial(stream, most)
    assert [tried.record.key for tried in found.records] == [str(number) for number in range(most)]
    assert stream.pages == (most + 1) // 2
    assert stream.closed
    assert not stream.was_finished


@pytest.mark.parametrize(
    ("error", "kind"), [(RefusedError("is short", where="page 2"), RefusedError), (KeyError(TOKEN), ConnectorError)]
)
def test_records_before_a_failure_are_kept(error: Exception, kind: type[Exception]) -> None:
    """The error is in the result; that of the connector's code names its line and not its text."""
    found = trial(Products(1, error), 5)
    assert len(found.records) == 2
    assert isinstance(found.error, kind)
    assert TOKEN not in str(found.error)
    assert kind is RefusedError or f"of {__file__}" in str(found.error)


def test_records_after_a_failure_are_not_needed() -> None:
    """A failure behind the wanted records is not met."""
    assert trial(Products(1, KeyError("x")), 2).error is None


class Invoices(Products):
    """Rows of a file in two batches; those of a record are in both."""

    name, resource, key, group_by = "products", "product", ("id",), ("id",)

    def pull(self, ctx: Context[ShopSettings], since: str | None) -> Iterator[RawBatch]:
        for first in (1, 2):
            items = [{"id": number, "sku": "s"} for number in (first, None, 9)]
            yield RawBatch.json(items, source="one file", key=["id"])


def test_rows_of_a_record_are_found_in_all_batches_of_a_file() -> None:
    """Rows without a key are records of their own, and rejected."""
    found = trial(Invoices(), 10)
    assert sorted((tried.record.key, len(tried.record.rows)) for tried in found.records) == [
        ("", 1), ("", 1), ("1", 1), ("2", 1), ("9", 2),
    ]  # fmt: skip
    assert found.rejected_count == 2
