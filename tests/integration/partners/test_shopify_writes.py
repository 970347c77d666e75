from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.orders import Order
from tests.partners.shopify.site import Site

FULFILL = """mutation ($fulfillment: FulfillmentInput!) { fulfillmentCreate(fulfillment: $fulfillment) {
  fulfillment { id name status totalQuantity trackingInfo { company number url } location { name }
    fulfillmentLineItems(first: 9) { nodes { quantity lineItem { sku } } } }
  userErrors { field message } } }"""
SET = """mutation ($input: InventorySetQuantitiesInput!, $key: String!) {
  inventorySetQuantities(input: $input) @idempotent(key: $key) {
    inventoryAdjustmentGroup { id reason referenceDocumentUri changes { name delta item { sku } location { name } } }
    userErrors { field message code } } }"""
ADJUST = SET.replace("inventorySetQuantities", "inventoryAdjustQuantities").replace("InventorySet", "InventoryAdjust")
STATUS = """query ($id: ID!) { order(id: $id) { displayFulfillmentStatus updatedAt
  fulfillments(first: 5) { name }
  fulfillmentOrders(first: 5) { nodes { status lineItems(first: 5) { nodes { remainingQuantity } } } } } }"""


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def fulfil(site: Site, order: Order, units: int | None = None, **tracking: Any) -> Any:
    [one] = order.fulfillment_orders
    group: dict[str, Any] = {"fulfillmentOrderId": one.id}
    if units is not None:
        group["fulfillmentOrderLineItems"] = [{"id": one.line_items[0].id, "quantity": units}]
    fulfillment = {"lineItemsByFulfillmentOrder": [group], "trackingInfo": tracking}
    return site.data(FULFILL, fulfillment=fulfillment)["fulfillmentCreate"]


def refusal(site: Site, order: Order, units: int | None = None) -> str:
    payload = fulfil(site, order, units)
    assert payload["fulfillment"] is None
    [error] = payload["userErrors"]
    assert error["field"] == ["fulfillment"]
    return str(error["message"])


def kinds(site: Site) -> list[str]:
    return [one["kind"] for one in site.shop.effects]


def test_an_order_is_fulfilled_in_parts(site: Site) -> None:
    """Each part has its tracking; the statuses, the stock and the order's time of change follow."""
    order = site.shop.orders.place(Line(site.lamp, 3))
    site.clock.advance(60)
    made = fulfil(site, order, 2, company="DHL", number="00340", url="https://dhl.example/00340")
    assert made["userErrors"] == []
    shown = made["fulfillment"]
    assert (shown["name"], shown["status"], shown["totalQuantity"]) == ("#1001-F1", "SUCCESS", 2)
    assert shown["trackingInfo"] == [{"company": "DHL", "number": "00340", "url": "https://dhl.example/00340"}]
    assert shown["fulfillmentLineItems"]["nodes"] == [{"quantity": 2, "lineItem": {"sku": "LAMP"}}]
    state = site.data(STATUS, id=order.id)["order"]
    assert (state["displayFulfillmentStatus"], state["updatedAt"]) == ("PARTIALLY_FULFILLED", "2026-01-01T00:01:00Z")
    assert state["fulfillmentOrders"]["nodes"] == [
        {"status": "IN_PROGRESS", "lineItems": {"nodes": [{"remainingQuantity": 1}]}}
    ]
    changed = "{ fulfillmentOrders(first: 5, query: \"updated_at:>'2026-01-01T00:00:00Z'\") { nodes { status } } }"
    assert site.data(changed)["fulfillmentOrders"]["nodes"] == [{"status": "IN_PROGRESS"}]
    fulfil(site, order, numbers=["1", "2"])
    state = site.data(STATUS, id=order.id)["order"]
    assert (state["displayFulfillmentStatus"], state["fulfillmentOrders"]["nodes"][0]["status"]) == (
        "FULFILLED",
        "CLOSED",
    )
    [level] = site.berlin.inventory_levels
    assert (level.units["available"], level.units["committed"], level.units["on_hand"]) == (7, 0, 7)
    assert kinds(site) == ["fulfillment_created", "fulfillment_created"]
    assert site.shop.effects[0]["order"] == order.id


