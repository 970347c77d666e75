from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.partners.amazon import LOGIN, OUTBOUND
from tests.partners.amazon_orders import Package
from tests.partners.amazon_site import DENIED, ORDERS, Site, opened, order, stocked
from tests.partners.amazon_wire import timestamp

site = pytest.fixture(stocked, name="site")


def test_a_token_lives_for_a_while(site: Site) -> None:
    """A token is accepted until its life ends; then a new one is needed, and the old one stays expired."""
    site.clock.advance(3599)
    assert site.client.get(ORDERS).status_code == 200
    site.clock.advance(1)
    answer = site.client.get(ORDERS)
    details = "The access token you provided has expired."
    assert (answer.status_code, answer.json()) == (
        403,
        {"errors": [{"code": "Unauthorized", "message": DENIED, "details": details}]},
    )
    site.client.headers["x-amz-access-token"] = site.log_in(site.seller)
    assert site.client.get(ORDERS).status_code == 200


@pytest.mark.parametrize(
    ("token", "details"),
    [
        ("", "Access token is missing in the request header."),
        ("Atza|x", "The access token you provided is revoked, malformed or invalid."),
    ],
)
def test_without_a_token_nothing_is_answered(site: Site, token: str, details: str) -> None:
    """A missing or unknown token is refused with 403, and nothing happens."""
    before = list(site.amazon.effects)
    answer = site.client.post(ORDERS, json=order(), headers={"x-amz-access-token": token})
    assert (answer.status_code, answer.json()["errors"][0]["details"]) == (403, details)
    assert site.amazon.effects == before


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"refresh_token": "Atzr|other"}, 400, "invalid_grant"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": ""}, 400, "invalid_request"),
    ],
)
def test_a_wrong_login_is_refused(site: Site, change: dict[str, str], status: int, error: str) -> None:
    """The login answers with the errors of OAuth 2.0."""
    form = {"grant_type": "refresh_token", "refresh_token": site.seller.refresh_token}
    form |= {"client_id": site.amazon.client_id, "client_secret": site.amazon.client_secret}
    answer = site.client.post(LOGIN, data=form | change)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_an_order_is_accepted_and_holds_stock(site: Site) -> None:
    """What was sent is what is read; the units are reserved; the accepted body is in the effects."""
    price = {"currencyCode": "USD", "value": "18.90"}
    body = order(notificationEmails=["a@example.com"], fulfillmentPolicy="FillAll")
    body["items"][0] |= {"perUnitDeclaredValue": price, "giftMessage": "Enjoy"}
    site.create(body)
    got = site.get()
    sent = {name: value for name, value in body.items() if name != "items"}
    assert sent.items() <= got["fulfillmentOrder"].items()
    assert body["items"][0].items() <= got["fulfillmentOrderItems"][0].items()
    assert got["fulfillmentOrder"]["fulfillmentOrderStatus"] == "Received"
    assert site.stock() == (8, 2, 0, 0, 10)
    effect = {"kind": "order_created", "seller": "SELLER-A", "at": timestamp(site.clock.now()), "order": "A-1"}
    assert site.amazon.effects[-1] == effect | {"body": body}


def test_a_key_is_used_once(site: Site) -> None:
    """A second order with the same key is refused, even if it is the same, and after the first was cancelled."""
    site.create(order())
    message = "A create request already exists for merchantFulfillmentOrderId: A-1"
    assert site.refused("POST", ORDERS, json=order()) == message
    site.ok("PUT", f"{ORDERS}/A-1/cancel")
    assert site.refused("POST", ORDERS, json=order("A-1", ("TEA", 1))) == message
    assert [effect["kind"] for effect in site.amazon.effects].count("order_created") == 1
    assert site.stock() == (10, 0, 0, 0, 10)


