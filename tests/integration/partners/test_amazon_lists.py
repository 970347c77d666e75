from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from tests.partners.amazon import INVENTORY, OUTBOUND
from tests.partners.amazon_access import LIMITS
from tests.partners.amazon_site import OF_MARKETPLACE, ORDERS, US, Site, opened, order, stocked
from tests.partners.amazon_wire import timestamp

site = pytest.fixture(stocked, name="site")


def keys_of(payload: dict[str, Any]) -> list[str]:
    return [str(one["sellerFulfillmentOrderId"]) for one in payload["fulfillmentOrders"]]


def test_orders_are_listed_by_the_change_of_their_status() -> None:
    """A list has the orders whose status changed at or after the date, without one those of the last 36 hours."""
    with opened(token_life=timedelta(days=3)) as site:
        site.seller.receive("TEA", 10)
        for key in ("A-1", "A-2", "A-3"):
            site.create(order(key))
            site.clock.advance(24 * 3600 if key == "A-1" else 0.4)
        when = timestamp(site.seller.orders["A-2"].updated)
        assert keys_of(site.ok("GET", ORDERS, params={"queryStartDate": when})["payload"]) == ["A-2", "A-3"]
        site.clock.advance(12 * 3600)
        assert keys_of(site.ok("GET", ORDERS)["payload"]) == ["A-2", "A-3"]
        old = {"queryStartDate": "2000-01-01T00:00:00+02:00"}
        assert keys_of(site.ok("GET", ORDERS, params=old)["payload"]) == ["A-1", "A-2", "A-3"]
        assert "queryStartDate" in site.refused("GET", ORDERS, params={"queryStartDate": "2026-01-01"})


def test_orders_are_listed_page_by_page() -> None:
    """A token continues where the page ended; an order whose status changes meanwhile is seen again."""
    with opened(page_size=2) as site:
        site.seller.receive("TEA", 100)
        for key in ("A-1", "A-2", "A-3", "A-4", "A-5"):
            site.create(order(key))
            site.clock.advance(1)
        first = site.ok("GET", ORDERS)["payload"]
        site.seller.plan("A-1")
        token = first["nextToken"]
        second = site.ok("GET", ORDERS, params={"nextToken": token})["payload"]
        third = site.ok("GET", ORDERS, params={"nextToken": second["nextToken"]})["payload"]
        assert [keys_of(page) for page in (first, second, third)] == [["A-1", "A-2"], ["A-3", "A-4"], ["A-5", "A-1"]]
        assert "nextToken" not in third
        message = "Next token is invalid or expired"
        assert site.refused("GET", ORDERS, params={"nextToken": token.swapcase()}) == message
        other = site.client_of(site.amazon.seller("SELLER-B"))
        with other:
            assert other.get(ORDERS, params={"nextToken": token}).status_code == 400


def test_stock_is_listed_page_by_page() -> None:
    """SKUs are sorted; a token is valid for 30 seconds and for the same filters."""
    with opened(page_size=2) as site:
        for sku in ("TEA", "JAM", "NUT", "EGG", "OIL"):
            site.seller.receive(sku, 1)
        seen, params = [], dict(OF_MARKETPLACE)
        while True:
            page = site.ok("GET", INVENTORY, params=params)
            seen += [one["sellerSku"] for one in page["payload"]["inventorySummaries"]]
            assert all("inventoryDetails" not in one for one in page["payload"]["inventorySummaries"])
            if "pagination" not in page:
                break
            params["nextToken"] = page["pagination"]["nextToken"]
            site.clock.advance(30)
        assert seen == ["EGG", "JAM", "NUT", "OIL", "TEA"]
        changed = params | {"sellerSkus": "EGG,JAM,NUT"}
        assert site.refused("GET", INVENTORY, params=changed) == "Next token is invalid or expired"
        site.clock.advance(1)
        assert site.refused("GET", INVENTORY, params=params) == "Next token is invalid or expired"


