"""What the fake Shopify shop keeps: its records by global id, their times, what its search knows, and what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Literal, TypeVar, cast

R = TypeVar("R", bound="Record")
Change = Literal["create", "update", "delete"]
_UNSET = datetime.min.replace(tzinfo=UTC)


@dataclass(eq=False, kw_only=True)
class Record:
    """An object with a global id. A class is named after its type in the schema, its attributes after the fields.

    Times are kept to the microsecond, though the API shows seconds ("internally some resources store them with
    fractional seconds": shopify.dev/changelog/exclusive-timestamp-filters).
    """

    id: str = ""
    created_at: datetime = field(default=_UNSET, repr=False)
    updated_at: datetime = field(default=_UNSET, repr=False)

    @property
    def legacy_resource_id(self) -> int:
        return number_of(self.id)


def number_of(gid: str) -> int:
    """The number in a global id; that of an inventory level has a query string after it."""
    return int(gid.rpartition("/")[2].partition("?")[0])


def type_of(gid: str) -> str:
    """The type in a global id; empty if it is none."""
    parts = gid.split("/")
    return parts[3] if len(parts) == 5 and gid.startswith("gid://shopify/") else ""


@dataclass(eq=False, kw_only=True)
class BasicEvent(Record):
    """A deletion. ``message`` is empty for those, as shops really answer."""

    action: str
    subject_id: str
    subject_type: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Version:
    """What the search knows of a record from an instant on."""

    visible: datetime
    values: dict[str, Any]


class Records:
    """All records of one shop.

    Args:
        now: Says the time; aware.

    Attributes:
        search_lag: How long a change takes until lists with filters and sort keys know of it. The records that they
            return are always the present ones, as those of a shop whose search index lags behind its database. Set it
            between changes to let a later one be visible before an earlier one.
        effects: What really happened, oldest first, each with the member ``kind``.
        watchers: Told of each change of a record, once it has happened.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now, self.search_lag = now, timedelta(0)
        self.watchers: list[Callable[[Record, Change], None]] = []
        self.effects: list[dict[str, Any]] = []
        self._by_id: dict[str, Record] = {}
        self._by_kind: dict[type[Record], dict[str, Record]] = {}
        self._known: dict[str, list[_Version]] = {}
        self._numbers = count(1001)

    def add(self, record: R, *, suffix: str = "") -> R:
        """Give *record* an id and its times, and keep it."""
        record.id = f"gid://shopify/{type(record).__name__}/{next(self._numbers)}{suffix}"
        record.created_at = self.now()
        self._by_id[record.id] = record
        self._by_kind.setdefault(type(record), {})[record.id] = record
        self._mark(record)
        self._tell(record, "create")
        return record

    def touch(self, *records: Record) -> None:
        """Mark *records* as changed now. The search knows their present values once the lag has passed."""
        for record in records:
            self._mark(record)
            self._tell(record, "update")

    def _mark(self, record: Record) -> None:
        now = record.updated_at = self.now()
        versions = self._known.setdefault(record.id, [])
        versions[:] = [one for one in versions if one.visible < now + self.search_lag]
        versions.append(_Version(now + self.search_lag, _values(record)))

    def _tell(self, record: Record, change: Change) -> None:
        for watcher in self.watchers:
            watcher(record, change)

    def remove(self, record: Record) -> None:
        """Delete *record*; an event tells of products, variants, orders and customers."""
        del self._by_id[record.id], self._by_kind[type(record)][record.id]
        self._known.pop(record.id)
        kind = _SUBJECTS.get(type(record).__name__)
        if kind:
            self.add(BasicEvent(action="destroy", subject_id=record.id, subject_type=kind))
        self._tell(record, "delete")

    def find(self, kind: type[R], gid: str) -> R | None:
        """The record of this class with this id."""
        found = self._by_id.get(gid)
        return found if isinstance(found, kind) else None

    def any(self, gid: str) -> Record | None:
        return self._by_id.get(gid)

    def all(self, kind: type[R]) -> list[R]:
        """The records of this class, oldest first."""
        return [cast("R", one) for one in self._by_kind.get(kind, {}).values()]

    def known(self, kind: type[R]) -> Iterator[tuple[R, dict[str, Any]]]:
        """Records of this class that the search knows, each with the values that it knows."""
        now = self.now()
        for record in self.all(kind):
            seen = [one for one in self._known[record.id] if one.visible <= now]
            if seen:
                yield record, max(seen, key=lambda one: one.visible).values

    def log(self, kind: str, **what: Any) -> None:
        self.effects.append({"kind": kind, "at": shown(self.now()), **what})


_SUBJECTS = {"Product": "PRODUCT", "ProductVariant": "PRODUCT_VARIANT", "Order": "ORDER", "Customer": "CUSTOMER"}
_SEARCHED = (str, int, datetime, type(None))


def _values(record: Record) -> dict[str, Any]:
    """The plain values of a record, copied, with derived ones that searches use."""
    found = {one.name: getattr(record, one.name) for one in fields(cast("Any", record))}
    derived = {name: getattr(record, name) for name in getattr(record, "SEARCHED", ())}
    return {name: value for name, value in {**found, **derived}.items() if isinstance(value, _SEARCHED)}


def shown(instant: datetime) -> str:
    """An instant as the API shows it: UTC, without fractions of a second."""
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
