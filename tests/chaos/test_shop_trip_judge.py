"""The judge of the shop's trip finds what would be wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.chaos.shop_trip_judge import Letters, Sides, faults
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

SHIP = """mutation ($fulfillment: FulfillmentInput!) { fulfillmentCreate(fulfillment: $fulfillment) {
  fulfillment { id } userErrors { field message } } }"""


def sides(*parcels: str) -> Sides:
    """An order of two units, of which the shop was told parcels of one unit each; everything else knows 1Z1 and 1Z2."""
    site = Site()
    order = site.shop.orders.place(Line(site.lamp, 2), email="a@example.com")
    (one,) = order.fulfillment_orders
    for number in parcels or ("1Z1", "1Z2"):
        rows = [{"id": one.line_items[0].id, "quantity": 1}]
        group = {"fulfillmentOrderId": one.id, "fulfillmentOrderLineItems": rows}
        site.data(SHIP, fulfillment={"lineItemsByFulfillmentOrder": [group], "trackingInfo": {"number": number}})
    key = f"shop:{order.legacy_resource_id}"
    who = {"owner": "acme", "reference": "erp:ord_1", "customer": {"code": key}}
    tracking = [{"number": number} for number in parcels or ("1Z1", "1Z2")]
    bodies = {
        "customer": {"email": "a@example.com"},
        "order": {"externalId": key, "status": "shipped", "tracking": tracking},
        "invoice": {"customerId": "customer-1", "items": [{"quantity": 2, "unitPrice": "49.90"}]},
    }
    happened = [{"resource": name, "id": f"{name}-1", "body": body} for name, body in bodies.items()]
    line = {"sku": "LAMP", "quantity": 2, "shipped": 2}
    tables: dict[str, dict[str, Any]] = {
        "stock": {"1": {"owner": "acme", "sku": "LAMP", "location": "A-01", "quantity": 8}},
        "orders": {"2": {**who, "status": "shipped", "lines": [line]}},
        "shipments": {
            number: {**who, "tracking": number, "lines": [{"sku": "LAMP", "quantity": 1}]} for number in ("1Z1", "1Z2")
        },
    }
    return Sides([order], {("LAMP", "A-01"): 8}, happened, tables)


def again(found: Sides, table: str, name: str) -> None:
    """The 3PL has a record once more."""
    found.tables[table]["again"] = copy.deepcopy(found.tables[table][name])  # type: ignore[index]  # made above


def invoiced_again(found: Sides) -> None:
    found.happened.append({**found.happened[-1], "id": "invoice-2"})  # type: ignore[attr-defined]  # a list, see above


def told(found: Sides, **members: Any) -> None:
    """The platform was told other members of the order."""
    found.happened[1]["body"].update(members)


def test_sides_that_agree_have_no_faults() -> None:
    """So each other test shows what its own change is taken for."""
    assert faults(sides(), {}) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param(lambda each: again(each, "orders", "2"), "the 3PL has 2 orders", id="an order twice"),
        pytest.param(lambda each: each.tables["orders"].clear(), "the 3PL has []", id="an order is lost"),
        pytest.param(
            lambda each: each.tables["orders"]["2"]["lines"][0].update(quantity=3), "the 3PL has [C", id="other goods"
        ),
        pytest.param(
            lambda each: each.tables["shipments"].update(new={**each.tables["shipments"]["1Z1"], "tracking": "1Z3"}),
            "the shop was told None",
            id="a parcel is not told",
        ),
        pytest.param(lambda each: each.tables["shipments"].pop("1Z2"), "do not exist", id="a parcel that is none"),
        pytest.param(
            lambda each: each.tables["shipments"]["1Z1"]["lines"][0].update(quantity=2), "was told", id="other units"
        ),
        pytest.param(lambda each: each.tables["stock"]["1"].update(quantity=9), "stock: ", id="other stock"),
        pytest.param(invoiced_again, "invoices: ", id="an invoice twice"),
        pytest.param(lambda each: told(each, status="open"), "orders of the platform: ", id="another status"),
        pytest.param(lambda each: told(each, tracking=[]), "orders of the platform: ", id="no tracking"),
    ],
)
def test_a_difference_is_a_fault(change: Callable[[Sides], object], fault: str) -> None:
    """What is wrong is told."""
    found = sides()
    change(found)
    assert any(fault in each for each in faults(found, {}))


def test_a_parcel_that_is_told_twice_is_a_fault() -> None:
    """Its number is at the shop two times."""
    assert any("told twice" in fault for fault in faults(sides("1Z1", "1Z1"), {}))


@pytest.mark.parametrize("stream", ["plain.shipments", "erp.orders", "plain.stock"])
def test_a_dead_letter_needs_a_reason(stream: str) -> None:
    """Nothing has changed the order, and nothing else is ever refused."""
    found = sides()
    key = f"{found.orders[0].legacy_resource_id}|1Z1" if stream == "plain.shipments" else "ord_1"
    letters: Letters = {(stream, key): ("rejected", "conflict: no")}
    assert len(faults(found, letters)) == 1