def test_what_cannot_be_fulfilled_is_refused(site: Site) -> None:
    """Too many units, none, a closed, held or unknown fulfillment order are user errors, and nothing ships."""
    order = site.shop.orders.place(Line(site.lamp, 2))
    [one] = order.fulfillment_orders
    wrong = "Invalid fulfillment order line item quantity requested."
    assert {refusal(site, order, units) for units in (3, 0, -1)} == {wrong}
    site.shop.orders.hold(one)
    closed = f"Fulfillment order {one.legacy_resource_id} has an unfulfillable status= "
    assert refusal(site, order) == f"{closed}on_hold."
    site.shop.orders.hold(one, released=True)
    fulfil(site, order)
    assert refusal(site, order) == f"{closed}closed."
    site.shop.orders.delete(order)
    assert refusal(site, order) == "Fulfillment order does not exist."
    assert kinds(site) == ["fulfillment_created"]


def test_one_fulfillment_is_of_one_order_and_location(site: Site) -> None:
    """Fulfillment orders of different orders are not shipped together."""
    groups = [
        {"fulfillmentOrderId": site.shop.orders.place(Line(site.lamp)).fulfillment_orders[0].id} for _ in range(2)
    ]
    payload = site.data(FULFILL, fulfillment={"lineItemsByFulfillmentOrder": groups})["fulfillmentCreate"]
    assert payload["fulfillment"] is None
    assert kinds(site) == []


def test_a_fulfillment_sent_twice_ships_twice(site: Site) -> None:
    """There is no idempotency for fulfillments: while there are units left, the same request ships again."""
    order = site.shop.orders.place(Line(site.lamp, 4))
    fulfil(site, order, 2, number="1")
    fulfil(site, order, 2, number="1")
    assert [one["name"] for one in site.data(STATUS, id=order.id)["order"]["fulfillments"]] == ["#1001-F1", "#1001-F2"]
    assert site.data(STATUS, id=order.id)["order"]["displayFulfillmentStatus"] == "FULFILLED"


def test_an_internal_error_may_come_after_the_effect(site: Site) -> None:
    """An internal error tells nothing about the effect: one request was carried out, the other was not."""
    order = site.shop.orders.place(Line(site.lamp, 2))
    group = {"lineItemsByFulfillmentOrder": [{"fulfillmentOrderId": order.fulfillment_orders[0].id}]}
    site.shop.interrupt("internal_error", "internal_error_after")
    assert site.code(FULFILL, fulfillment=group) == "INTERNAL_SERVER_ERROR"
    assert kinds(site) == []
    assert site.code(FULFILL, fulfillment=group) == "INTERNAL_SERVER_ERROR"
    assert kinds(site) == ["fulfillment_created"]


