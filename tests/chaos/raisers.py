"""Everything that the code of a mapping may do to a record, and what must become of the record."""

from __future__ import annotations

import decimal
import json
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any, Never

from pydantic import BaseModel

from crossdock import CustomerDraft, OrderDraft, Record, RecordError, Reference, RefusedError
from crossdock.errors import ConfigError, StateError, UnavailableError

SECRET = "hunter2"
"""Stands in the text of each exception, as data of a record would."""


def good(record: Record) -> dict[str, Any]:
    """The draft that the record makes where nothing is wrong."""
    line = {"productId": "prd_1", "quantity": 1, "unitPrice": 1}
    placed = datetime(2026, 7, 1, tzinfo=UTC)
    return {"customerId": "cus_1", "currency": "EUR", "placedAt": placed, "items": [line], "status": record.key}


class OddError(Exception):
    """One that cannot even be shown."""

    def __str__(self) -> str:
        raise ValueError(SECRET)

    __repr__ = __str__


class Shop(BaseModel):
    """A model of the author's own, whose findings may quote the record."""

    price: int


class NoZone(tzinfo):
    """A zone with a defect."""

    def utcoffset(self, at: datetime | None) -> timedelta:
        raise LookupError(SECRET)

    def dst(self, at: datetime | None) -> None:
        return None

    def tzname(self, at: datetime | None) -> str:
        return SECRET


class Unreadable(UserDict[str, Any]):
    """Members with a defect."""

    def __getitem__(self, name: str) -> Any:
        raise LookupError(SECRET)


def _raising(error: Callable[[], BaseException]) -> Callable[[Record], Never]:
    def make(record: Record) -> Never:
        raise error()

    return make


def _deep(record: Record) -> Any:
    return _deep(record)


def _in_a_library(record: Record) -> Any:
    return json.loads("{" + SECRET)


def _while_handling(record: Record) -> Any:
    try:
        return int(SECRET)
    except ValueError as error:
        raise KeyError(SECRET) from error


def _changes_its_row(record: Record) -> Any:
    record.row.clear()
    record.row["F"] = 1.5  # type: ignore[assignment]  # which no JSON of ours can hold
    return good(record)


def _changes_its_row_and_fails(record: Record) -> Any:
    _changes_its_row(record)
    raise KeyError(SECRET)


def _with(**changes: Any) -> Callable[[Record], Any]:
    return lambda record: good(record) | changes


def _copied(**changes: Any) -> Callable[[Record], Any]:
    return lambda record: OrderDraft.model_validate(good(record)).model_copy(update=changes)


_LATE = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-5)))


@dataclass(frozen=True, slots=True)
class Fate:
    make: Callable[[Record], Any]
    becomes: str