def test_stock_that_changed(site: Site) -> None:
    """With a start, all SKUs that changed after it are listed, and no others; announced units do not count."""
    site.clock.advance(0.5)
    site.seller.receive("JAM", 1)
    [_, summary] = site.ok("GET", INVENTORY, params=OF_MARKETPLACE)["payload"]["inventorySummaries"]
    start = summary["lastUpdatedTime"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", start)

    def changed() -> list[str]:
        params = {**OF_MARKETPLACE, "startDateTime": start, "sellerSkus": "NUT"}
        return [one["sellerSku"] for one in site.ok("GET", INVENTORY, params=params)["payload"]["inventorySummaries"]]

    assert changed() == []  # a change has the resolution of a second, and is not after itself
    site.clock.advance(1)
    site.seller.announce("JAM", 5)
    assert changed() == []
    site.seller.receive("JAM", 7)
    assert changed() == ["JAM"]
    assert site.stock("JAM") == (8, 0, 0, 0, 8)
    site.create(order())
    assert changed() == ["JAM", "TEA"]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"granularityType": "Country"}, "granularityType"),
        ({"granularityId": "A1PA6795UKMFR9"}, "granularityId"),
        ({"marketplaceIds": f"{US},A1PA6795UKMFR9"}, "marketplaceIds"),
        ({"details": "yes"}, "details"),
        ({"startDateTime": "yesterday"}, "startDateTime"),
        ({"startDateTime": "2001-01-01T00:00:00Z"}, "18 months"),
        ({"sellerSkus": ",".join(map(str, range(51)))}, "sellerSkus"),
        ({"NextToken": "x"}, "NextToken"),
    ],
)
def test_a_wrong_question_for_stock_is_refused(site: Site, change: dict[str, str], wrong: str) -> None:
    """A parameter that is wrong or unknown is refused by its name."""
    assert wrong in site.refused("GET", INVENTORY, params={**OF_MARKETPLACE, **change})


def test_sellers_see_only_what_is_theirs(site: Site) -> None:
    """Orders, packages and stock of another seller do not exist; the same keys and SKUs can be used again."""
    site.create(order())
    site.seller.ship("A-1")
    number = site.get()["fulfillmentShipments"][0]["fulfillmentShipmentPackage"][0]["packageNumber"]
    other = site.amazon.seller("SELLER-B")
    with site.client_of(other) as client:
        assert client.get(f"{ORDERS}/A-1").status_code == 404
        assert client.get(f"{OUTBOUND}/tracking", params={"packageNumber": number}).status_code == 404
        assert client.get(ORDERS).json() == {"payload": {"fulfillmentOrders": []}}
        assert client.get(INVENTORY, params=OF_MARKETPLACE).json()["payload"]["inventorySummaries"] == []
        assert "SellerSKU" in client.post(ORDERS, json=order()).text
        other.receive("TEA", 2)
        assert client.post(ORDERS, json=order()).status_code == 200
    assert site.status() == "Complete"


def test_too_many_requests() -> None:
    """A full bucket lets a burst through, then two requests a second; each seller and operation has its own."""
    with opened(limits=LIMITS) as site:
        answers = [site.client.get(ORDERS) for _ in range(31)]
        assert [answer.status_code for answer in answers] == [200] * 30 + [429]
        assert answers[0].headers["x-amzn-ratelimit-limit"] == "2.0"
        assert "x-amzn-ratelimit-limit" not in answers[30].headers
        assert answers[30].json()["errors"][0]["code"] == "QuotaExceeded"
        assert site.client.get(f"{ORDERS}/A-1").status_code == 404
        with site.client_of(site.amazon.seller("SELLER-B")) as other:
            assert other.get(ORDERS).status_code == 200
        site.clock.advance(1)
        assert [site.client.get(ORDERS).status_code for _ in range(3)] == [200, 200, 429]
        site.clock.advance(3600 - 2)
        assert [site.client.get(ORDERS).status_code for _ in range(31)] == [200] * 30 + [429]
