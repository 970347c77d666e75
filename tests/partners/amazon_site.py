"""A site for tests against the fake of Amazon: the fake at work, a seller, and a client that has logged in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.partners.amazon import INVENTORY, LOGIN, OUTBOUND, FakeAmazon
from tests.partners.amazon_access import LIMITS, Limit
from tests.partners.amazon_document import CheckedPartner, available
from tests.partners.amazon_seller import Seller
from tests.partners.partner_server import PartnerServer, serving

from crossdock.testing.manual_clock import ManualClock

ORDERS = f"{OUTBOUND}/fulfillmentOrders"
US = "ATVPDKIKX0DER"
OF_MARKETPLACE = {"granularityType": "Marketplace", "granularityId": US, "marketplaceIds": US}
MANY = dict.fromkeys(LIMITS, Limit(1000, 1000))  # where the rate is not the subject
DENIED = "Access to requested resource is denied."


def order(key: str = "A-1", *lines: tuple[str, int], **members: Any) -> dict[str, Any]:
    """The body of a new order; its items have the keys "1", "2" and so on."""
    items = [
        {"sellerSku": sku, "sellerFulfillmentOrderItemId": str(index), "quantity": units}
        for index, (sku, units) in enumerate(lines or [("TEA", 2)], 1)
    ]
    address = {"name": "Zoë", "addressLine1": "1 Main St", "city": "Troy", "postalCode": "48084", "countryCode": "US"}
    return {
        "sellerFulfillmentOrderId": key,
        "displayableOrderId": key[:40] or "1",
        "displayableOrderDate": "2026-01-09T19:46:45Z",
        "displayableOrderComment": "Thank you",
        "shippingSpeedCategory": "Standard",
        "destinationAddress": address,
        "items": items,
        **members,
    }


@dataclass
class Site:
    """The fake at work, with a client that has logged in as its first seller."""

    amazon: FakeAmazon
    seller: Seller
    clock: ManualClock
    server: PartnerServer
    client: httpx.Client

    def log_in(self, seller: Seller) -> str:
        form = {"client_id": self.amazon.client_id, "client_secret": self.amazon.client_secret}
        form |= {"grant_type": "refresh_token", "refresh_token": seller.refresh_token}
        return str(self.client.post(LOGIN, data=form).raise_for_status().json()["access_token"])

    def client_of(self, seller: Seller) -> httpx.Client:
        headers = {"x-amz-access-token": self.log_in(seller)}
        return httpx.Client(base_url=self.server.url, headers=headers, trust_env=False)

    def ok(self, method: str, path: str, **given: Any) -> Any:
        answer = self.client.request(method, path, **given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, body: dict[str, Any]) -> None:
        assert self.ok("POST", ORDERS, json=body) == {}

    def get(self, key: str = "A-1") -> Any:
        return self.ok("GET", f"{ORDERS}/{key}")["payload"]

    def status(self, key: str = "A-1") -> str:
        return str(self.get(key)["fulfillmentOrder"]["fulfillmentOrderStatus"])

    def refused(self, method: str, path: str, **given: Any) -> str:
        """The message of a refusal with 400."""
        answer = self.client.request(method, path, **given)
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "InvalidInput"), answer.text
        return str(answer.json()["errors"][0]["message"])

    def stock(self, sku: str = "TEA") -> tuple[int, int, int, int, int]:
        """Units that are fulfillable, reserved, researched and unfulfillable, and the total."""
        found = self.ok("GET", INVENTORY, params={**OF_MARKETPLACE, "details": "true", "sellerSkus": sku})
        [summary] = found["payload"]["inventorySummaries"]
        shown = summary["inventoryDetails"]
        return (
            shown["fulfillableQuantity"],
            shown["reservedQuantity"]["totalReservedQuantity"],
            shown["researchingQuantity"]["totalResearchingQuantity"],
            shown["unfulfillableQuantity"]["totalUnfulfillableQuantity"],
            summary["totalQuantity"],
        )


@contextmanager
def opened(**settings: Any) -> Iterator[Site]:
    """A site whose exchanges are judged by Amazon's documents, if this machine has them, when it closes."""
    clock = ManualClock()
    amazon = FakeAmazon(clock.now, **{"limits": MANY, **settings})
    checked = CheckedPartner(amazon, upper=settings.get("upper", False)) if available() else None
    with (
        serving(PartnerServer(checked or amazon)) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        site = Site(amazon, amazon.seller("SELLER-A"), clock, server, client)
        client.headers["x-amz-access-token"] = site.log_in(site.seller)
        yield site
    assert not checked or checked.violations == []


def stocked() -> Iterator[Site]:
    """For a fixture: a site whose first seller has ten units of the SKU "TEA"."""
    with opened() as site:
        site.seller.receive("TEA", 10)
        yield site