def test_a_lost_answer_has_an_effect(site: Site) -> None:
    """Served, the answer to a mutation can be lost after it was carried out."""
    order = site.shop.orders.place(Line(site.lamp, 2))
    group = {"lineItemsByFulfillmentOrder": [{"fulfillmentOrderId": order.fulfillment_orders[0].id}]}
    body = {"query": FULFILL, "variables": {"fulfillment": group}}
    token = {"x-shopify-access-token": site.shop.token}
    with (
        serving(PartnerServer(site.shop, {"lost_answer": 1.0})) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.post("/admin/api/2026-10/graphql.json", json=body, headers=token)
    assert kinds(site) == ["fulfillment_created"]


def quantity(site: Site, units: int, expected: int | None, **members: Any) -> dict[str, Any]:
    row = {"inventoryItemId": site.lamp.inventory_item.id, "locationId": site.berlin.id, "quantity": units}
    row |= {"changeFromQuantity": expected, **members}
    return {"name": "available", "reason": "correction", "referenceDocumentUri": "wms://count/1", "quantities": [row]}


def change(site: Site, delta: int, expected: int | None = None, **members: Any) -> dict[str, Any]:
    row = {"inventoryItemId": site.lamp.inventory_item.id, "locationId": site.berlin.id, "delta": delta}
    return {"name": "available", "reason": "restock", "changes": [row | {"changeFromQuantity": expected, **members}]}


def units(site: Site, name: str = "available") -> int:
    return site.berlin.inventory_levels[0].units[name]


def errors(site: Site, query: str, given: dict[str, Any], key: str = "k") -> list[str]:
    payload = next(iter(site.data(query, input=given, key=key).values()))
    assert payload["inventoryAdjustmentGroup"] is None
    return [one["code"] for one in payload["userErrors"]]


def test_stock_is_set_from_a_known_quantity(site: Site) -> None:
    """The quantity is set if it still is what the request says, or whatever it is with null; the level has changed."""
    site.clock.advance(60)
    payload = site.data(SET, input=quantity(site, 7, 10), key="1")["inventorySetQuantities"]
    changes = [(one["name"], one["delta"]) for one in payload["inventoryAdjustmentGroup"]["changes"]]
    assert changes == [("available", -3), ("on_hand", -3)]
    assert payload["inventoryAdjustmentGroup"]["referenceDocumentUri"] == "wms://count/1"
    assert errors(site, SET, quantity(site, 5, 10), "2") == ["CHANGE_FROM_QUANTITY_STALE"]
    site.data(SET, input=quantity(site, 5, None), key="3")
    assert (units(site), units(site, "on_hand")) == (5, 5)
    assert site.berlin.inventory_levels[0].updated_at == site.clock.now()
    assert kinds(site) == ["stock_written", "stock_written"]


def test_the_quantity_on_hand_is_set(site: Site) -> None:
    """A count of what is on hand changes what is available; what is committed stays."""
    site.shop.orders.place(Line(site.lamp, 4))
    given = quantity(site, 12, 10) | {"name": "on_hand"}
    site.data(SET, input=given, key="1")
    assert (units(site), units(site, "committed"), units(site, "on_hand")) == (8, 4, 12)


def test_stock_is_adjusted(site: Site) -> None:
    """A delta changes the quantity; states other than the available one need a document."""
    site.data(ADJUST, input=change(site, -4), key="1")
    damaged = change(site, 4, ledgerDocumentUri="wms://damage/1") | {"name": "damaged"}
    site.data(ADJUST, input=damaged, key="2")
    assert (units(site), units(site, "damaged"), units(site, "on_hand")) == (6, 4, 10)
    incoming = change(site, 9, ledgerDocumentUri="wms://asn/1") | {"name": "incoming"}
    site.data(ADJUST, input=incoming, key="3")
    assert (units(site, "incoming"), units(site, "on_hand")) == (9, 10)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"inventoryItemId": "gid://shopify/InventoryItem/1"}, "INVALID_INVENTORY_ITEM"),
        ({"locationId": "gid://shopify/Location/1"}, "INVALID_LOCATION"),
        ({"quantity": -1}, "INVALID_QUANTITY_NEGATIVE"),
        ({"quantity": 2_000_000_000}, "INVALID_QUANTITY_TOO_HIGH"),
        ({"changeFromQuantity": 9}, "CHANGE_FROM_QUANTITY_STALE"),
    ],
)
def test_a_wrong_quantity_is_a_user_error(site: Site, wrong: dict[str, Any], code: str) -> None:
    """The error has the place of the row; nothing of the request is carried out, not even its right rows."""
    other = site.variant("CHAIR", "80.00", 3)
    given = quantity(site, 1, None)
    right = given["quantities"][0] | {"inventoryItemId": other.inventory_item.id}
    given["quantities"] = [right, given["quantities"][0] | wrong]
    payload = site.data(SET, input=given, key="1")["inventorySetQuantities"]
    [error] = payload["userErrors"]
    place = ["input", "quantities", "1", next(iter(wrong))]
    assert (error["field"], error["code"]) == (place, code)
    assert (kinds(site), other.inventory_quantity) == ([], 3)


@pytest.mark.parametrize(
    ("query", "members", "code"),
    [
        (SET, {"name": "damaged"}, "INVALID_NAME"),
        (SET, {"reason": "because"}, "INVALID_REASON"),
        (ADJUST, {"name": "on_hand"}, "INVALID_QUANTITY_NAME"),
        (ADJUST, {"name": "damaged"}, "INVALID_QUANTITY_DOCUMENT"),
    ],
)
def test_a_wrong_request_is_a_user_error(site: Site, query: str, members: dict[str, Any], code: str) -> None:
    """Names, reasons and documents are checked."""
    given = quantity(site, 1, None) if query is SET else change(site, 1)
    assert errors(site, query, given | members) == [code]
    assert kinds(site) == []