@pytest.mark.parametrize("key", ["A/1", "A 1", "1+2", "50%", "Größe"])
def test_a_key_can_have_any_characters(site: Site, key: str) -> None:
    """A key in the path is percent-encoded."""
    site.create(order(key))
    assert site.get(quote(key, safe=""))["fulfillmentOrder"]["sellerFulfillmentOrderId"] == key
    site.ok("PUT", f"{ORDERS}/{quote(key, safe='')}/cancel")
    assert site.seller.orders[key].status == "Cancelled"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"sellerFulfillmentOrderId": "x" * 41}, "sellerFulfillmentOrderId"),
        ({"sellerFulfillmentOrderId": 1}, "sellerFulfillmentOrderId"),
        ({"displayableOrderId": "A  1"}, "displayableOrderId"),
        ({"displayableOrderId": "\u0416-1"}, "displayableOrderId"),
        ({"displayableOrderDate": "2026-01-09"}, "displayableOrderDate"),
        ({"displayableOrderComment": None}, "displayableOrderComment"),
        ({"shippingSpeedCategory": "standard"}, "shippingSpeedCategory"),
        ({"shippingSpeedCategory": "ScheduledDelivery", "fulfillmentAction": "Hold"}, "Hold is not valid"),
        ({"destinationAddress": {**order()["destinationAddress"], "city": ""}}, "the city is missing"),
        ({"destinationAddress": {**order()["destinationAddress"], "countryCode": "USA"}}, "countryCode"),
        ({"displayableOrderComment": "x" * 751}, "displayableOrderComment"),
        ({"notificationEmails": ["x" * 65]}, "notificationEmails.0"),
        (
            {"items": [{**order()["items"][0], "sellerFulfillmentOrderItemId": "x" * 51}]},
            "sellerFulfillmentOrderItemId",
        ),
        ({"items": [{**order()["items"][0], "giftMessage": "x" * 513}]}, "giftMessage"),
        ({"items": [{**order()["items"][0], "displayableComment": "x" * 251}]}, "displayableComment"),
        ({"items": []}, "items"),
        ({"items": order("A", ("TEA", 0))["items"]}, "items.0.quantity"),
        ({"items": order("A", ("TEA", 251))["items"]}, "250 units"),
        ({"items": order("A", *[("TEA", 1)] * 101)["items"]}, "items"),
        ({"items": order()["items"] * 2}, "same sellerFulfillmentOrderItemId"),
        ({"items": order("A", ("COFFEE", 1))["items"]}, "the SellerSKU for Item Id: 1 is invalid."),
        ({"marketplaceId": "A1PA6795UKMFR9"}, "MarketplaceId"),
        ({"externalId": "1"}, "externalId"),
    ],
)
def test_a_wrong_order_is_refused(site: Site, change: dict[str, Any], place: str) -> None:
    """An order that breaks a rule is refused with the place of the error, and does not exist."""
    assert place in site.refused("POST", ORDERS, json=order(**change))
    assert site.seller.orders == {}
    assert site.client.get(f"{ORDERS}/A-1").status_code == 404


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b"null", b'{"items": NaN}'])
def test_what_is_no_order_is_refused(site: Site, content: bytes) -> None:
    """A body that is no JSON object is refused."""
    assert site.refused("POST", ORDERS, content=content)


def test_a_shipment_in_parts(site: Site) -> None:
    """Each part has its packages; only the first changes the status, until the last completes the order."""
    site.seller.receive("JAM", 3)
    site.create(order("A-1", ("TEA", 4), ("JAM", 3)))
    site.clock.advance(60)
    site.seller.plan("A-1")
    assert site.status() == "Planning"
    site.clock.advance(60)
    began = timestamp(site.clock.now())
    site.seller.ship("A-1", {"1": 1}, packages=[Package("UPS", "1Z1")])
    site.clock.advance(60)
    site.seller.ship("A-1", {"1": 2, "2": 1}, packages=[Package("UPS", "1Z2"), Package("FEDEX", "77")])
    got = site.get()
    assert got["fulfillmentOrder"]["fulfillmentOrderStatus"] == "Processing"
    assert got["fulfillmentOrder"]["statusUpdatedDate"] == began  # the second part is no change of the status
    assert [shipment["fulfillmentShipmentStatus"] for shipment in got["fulfillmentShipments"]] == ["SHIPPED"] * 2
    first, second = got["fulfillmentShipments"][1]["fulfillmentShipmentPackage"]
    assert (first["trackingNumber"], second["carrierCode"]) == ("1Z2", "FEDEX")
    units = got["fulfillmentShipments"][1]["fulfillmentShipmentItem"]
    assert [(unit["sellerSku"], unit["quantity"]) for unit in units] == [("TEA", 2), ("JAM", 1)]
    assert [unit["packageNumber"] for unit in units] == [first["packageNumber"], second["packageNumber"]]
    assert site.stock() == (6, 1, 0, 0, 7)
    tracked = site.ok("GET", f"{OUTBOUND}/tracking", params={"packageNumber": second["packageNumber"]})["payload"]
    assert (tracked["carrierCode"], tracked["trackingNumber"]) == ("FEDEX", "77")
    site.seller.ship("A-1")
    assert site.status() == "Complete"
    assert [effect["kind"] for effect in site.amazon.effects].count("order_shipped") == 3


