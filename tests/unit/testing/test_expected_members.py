"""What an author states of drafts and requests is compared with what the connector makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unittest import SkipTest

import pytest
from tests.unit.testing.reference_connector import PAGES, Orders, OrdersContract, connector
from tests.unit.testing.target_connector import OrdersContract as TargetOrders

from crossdock import Record
from crossdock.resources import Reference
from crossdock.testing.expected_values_and_example_gaps import first_mismatch
from crossdock.testing.record_variants import record_with_other_json_object

MADE = {
    "name": "Lamp",
    "unitPrice": Decimal("24.95"),
    "active": True,
    "placedAt": datetime(2026, 11, 19, 23, 30, tzinfo=UTC),
    "customerId": Reference("customer", "7"),
    "items": [{"quantity": 2, "note": None}],
}


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"unitPrice": Decimal("24.950"), "active": True, "email": None},
        {"placedAt": "2026-11-20T00:30:00+01:00"},
        {"placedAt": datetime(2026, 11, 19, 23, 30, tzinfo=UTC), "customerId": Reference("customer", "7")},
        {"items": [{}]},
        {"items": ({"quantity": Decimal(2), "note": None},)},
    ],
)
def test_members_that_are_not_stated_may_have_any_value(stated: Mapping[str, Any]) -> None:
    """Numbers and instants are compared by value, and null is as a missing member."""
    assert first_mismatch(stated, MADE) == ""


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"unitPrice": Decimal(2495)}, "/unitPrice is Decimal('24.95'), and expects states Decimal('2495')"),
        ({"unitPrice": 24.95}, "/unitPrice is stated as a float; write Decimal('24.95')"),
        ({"unit_price": 1}, "/unit_price is missing, and expects states 1; there are: active, customerId, items, name"),
        ({"active": 1}, "/active is True, and expects states 1"),
        ({"name": None}, "/name is 'Lamp', and expects states None"),
        ({"placedAt": "2026-11-19T18:30:00Z"}, "/placedAt is datetime"),
        ({"items": [{}, {}]}, "/items is a list of 1, and expects states 2 elements"),
        ({"items": [{"quantity": 3}]}, "/items/0/quantity is 2, and expects states 3"),
        ({"name": {"first": "Ada"}}, "/name is 'Lamp', and expects states members of it"),
    ],
)
def test_the_first_difference_is_named(stated: Mapping[str, Any], says: str) -> None:
    """By its place, with both values."""
    assert first_mismatch(stated, MADE).startswith(says)


def test_a_missing_statement_is_a_skip_that_says_what_is_not_found() -> None:
    """A correct connector is not refused."""
    with pytest.raises(SkipTest, match=r"what Orders\.to_resource makes of a record is compared with nothing.*'1'"):
        OrdersContract().test_drafts_are_as_expected()
    with pytest.raises(SkipTest, match=r"expects states no request for \('orders', 'create'\)"):
        TargetOrders().test_requests_are_as_expected()


def test_a_statement_about_a_record_that_is_not_read_fails() -> None:
    """It would hold for nothing."""
    case = type("Case", (OrdersContract,), {"expects": {5: {}}})
    with pytest.raises(AssertionError, match=r"a record '5', which Orders\.pull does not read; it reads '1', '2'"):
        case().test_drafts_are_as_expected()


def test_what_an_example_cannot_show_is_named() -> None:
    """As a skip, also of a target."""
    with pytest.raises(SkipTest, match="no list in a draft has two elements: a list that is cut would not be seen"):
        OrdersContract().test_the_example_can_show_bugs()
    case = type("Case", (TargetOrders,), {"operations": lambda *_: ["create"]})
    with pytest.raises(SkipTest, match=r"OrderTarget\.delete is never tested, since operations"):
        case().test_the_example_can_show_bugs()
    equal = [{"orders": [order | {"created_at": "2026-11-01T10:00:00Z"} for order in page["orders"]]} for page in PAGES]
    case = type("Case", (OrdersContract,), {"pages": equal})
    with pytest.raises(SkipTest, match="all records have the same /created_at: another time in its place, as a cursor"):
        case().test_the_example_can_show_bugs()
    twice = [{"orders": [order | {"created_at": order["updated_at"]} for order in page["orders"]]} for page in PAGES]
    case = type("Case", (OrdersContract,), {"pages": twice})
    with pytest.raises(SkipTest, match="/created_at and /updated_at are equal in all records"):
        case().test_the_example_can_show_bugs()
    case = type("Case", (OrdersContract,), {"expects": {1: {"currency": "EUR"}}})
    with pytest.raises(SkipTest, match="expects states no placedAt, quantity, unitPrice"):
        case().test_the_example_can_show_bugs()


class OfOneChannel(Orders):
    """The lines of one channel."""

    def to_resource(self, record: Record) -> Any:
        lists = [each["lines"] for each in record.json().get("channels") or () if each.get("channel") == "eu"]
        item = record.json() | {"lines": lists[0] if lists else []}
        return super().to_resource(record_with_other_json_object(record, item))


@pytest.mark.parametrize(
    ("orders", "told"),
    [
        (["eu us", "eu us asia"], "of /channels always the first element is chosen"),
        (["us eu", "us asia eu"], "of /channels always the last element is chosen"),
        (["us eu", "eu us"], None),
        (["us eu asia"], None),
        (["eu"], None),
    ],
)
def test_a_choice_that_is_always_at_one_end_is_named(orders: Sequence[str], told: str | None) -> None:
    """A mapping that takes the last element, whatever it is, would pass all tests."""
    base = PAGES[0]["orders"][0]
    listed = [
        base | {"id": number, "channels": [{"channel": each, "lines": base["lines"]} for each in names.split()]}
        for number, names in enumerate(orders)
    ]
    attributes = {"pages": [{"orders": listed}], "is_paged": False, "connector": connector(OfOneChannel)}
    with pytest.raises(SkipTest) as skipped:
        type("Case", (OrdersContract,), attributes)().test_the_example_can_show_bugs()
    assert told in str(skipped.value) if told else "of /channels" not in str(skipped.value)
