"""What a look-up of an order says of a parcel, and the units that are told to have left."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock import RecordError
from crossdock.targets import Outcome
from crossdock.values.json_paths import value_at_pointer_refusing_wrong_containers
from crossdock_connectors.shop.shopify.fulfillment_writes_and_look_ups import (
    changed_outcome_if_units_taken,
    fulfillment_input,
    outcome_of_order_look_up,
)


def line(number: int, sku: str | None, units: int) -> dict[str, Any]:
    return {"id": f"L{number}", "sku": sku, "remainingQuantity": units}


def to_ship(number: int, *lines: dict[str, Any], status: str = "OPEN", location: str = "Berlin") -> dict[str, Any]:
    place = {"location": {"id": location}}
    shown = {"nodes": list(lines), "pageInfo": {"hasNextPage": False}}
    return {"id": f"F{number}", "status": status, "assignedLocation": place, "lineItems": shown}


def shown_order(*orders: dict[str, Any], shipped: list[Any] | None = None, more: bool = False) -> dict[str, Any]:
    listed = {"nodes": list(orders), "pageInfo": {"hasNextPage": more}}
    return {"id": "gid://shopify/Order/1", "fulfillments": shipped or [], "fulfillmentOrders": listed}


def fulfillment(number: str, status: str = "SUCCESS") -> dict[str, Any]:
    return {"id": "gid://shopify/Fulfillment/9", "status": status, "trackingInfo": [{"number": number}]}


def chosen(items: Any, *orders: dict[str, Any]) -> dict[str, dict[str, int]]:
    """The units by line and fulfillment order."""
    groups = fulfillment_input({"number": "N1", "items": items}, {"fulfillmentOrders": list(orders)})
    return {
        group["fulfillmentOrderId"]: {row["id"]: row["quantity"] for row in group["fulfillmentOrderLineItems"]}
        for group in groups["lineItemsByFulfillmentOrder"]
    }


def of(**units: int) -> list[dict[str, Any]]:
    return [{"sku": sku, "quantity": count} for sku, count in units.items()]


# ---- the look-up


def test_a_parcel_is_there_if_its_number_is() -> None:
    """One that was cancelled or failed does not count, and neither does another number."""
    there = outcome_of_order_look_up(shown_order(shipped=[fulfillment("N0"), fulfillment("N1")]), "1", "N1")
    assert (there.kind, there.target_id) == ("found", "9")
    for status in ("CANCELLED", "ERROR", "FAILURE"):
        assert outcome_of_order_look_up(shown_order(shipped=[fulfillment("N1", status)]), "1", "N1").kind == "absent"
    unnumbered = {**fulfillment("N0"), "trackingInfo": [{"number": None}]}
    untracked = {**fulfillment("N0"), "trackingInfo": []}
    assert (
        outcome_of_order_look_up(shown_order(shipped=[fulfillment("N10"), unnumbered, untracked]), "1", "N1").kind
        == "absent"
    )


def test_a_parcel_may_be_among_the_numbers_that_are_not_read() -> None:
    """A fulfillment with as many tracking numbers as were asked for may have it."""
    shipped = {**fulfillment("N0"), "trackingInfo": [{"number": f"N0{number}"} for number in range(20)]}
    outcome = outcome_of_order_look_up(shown_order(shipped=[shipped]), "1", "N1")
    assert (outcome.kind, "19 tracking numbers" in outcome.message) == ("rejected", True)


def test_an_absent_parcel_is_made_of_the_fulfillment_orders() -> None:
    """They are what the request is made of."""
    one = to_ship(1, line(1, "A", 2))
    assert outcome_of_order_look_up(shown_order(one), "1", "N1").held == {"fulfillmentOrders": [one]}


def test_an_order_that_does_not_exist_is_missing() -> None:
    """It is named, since its number is in the key alone."""
    outcome = outcome_of_order_look_up(None, "4711", "N1")
    assert (outcome.kind, outcome.reason, outcome.message) == ("rejected", "missing", "the shop has no order 4711")


def test_what_is_not_read_whole_decides_nothing() -> None:
    """A parcel may be among fulfillments that were not read: sent again, it would be told twice."""
    cut = to_ship(1, line(1, "A", 2))
    cut["lineItems"]["pageInfo"]["hasNextPage"] = True
    many = shown_order(shipped=[fulfillment(f"N{number}") for number in range(100)])
    for order, what in (
        (shown_order(more=True), "20 fulfillment orders"),
        (shown_order(cut), "100 lines in a fulfillment order"),
        (many, "99 fulfillments"),
    ):
        outcome = outcome_of_order_look_up(order, "1", "X")
        assert (outcome.kind, what in outcome.message) == ("rejected", True)
    assert outcome_of_order_look_up(many, "1", "N7").kind == "found"


@pytest.mark.parametrize(
    "pointer",
    [
        "/fulfillments",
        "/fulfillments/0",
        "/fulfillments/0/trackingInfo",
        "/fulfillments/0/trackingInfo/0",
        "/fulfillmentOrders",
        "/fulfillmentOrders/pageInfo",
        "/fulfillmentOrders/nodes",
        "/fulfillmentOrders/nodes/0",
        "/fulfillmentOrders/nodes/0/id",
        "/fulfillmentOrders/nodes/0/status",
        "/fulfillmentOrders/nodes/0/lineItems",
        "/fulfillmentOrders/nodes/0/lineItems/pageInfo",
        "/fulfillmentOrders/nodes/0/lineItems/nodes",
        "/fulfillmentOrders/nodes/0/lineItems/nodes/0",
        "/fulfillmentOrders/nodes/0/lineItems/nodes/0/remainingQuantity",
    ],
)
def test_a_part_that_is_null_or_missing_is_not_absent(pointer: str) -> None:
    """The parcel, or its units, may be there: told again, it would be there twice."""
    order = shown_order(to_ship(1, line(1, "A", 2)), shipped=[fulfillment("N0")])
    assert outcome_of_order_look_up(order, "1", "N1").kind == "absent"
    around, _, name = pointer.rpartition("/")
    holder: Any = value_at_pointer_refusing_wrong_containers(order, around)
    place: Any = int(name) if isinstance(holder, list) else name
    holder[place] = None
    with pytest.raises(RecordError):
        outcome_of_order_look_up(order, "1", "N1")
    if isinstance(holder, dict):
        del holder[place]
        with pytest.raises(RecordError):
            outcome_of_order_look_up(order, "1", "N1")


def test_a_text_that_may_be_null_must_be_told() -> None:
    """A parcel without a number and a line without a SKU have null, which is not the same as a member that lacks."""
    shipped, units = {**fulfillment("N0"), "trackingInfo": [{"number": None}]}, line(1, None, 2)
    assert outcome_of_order_look_up(shown_order(to_ship(1, units), shipped=[shipped]), "1", "N1").kind == "absent"
    del units["sku"]
    with pytest.raises(RecordError, match="is missing"):
        outcome_of_order_look_up(shown_order(to_ship(1, units)), "1", "N1")
    with pytest.raises(RecordError, match="is missing"):
        outcome_of_order_look_up(shown_order(shipped=[{**shipped, "trackingInfo": [{}]}]), "1", "N1")


# ---- the request


def test_units_are_taken_from_lines_in_their_order() -> None:
    """Of a product in several lines, each gives what it has; the same product twice in a parcel is added up."""
    order = to_ship(1, line(1, "A", 2), line(2, "B", 5), line(3, "A", 4))
    assert chosen([*of(A=2), *of(A=1), *of(B=5)], order) == {"F1": {"L1": 2, "L2": 5, "L3": 1}}


def test_units_are_taken_from_open_fulfillment_orders_of_one_location() -> None:
    """The first location that has all of them ships them."""
    orders = (
        to_ship(1, line(1, "A", 9), status="ON_HOLD"),
        to_ship(2, line(2, "A", 1), location="Hamburg"),
        to_ship(3, line(3, "A", 1), status="IN_PROGRESS"),
        to_ship(4, line(4, "A", 1)),
    )
    assert chosen(of(A=2), *orders) == {"F3": {"L3": 1}, "F4": {"L4": 1}}
    assert chosen(of(A=1), *orders) == {"F2": {"L2": 1}}


def test_a_parcel_without_items_has_all_that_is_left_at_one_location() -> None:
    """Lines without units or without a SKU are no obstacle, and neither are locations without units."""
    orders = (to_ship(1, line(1, "A", 0), line(2, None, 3)), to_ship(2, line(3, "B", 0), location="Hamburg"))
    assert chosen(None, *orders) == {"F1": {"L2": 3}}


def test_a_parcel_without_items_is_refused_if_units_are_left_at_several_locations() -> None:
    """It is not clear which of them it has, and another location would count as not shipped for ever."""
    orders = (to_ship(1, line(1, "A", 1)), to_ship(2, line(2, "B", 1), location="Hamburg"))
    with pytest.raises(RecordError, match="units left to ship at 2 locations: name the items of the parcel") as refusal:
        chosen(None, *orders)
    assert (refusal.value.code, refusal.value.pointer) == ("conflict", "/items")


@pytest.mark.parametrize(
    ("items", "orders", "wanted"),
    [
        pytest.param(of(A=3), [to_ship(1, line(1, "A", 2))], "3 of A", id="too few"),
        pytest.param(of(A=1), [to_ship(1, line(1, "A", 2), status="CLOSED")], "1 of A", id="closed"),
        pytest.param(of(a=1), [to_ship(1, line(1, "A", 2))], "1 of a", id="other letters"),
        pytest.param(
            of(A=1, B=1),
            [to_ship(1, line(1, "A", 2)), to_ship(2, line(2, "B", 2), location="Hamburg")],
            "1 of A, 1 of B",
            id="two locations",
        ),
        pytest.param(None, [], "any units", id="nothing left"),
    ],
)
def test_units_that_no_location_has_are_refused(items: Any, orders: list[Any], wanted: str) -> None:
    """Nothing is shipped in part: what is wanted is told."""
    with pytest.raises(RecordError, match=f"the shop has not {wanted} left to ship at one location") as refusal:
        chosen(items, *orders)
    assert (refusal.value.code, refusal.value.pointer) == ("conflict", "/items")


def test_tracking_has_what_is_known() -> None:
    """A carrier and a link that are unknown are left out, and no message is sent unless it is wanted."""
    held = {"fulfillmentOrders": [to_ship(1, line(1, "A", 1))]}
    plain = fulfillment_input({"number": "N1"}, held)
    assert (plain["trackingInfo"], plain["notifyCustomer"]) == ({"number": "N1"}, False)
    whole = fulfillment_input({"number": "N1", "carrier": "DHL", "url": "https://t.example/1", "notify": True}, held)
    assert whole["trackingInfo"] == {"number": "N1", "company": "DHL", "url": "https://t.example/1"}
    assert whole["notifyCustomer"] is True


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Fulfillment order 1 has an unfulfillable status= closed.", "changed"),
        ("Invalid fulfillment order line item quantity requested.", "changed"),
        ("Tracking URL is invalid", "rejected"),
    ],
)
def test_a_refusal_may_show_that_others_were_faster(message: str, kind: str) -> None:
    """Then the order is looked up again."""
    assert changed_outcome_if_units_taken(Outcome("rejected", message, 200)).kind == kind
    assert changed_outcome_if_units_taken(Outcome("in_doubt", message, 200)).kind == "in_doubt"