def test_a_shipment_that_is_picked_is_pending(site: Site) -> None:
    """Units that are picked are a pending shipment without a package, still reserved, and shipped as they are."""
    site.create(order())
    site.seller.pick("A-1", {"1": 1})
    [shipment] = site.get()["fulfillmentShipments"]
    assert (shipment["fulfillmentShipmentStatus"], shipment["fulfillmentShipmentItem"][0]["packageNumber"]) == (
        "PENDING",
        0,
    )
    assert site.stock() == (8, 2, 0, 0, 10)
    site.seller.ship("A-1")
    assert site.stock() == (8, 1, 0, 0, 9)
    with pytest.raises(ValueError, match="does not hold"):
        site.seller.pick("A-1", {"1": 2})


def test_an_order_is_cancelled_until_it_is_picked(site: Site) -> None:
    """An order that was received or planned is cancelled and gives its units back; one in work, or done, is not."""
    for key in ("A-1", "A-2", "A-3"):
        site.create(order(key))
    site.seller.plan("A-2")
    site.seller.pick("A-3")
    assert site.ok("PUT", f"{ORDERS}/A-1/cancel") == site.ok("PUT", f"{ORDERS}/A-2/cancel") == {}
    assert site.get("A-1")["fulfillmentOrderItems"][0]["cancelledQuantity"] == 2
    assert (site.status("A-1"), site.status("A-2")) == ("Cancelled", "Cancelled")
    assert "Processing" in site.refused("PUT", f"{ORDERS}/A-3/cancel")
    assert "Cancelled" in site.refused("PUT", f"{ORDERS}/A-1/cancel")
    assert site.client.put(f"{ORDERS}/A-4/cancel").status_code == 404
    assert site.stock() == (8, 2, 0, 0, 10)


@pytest.mark.parametrize(
    ("policy", "status", "unfulfillable", "reserved"),
    [("FillOrKill", "Invalid", 0, 0), ("FillAllAvailable", "Received", 2, 10), ("FillAll", "Received", 0, 10)],
)
def test_an_order_without_enough_stock(site: Site, policy: str, status: str, unfulfillable: int, reserved: int) -> None:
    """The policy of the order decides what becomes of it."""
    site.create(order("A-1", ("TEA", 12), fulfillmentPolicy=policy))
    assert (site.status(), site.stock()[1]) == (status, reserved)
    assert site.get()["fulfillmentOrderItems"][0]["unfulfillableQuantity"] == unfulfillable


def test_an_order_that_waits_gets_what_arrives(site: Site) -> None:
    """FillAll ships what there is, and the rest when it arrives."""
    site.create(order("A-1", ("TEA", 12), fulfillmentPolicy="FillAll"))
    site.seller.ship("A-1")
    assert site.status() == "Processing"
    site.seller.receive("TEA", 5)
    site.seller.ship("A-1")
    assert (site.status(), site.stock()) == ("Complete", (3, 0, 0, 0, 3))


@pytest.mark.parametrize(
    ("policy", "missing", "status", "stock"),
    [
        ("FillOrKill", 1, "Unfulfillable", (9, 0, 1, 0, 10)),
        ("FillAllAvailable", 1, "Received", (6, 3, 1, 0, 10)),
        ("FillAllAvailable", 4, "Unfulfillable", (6, 0, 4, 0, 10)),
    ],
)
def test_units_that_cannot_be_found(site: Site, policy: str, missing: int, status: str, stock: tuple[int, ...]) -> None:
    """Missing units are looked for; an order to be filled whole or not at all loses the others, and gives them back."""
    site.create(order("A-1", ("TEA", 4), fulfillmentPolicy=policy))
    site.seller.cannot_fulfill("A-1", {"1": missing})
    assert (site.status(), site.stock()) == (status, stock)


def test_what_is_picked_still_ships(site: Site) -> None:
    """An order of which the rest cannot be found is in work as long as a shipment of it is picked."""
    site.create(order("A-1", ("TEA", 4)))
    site.seller.pick("A-1", {"1": 1})
    site.seller.cannot_fulfill("A-1", {"1": 1})
    assert (site.status(), site.stock()) == ("Processing", (8, 1, 1, 0, 10))
    site.seller.ship("A-1")
    assert (site.status(), site.stock()) == ("CompletePartialled", (8, 0, 1, 0, 9))


def test_an_order_is_completed_in_part(site: Site) -> None:
    """An order of which a part has shipped and the rest cannot be found is complete in part."""
    site.create(order("A-1", ("TEA", 4)))
    site.seller.ship("A-1", {"1": 3})
    site.seller.cannot_fulfill("A-1")
    assert (site.status(), site.stock()) == ("CompletePartialled", (6, 0, 1, 0, 7))
    with pytest.raises(ValueError, match="CompletePartialled"):
        site.seller.ship("A-1")