def test_more_wrong_rows(site: Site) -> None:
    """A document for the available quantity, and a pair that is there twice, are errors."""
    assert errors(site, ADJUST, change(site, 1, ledgerDocumentUri="x://1")) == ["INVALID_AVAILABLE_DOCUMENT"]
    twice = quantity(site, 1, None)
    twice["quantities"] *= 2
    assert errors(site, SET, twice, "2") == ["NO_DUPLICATE_INVENTORY_ITEM_ID_GROUP_ID_PAIR"]


def test_where_an_item_is_not_stocked_nothing_happens(site: Site) -> None:
    """Neither an effect nor an error tells that the item is not stocked there."""
    other = site.shop.catalog.add_location("Hamburg")
    payload = site.data(SET, input=quantity(site, 1, None, locationId=other.id), key="1")["inventorySetQuantities"]
    assert payload == {"inventoryAdjustmentGroup": None, "userErrors": []}
    assert other.inventory_levels == []


@pytest.mark.parametrize("query", [SET, ADJUST])
def test_a_quantity_to_start_from_is_required(site: Site, query: str) -> None:
    """Without changeFromQuantity, even null, the request is an error."""
    given = quantity(site, 1, None) if query is SET else change(site, 1)
    rows = given["quantities" if query is SET else "changes"]
    del rows[0]["changeFromQuantity"]
    body = site.ask(query, input=given, key="1")
    [error] = body["errors"]
    assert error["message"].endswith("must include the following argument: changeFromQuantity.")
    assert (error["extensions"]["code"], list(body["data"].values())) == ("INVALID_FIELD_ARGUMENTS", [None])


def test_a_key_is_required(site: Site) -> None:
    """Without the directive, or with a blank key, the request is an error."""
    without = SET.replace(" @idempotent(key: $key)", "").replace(", $key: String!", "")
    [error] = site.ask(without, input=quantity(site, 1, None))["errors"]
    assert error["message"] == "The @idempotent directive is required for this mutation but was not provided."
    assert error["extensions"]["code"] == "BAD_REQUEST"
    assert site.code(SET, input=quantity(site, 1, None), key=" ") == "BAD_REQUEST"
    assert kinds(site) == []


def test_a_key_changes_stock_once(site: Site) -> None:
    """The same request under the same key is answered again, and not carried out again, for a day."""
    first = site.data(ADJUST, input=change(site, 5), key="1")
    assert site.data(ADJUST, input=change(site, 5), key="1") == first
    assert (units(site), len(kinds(site))) == (15, 1)
    assert errors(site, ADJUST, change(site, 6), "1") == ["IDEMPOTENCY_KEY_PARAMETER_MISMATCH"]
    assert errors(site, SET, quantity(site, 1, None), "1") == ["IDEMPOTENCY_KEY_PARAMETER_MISMATCH"]
    site.clock.advance(86_400)
    site.data(ADJUST, input=change(site, 5), key="1")
    assert (units(site), len(kinds(site))) == (20, 2)


def test_a_key_that_failed_is_used_up(site: Site) -> None:
    """After a user error the key is useless, though the request would now be right; another key is not."""
    given = quantity(site, 1, 9)
    assert errors(site, SET, given, "1") == ["CHANGE_FROM_QUANTITY_STALE"]
    site.shop.catalog.stock(site.lamp, site.berlin, 9)
    assert errors(site, SET, given, "1") == ["IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED"]
    site.data(SET, input=given, key="2")
    assert units(site) == 1


def test_a_key_in_progress_is_refused(site: Site) -> None:
    """While another process carries a request out, the same key is refused; afterwards it is not."""
    site.shop.keys.in_progress.add("1")
    assert errors(site, SET, quantity(site, 1, None), "1") == ["IDEMPOTENCY_CONCURRENT_REQUEST"]
    site.shop.keys.in_progress.clear()
    site.data(SET, input=quantity(site, 1, None), key="1")
    assert units(site) == 1


def test_writing_needs_its_scope() -> None:
    """A scope for reading does not write."""
    site = Site(scopes=ALL_SCOPES - {"write_inventory"} | {"read_inventory"})
    [error] = site.ask(SET, input=quantity(site, 1, None), key="1")["errors"]
    assert (error["extensions"]["code"], error["path"]) == ("ACCESS_DENIED", ["inventorySetQuantities"])
    assert "`write_inventory` access scope" in error["message"]
    assert kinds(site) == []
