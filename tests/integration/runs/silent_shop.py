"""A shop that does not move the cursor at every change, and nights of which the plan says every number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.chaos.mappings import Bench, BenchSettings

from crossdock import Context, RawBatch, Record, Stream
from crossdock.errors import RemoteError, UnavailableError
from crossdock.mapping.stream_declaration import GoneLimits, OpenUntil, Reread
from crossdock.runs.run_report import Report
from crossdock.sources import Checkpoint, Cursor

Item = dict[str, Any]


class Shop(Stream[BenchSettings]):
    """Customers by key, each with the number of its last change that the shop shows.

    Attributes:
        asked: What each list was asked for.
        fetched: The keys of each fetch.
        broken: Keys of which a list or a fetch fails.
    """

    name, resource, key = "customers", "customer", ("id",)
    cursor = Cursor(column="changed", as_="integer", overlap=0)
    gone = GoneLimits(at_most=10, at_most_percent=100, rows_within_percent=50)

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.moved = 0
        self.asked: list[str | None] = []
        self.fetched: list[list[str]] = []
        self.broken: set[str] = set()
        self.is_listed = True

    def put(self, key: str, *, silently: bool = False, **members: Any) -> None:
        """Change a record; *silently* if the shop does not move its cursor."""
        self.moved += not silently
        before = self.items.get(key, {"id": key, "changed": self.moved})
        self.items[key] = before | members | ({} if silently else {"changed": self.moved})

    def pull(self, ctx: Context[BenchSettings], since: str | None) -> Iterator[RawBatch | Checkpoint]:
        self.asked.append(since)
        if since is None and not self.is_listed:
            raise RemoteError("the full list is not available")
        found = [item for item in self.items.values() if item["changed"] >= int(since or 0)]
        for number, item in enumerate(sorted(found, key=lambda item: item["changed"])):
            yield RawBatch.json([item], source=f"list {len(self.asked)} page {number}")

    def fetch(self, ctx: Context[BenchSettings], keys: Sequence[tuple[str, ...]]) -> Iterator[RawBatch]:
        names = [key for (key,) in keys]
        self.fetched.append(names)
        if self.broken.intersection(names):
            raise UnavailableError("the shop does not answer")
        yield RawBatch.json([self.items[name] for name in names if name in self.items], source="fetch")

    def to_resource(self, record: Record) -> dict[str, Any]:
        return {"name": record.at("/name", str)}


class Rereading(Shop):
    reread = Reread(every="7d")


class Following(Shop):
    open_until = OpenUntil(field="state", in_=["paid", "cancelled"])
    fetch_size = 2


def night(bench: Bench, *, days: float = 1.0) -> Report:
    """The next run, of which the plan said every number."""
    bench.clock.advance(days * 86_400)
    planned, _ = bench.plan()
    report = bench.sync()
    assert report.balanced
    assert {name: str(error) for name, error in planned.errors.items()} == {
        name: str(error) for name, error in report.errors.items()
    }
    for name, tally in report.tallies.items():
        assert planned.tallies[name].as_json() == tally.as_json(), name
    return report


def held(bench: Bench) -> dict[str, str]:
    """The names of the platform's customers by their external ids."""
    stored = bench.platform._stored.values()
    return {body["externalId"].partition(":")[2]: body["name"] for body in stored}
