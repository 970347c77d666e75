"""What an author states of drafts and requests is compared with what the connector makes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unittest import SkipTest

import pytest
from tests.unit.testing.reference_connector import OrdersContract
from tests.unit.testing.target_connector import OrdersContract as TargetOrders

from crossdock.resources import Reference
from crossdock.testing.expected_members import mismatch

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
    assert mismatch(stated, MADE) == ""


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
    assert mismatch(stated, MADE).startswith(says)


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
    case = type("Case", (OrdersContract,), {"expects": {1: {"currency": "EUR"}}})
    with pytest.raises(SkipTest, match="expects states no placedAt, quantity, unitPrice"):
        case().test_the_example_can_show_bugs()