def test_an_order_on_hold_can_be_changed(site: Site) -> None:
    """It stays on hold unless the update releases it; what the update does not mention stays; then it is closed."""
    site.create(order("A-1", ("TEA", 2), ("TEA", 1), fulfillmentAction="Hold"))
    with pytest.raises(ValueError, match="on hold: True"):
        site.seller.plan("A-1")
    lines = [{"sellerFulfillmentOrderItemId": "1", "quantity": 5}]
    site.ok("PUT", f"{ORDERS}/A-1", json={"items": lines, "displayableOrderComment": "later"})
    got = site.get()
    assert got["fulfillmentOrder"]["displayableOrderComment"] == "later"
    assert got["fulfillmentOrder"]["fulfillmentAction"] == "Hold"
    assert [item["quantity"] for item in got["fulfillmentOrderItems"]] == [5, 1]
    assert site.stock() == (4, 6, 0, 0, 10)
    assert "no such item" in site.refused("PUT", f"{ORDERS}/A-1", json={"items": [{**lines[0], "sellerSku": "JAM"}]})
    site.ok("PUT", f"{ORDERS}/A-1", json={"fulfillmentAction": "Ship"})
    assert "no order hold" in site.refused("PUT", f"{ORDERS}/A-1", json={"fulfillmentAction": "Ship"})
    assert "displayableOrderDate" in site.refused("PUT", f"{ORDERS}/A-1", json={"displayableOrderDate": "today"})
    site.seller.ship("A-1")
    assert site.status() == "Complete"
    created = site.amazon.effects[1]
    assert [line["quantity"] for line in created["body"]["items"]] == [2, 1]  # the effects are history


def test_an_update_counts_the_stock_again(site: Site) -> None:
    """Units that were unfulfillable when the order came are not so any more if they have arrived before the update."""
    site.create(order("A-1", ("TEA", 12), fulfillmentAction="Hold", fulfillmentPolicy="FillAllAvailable"))
    site.seller.receive("TEA", 5)
    site.ok("PUT", f"{ORDERS}/A-1", json={"fulfillmentAction": "Ship"})
    assert site.get()["fulfillmentOrderItems"][0]["unfulfillableQuantity"] == 0
    assert site.stock() == (3, 12, 0, 0, 15)


def test_upper_case_statuses() -> None:
    """By a switch, statuses are spelled as in the document's own examples."""
    with opened(upper=True) as site:
        site.seller.receive("TEA", 10)
        site.create(order())
        site.create(order("A-2"))
        site.seller.ship("A-1", {"1": 1})
        assert site.status() == "PROCESSING"
        site.seller.cannot_fulfill("A-1")
        listed = site.ok("GET", ORDERS)["payload"]["fulfillmentOrders"]
        statuses = {one["sellerFulfillmentOrderId"]: one["fulfillmentOrderStatus"] for one in listed}
        assert statuses == {"A-1": "COMPLETE_PARTIALLED", "A-2": "RECEIVED"}


def test_stock_moves_in_the_warehouse(site: Site) -> None:
    """Lost units are looked for, damaged ones cannot be sold, a count changes the total; none becomes negative."""
    site.seller.lose("TEA", 2)
    site.seller.damage("TEA", 1)
    site.seller.adjust("TEA", -3)
    site.seller.adjust("TEA", 1)
    assert site.stock() == (5, 0, 2, 1, 8)
    with pytest.raises(ValueError, match="TEA: 6 units of 5 fulfillable"):
        site.seller.adjust("TEA", -6)
    assert site.stock() == (5, 0, 2, 1, 8)


def test_an_unknown_address_is_denied(site: Site) -> None:
    """What is no operation of these APIs is answered as Amazon does, with 403."""
    for method, path in [("GET", "/orders/v0/orders"), ("DELETE", f"{ORDERS}/A-1"), ("PUT", f"{ORDERS}/A-1/status")]:
        assert site.client.request(method, path).json()["errors"][0]["message"] == DENIED


def test_a_package_number_is_a_number(site: Site) -> None:
    """Another text is refused."""
    assert "packageNumber" in site.refused("GET", f"{OUTBOUND}/tracking", params={"packageNumber": "1Z"})


@pytest.mark.parametrize("fault", ["lost_answer", "refused"])
def test_a_lost_create_can_be_looked_up(fault: Any) -> None:
    """After a lost answer the order is there, and a second one is refused; after a refused connection it is not."""
    with opened() as site:
        site.seller.receive("TEA", 10)
        site.server.faults = {fault: 1}
        with pytest.raises(httpx.RemoteProtocolError):
            site.client.post(ORDERS, json=order())
        site.server.faults = {}
        found = site.client.get(f"{ORDERS}/A-1").status_code
        assert found == (200 if fault == "lost_answer" else 404)
        assert site.client.post(ORDERS, json=order()).status_code == (400 if fault == "lost_answer" else 200)
        assert site.stock()[1] == 2
