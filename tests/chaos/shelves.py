"""Streams over records in memory, which may change while nobody lists them, and which are fetched by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.chaos.mappings import BenchSettings

from crossdock import Context, OrderBy, RawBatch, Record, RecordError, Reference, Stream
from crossdock.errors import UnavailableError

Item = dict[str, Any]


class Shelf(Stream[BenchSettings]):
    """Records by key.

    Attributes:
        asked: The keys of each fetch.
        pulls: How often everything was listed.
        failing: Keys that cannot be fetched.
        during: Called while a page is read, after its rows were taken.
    """

    key = ("id",)
    order_by = (OrderBy(column="version", as_="integer"),)
    yields_deleted = True
    on_gone = "delete"

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.asked: list[tuple[str, ...]] = []
        self.pulls = 0
        self.failing: set[str] = set()
        self.during: Callable[[], None] = lambda: None

    def put(self, key: str, **members: Any) -> None:
        version = self.items.get(key, {}).get("version", 0) + 1
        self.items[key] = {"id": key, "version": version, **members}

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch]:
        self.pulls += 1
        items = [dict(item) for item in self.items.values()]
        self.during()
        yield RawBatch.json(items, source=f"list {self.pulls}")

    def fetch(self, ctx: Context[BenchSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        names = tuple(key for (key,) in keys)
        self.asked.append(names)
        if bad := [key for key in names if key in self.failing]:
            raise UnavailableError(f"the shop does not answer: it cannot give {bad[0]}")
        found = [self.items[key] for key in names if key in self.items]
        gone = [key for key in names if key not in self.items]
        self.during()
        yield RawBatch.json(found, source=f"fetch {len(self.asked)}", deleted=gone)


class Customers(Shelf):
    name, resource = "customers", "customer"

    def to_resource(self, record: Record) -> dict[str, Any]:
        name = record.at("/name", str)
        if name == "bad":
            raise RecordError("bad_value", "is bad", pointer="/name")
        return {"name": name}


class Orders(Shelf):
    name, resource, fetch_size = "orders", "order", 2

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {
            "customerId": Reference("customer", record.at("/customer", str)),
            "currency": "EUR",
            "placedAt": "2026-07-01T00:00:00Z",
            "items": [{"productId": "prd_1", "quantity": 1, "unitPrice": 1}],
        }
