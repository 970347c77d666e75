"""A client of the fake of ShipBob for tests, and orders to place with it."""

from __future__ import annotations

from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator
from tests.partners.partner_server import PartnerServer
from tests.partners.shipbob import ShipBob
from tests.partners.shipbob_routes import VERSION
from tests.partners.shipbob_state import Channel, Location

from crossdock.values import exact_json

CHANNELS = (Channel(1, "Lamps", 10), Channel(2, "Chairs", 20), Channel(3, "Rival", 30))
LOCATIONS = (Location(8, "Cicero (IL)"), Location(9, "Moreno Valley (CA)"))
RECIPIENT = {"name": "Ada", "address": {"address1": "1 Main St", "city": "Chicago", "country": "US", "zip_code": "01"}}


def client(server: PartnerServer, token: str = "ours") -> httpx.Client:
    """A client whose paths begin after the version."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"{server.url}/{VERSION}", headers=headers, trust_env=False, timeout=60)


def order(reference: str, **lines: int) -> dict[str, Any]:
    """The smallest body that ShipBob accepts; *lines* are units by SKU."""
    products = [{"reference_id": sku, "name": sku, "quantity": units} for sku, units in lines.items()]
    return {
        "reference_id": reference,
        "type": "DTC",
        "shipping_method": "Standard",
        "recipient": RECIPIENT,
        "products": products,
    }


def placed(http: httpx.Client, body: dict[str, Any], channel: int = 1) -> Any:
    """The stored order, once ShipBob has accepted it."""
    answer = http.post("/order", content=exact_json.dumps(body), headers={"shipbob_channel_id": str(channel)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def stocked(fake: ShipBob, sku: str, units: int, channel: int = 1, lot: str | None = None) -> int:
    """A new product with units at the first location; its inventory id."""
    product = fake.warehouse.add_product(channel, sku)
    fake.warehouse.adjust_stock(product.inventory_id, 8, units, lot)
    return product.inventory_id


def conforms(answer: Any, to: dict[str, Any]) -> None:
    """Fail unless *answer* has the documented shape."""
    problems = [f"{error.instance_path}: {error.message}" for error in Draft202012Validator(to).iter_errors(answer)]
    assert problems == []


def effects(fake: ShipBob, kind: str) -> list[dict[str, Any]]:
    return [effect for effect in fake.effects if effect["kind"] == kind]