_ERRORS: dict[str, Callable[[], BaseException]] = {
    kind.__name__: partial(kind, SECRET)
    for kind in (
        KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError, OverflowError, decimal.InvalidOperation,
        AssertionError, IndexError, RuntimeError, NotImplementedError, OSError, TimeoutError, EOFError, ImportError,
        StopIteration, BufferError, ConfigError, RefusedError, UnavailableError, StateError,
    )
}  # fmt: skip
_FAILING: dict[str, Callable[[Record], Any]] = {
    **{name: _raising(error) for name, error in _ERRORS.items()},
    "RecursionError": _deep,
    "UnicodeEncodeError": lambda record: f"{SECRET}\ud800".encode(),
    "UnicodeDecodeError": lambda record: (SECRET.encode() + b"\xff").decode(),
    "ExceptionGroup": _raising(lambda: ExceptionGroup(SECRET, [ValueError(SECRET)])),
    "an error that cannot be shown": _raising(OddError),
    "an error with a name that cannot be printed": _raising(type("Odd\x1b\u202e\n", (Exception,), {})),
    "a finding of another model": lambda record: Shop.model_validate({"price": SECRET}),
    "an unknown reason": _raising(lambda: RecordError(f"no such reason, {SECRET}" * 9, SECRET)),
    "members that cannot be read": lambda record: Unreadable(good(record)),
    "in a library": _in_a_library,
    "while handling": _while_handling,
    "another row and an error": _changes_its_row_and_fails,
    "nothing": lambda record: None,
    "a number": lambda record: 7,
    "a list": lambda record: [],
    "the draft of another resource": lambda record: CustomerDraft(name="x"),
}
_BAD: dict[str, Callable[[Record], Any]] = {
    "bad": _raising(lambda: RecordError("bad_value", "is bad", pointer="F")),
    "bad, with any text": _raising(lambda: RecordError("bad_value", "a\0b\ud800\u202e\x1b[31m", pointer="\0\ud800")),
    "bad, at length": _raising(lambda: RecordError("bad_value", "x" * 1_000_000, pointer="y" * 1_000_000)),
    "bad, with an error for a text": _raising(lambda: RecordError("bad_value", ValueError("no"))),  # type: ignore[arg-type]
}
_INVALID: dict[str, Callable[[Record], Any]] = {
    "a zone with a defect": _with(placedAt=datetime(2026, 1, 1, tzinfo=NoZone())),
    "items that cannot be read": lambda record: good(record) | {"items": map(int, [SECRET])},
    "an unchecked draft": lambda record: OrderDraft.model_construct(**good(record) | {"status": 1.5}),
    "half a character": _with(status="\ud800"),
    "half a character in a name": _with(**{"\ud800": 1}),
    "an unknown member": _with(nonsense=1),
    "a float": _with(items=[{"productId": "p", "quantity": 1.5, "unitPrice": 1}]),
    "NaN": _with(items=[{"productId": "p", "quantity": Decimal("NaN"), "unitPrice": 1}]),
    "sNaN": _with(items=[{"productId": "p", "quantity": Decimal("sNaN"), "unitPrice": 1}]),
    "infinity": _with(items=[{"productId": "p", "quantity": Decimal("-Infinity"), "unitPrice": 1}]),
    "a huge exponent": _with(items=[{"productId": "p", "quantity": Decimal("1E+999999999"), "unitPrice": 1}]),
    "a tiny exponent": _with(items=[{"productId": "p", "quantity": Decimal("1E-999999999"), "unitPrice": 1}]),
    "five thousand digits": _with(items=[{"productId": "p", "quantity": 10**5_000, "unitPrice": 1}]),
    "a time that UTC has not": _with(placedAt=_LATE),
    "a time without zone": _with(placedAt=datetime(2026, 1, 1)),  # noqa: DTZ001  on purpose
    "an impossible time": _with(placedAt=10**400),
    "a reference by number": _with(customerId=Reference("customer", 17)),  # type: ignore[arg-type]
    "a reference to nothing": _with(customerId=Reference("customer", "")),
    "a reference to half a character": _with(customerId=Reference("customer", "\ud800")),
    "a reference to half a key": _with(customerId=Reference("customer", ("a", ""))),
    "a reference into NUL": _with(customerId=Reference("customer", "a", "\0")),
    "a reference to no resource": _with(customerId=Reference("shop", "1")),  # type: ignore[arg-type]
    "a copy with a float": _copied(status=1.5),
    "a copy with a set": _copied(items={1}),
    "a copy with a reference by number": _copied(customer_id=Reference("customer", 17)),  # type: ignore[arg-type]
}
_DELIVERED: dict[str, Callable[[Record], Any]] = {
    "good": good,
    "a draft": lambda record: OrderDraft.model_validate(good(record)),
    "another row": _changes_its_row,
}
FATES = {
    name: Fate(make, becomes)
    for becomes, group in {
        "mapping_failed": _FAILING,
        "bad_value": _BAD,
        "invalid_draft": _INVALID,
        "delivered": _DELIVERED,
    }.items()
    for name, make in group.items()
}
