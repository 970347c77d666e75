"""What the merchant and buyers do, through the APIs of the shop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any, cast

import httpx
from tests.long.peers.invented_people import CITIES, FAMILY, GIVEN, NOT_KEPT
from tests.long.peers.medusa.server import STAFF

from crossdock.values import exact_json

STORE, DEPOT = "Store", "Depot"


class SoldOutError(Exception):
    """The depot has counted fewer pieces than somebody wants to buy."""


class Api:
    """The shop's API, for one person; numbers are exact."""

    def __init__(self, url: str, **options: Any) -> None:
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=300, limits=NOT_KEPT, **options)

    def ask(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        content = None if body is None else exact_json.dumps(body)
        headers = {"content-type": "application/json"}
        answer = self._client.request(method, path, content=content, params=params, headers=headers)
        if "insufficient_inventory" in answer.text:
            raise SoldOutError
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return exact_json.loads(answer.content)

    def post(self, path: str, body: Any = None) -> dict[str, Any]:
        """What the answer says about the record, beside its name."""
        answer = self.ask("POST", path, body or {})
        return cast("dict[str, Any]", next(each for each in answer.values() if isinstance(each, dict)))

    def all(self, path: str, name: str, fields: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = self.ask("GET", path, None, limit=100, offset=len(found), order="id", fields=fields)
            found += page[name]
            if not page[name]:
                return found


class People:
    """Everybody.

    Attributes:
        happened: What was done.
        key: The secret key of the staff.
        depot: The id of the stock location from which the platform's own depot ships.
    """

    def __init__(self, url: str, random: Random) -> None:
        self._url, self._random, self.happened = url, random, Counter[str]()
        token = Api(url).ask("POST", "/auth/user/emailpass", STAFF)["token"]
        opening = Api(url, headers={"authorization": f"Bearer {token}"})
        self.key = str(opening.post("/admin/api-keys", {"title": "staff", "type": "secret"})["token"])
        self.staff = Api(url, auth=httpx.BasicAuth(self.key, ""))
        self._open()
        self.products: list[str] = []
        self.variants: list[str] = []
        self.customers: list[str] = []
        self._numbers = 0

    def _open(self) -> None:
        """What a merchant sets up before the first sale."""
        post = self.staff.post
        self._channel = post("/admin/sales-channels", {"name": "Site"})["id"]
        site = post("/admin/api-keys", {"title": "site", "type": "publishable"})
        post(f"/admin/api-keys/{site['id']}/sales-channels", {"add": [self._channel]})
        self.buyer = Api(self._url, headers={"x-publishable-api-key": str(site["token"])})
        region = {"name": "EU", "currency_code": "eur", "countries": ["nl", "de"]}
        self._region = post("/admin/regions", region | {"payment_providers": ["pp_system_default"]})["id"]
        self.store, self.depot = (self._location(name) for name in (STORE, DEPOT))
        self._profile_template_values = post("/admin/shipping-profiles", {"name": "All", "type": "all"})["id"]
        self._posts = [self._shipping(location) for location in (self.store, self.depot)]

    def _location(self, name: str) -> str:
        address = {"address_1": "Kade 1", "country_code": "nl", "city": "Delft"}
        found = str(self.staff.post("/admin/stock-locations", {"name": name, "address": address})["id"])
        self.staff.post(f"/admin/stock-locations/{found}/sales-channels", {"add": [self._channel]})
        self.staff.post(f"/admin/stock-locations/{found}/fulfillment-providers", {"add": ["manual_manual"]})
        return found

    def _shipping(self, location: str) -> str:
        path = f"/admin/stock-locations/{location}"
        self.staff.post(f"{path}/fulfillment-sets", {"name": f"Post {location}", "type": "shipping"})
        (found,) = self.staff.ask("GET", path, None, fields="*fulfillment_sets")["stock_location"]["fulfillment_sets"]
        countries = [{"type": "country", "country_code": code} for code in ("nl", "de")]
        zones = self.staff.post(
            f"/admin/fulfillment-sets/{found['id']}/service-zones", {"name": f"EU {location}", "geo_zones": countries}
        )["service_zones"]
        option = {
            "name": "Post",
            "service_zone_id": zones[0]["id"],
            "shipping_profile_id": self._profile_template_values,
            "provider_id": "manual_manual",
            "price_type": "flat",
            "type": {"label": "Post", "description": "Post", "code": "post"},
            "prices": [{"currency_code": "eur", "amount": Decimal("4.95")}],
            "rules": [],
        }
        return str(self.staff.post("/admin/shipping-options", option)["id"])

    # ---- the merchant

    def product(self) -> None:
        """Every second one is in the depot, the others in the store."""
        number = self._next()
        variant = {"title": "S", "sku": f"{number:05}", "options": {"Size": "S"}, "prices": [self._price()]}
        body = {
            "title": f"{self._random.choice(('Lamp', 'Bücherregal', 'Chair “Anna”', 'Rug & pad'))} {number}",
            "status": "published",
            "shipping_profile_id": self._profile_template_values,
            "sales_channels": [{"id": self._channel}],
            "options": [{"title": "Size", "values": ["S"]}],
            "variants": [variant | {"manage_inventory": True}],
        }
        made = self.staff.post("/admin/products", body)
        (item,) = self.staff.ask("GET", "/admin/inventory-items", None, sku=variant["sku"])["inventory_items"]
        level = {"location_id": self.depot if number % 2 else self.store, "stocked_quantity": 2_000}
        self.staff.post(f"/admin/inventory-items/{item['id']}/location-levels", level)
        self.products.append(made["id"])
        self.variants.append(made["variants"][0]["id"])
        self.happened["products"] += 1

    def rename_product(self) -> None:
        self.staff.post(f"/admin/products/{self._random.choice(self.products)}", {"title": f"Renamed {self._next()}"})
        self.happened["renamed products"] += 1

    def reprice(self) -> None:
        chosen = self._random.randrange(len(self.products))
        path = f"/admin/products/{self.products[chosen]}/variants/{self.variants[chosen]}"
        self.staff.post(path, {"prices": [self._price()]})
        self.happened["prices"] += 1

    def restock(self) -> None:
        items = self.staff.all("/admin/inventory-items", "inventory_items", "id,location_levels.location_id")
        item = self._random.choice([each for each in items if each["location_levels"][0]["location_id"] == self.store])
        path = f"/admin/inventory-items/{item['id']}/location-levels/{self.store}"
        self.staff.post(path, {"stocked_quantity": self._random.randint(1_000, 3_000)})
        self.happened["stock"] += 1

    def customer(self) -> None:
        names = {"first_name": self._random.choice(GIVEN), "last_name": self._random.choice(FAMILY)}
        made = self.staff.post("/admin/customers", names | {"email": f"buyer{self._next()}@example.com"})
        self.customers.append(made["id"])
        self.happened["customers"] += 1

    def rename_customer(self) -> None:
        names = {"first_name": self._random.choice(GIVEN), "last_name": self._random.choice(FAMILY)}
        self.staff.post(f"/admin/customers/{self._random.choice(self.customers)}", names)
        self.happened["renamed customers"] += 1

    def readdress(self) -> None:
        """To the same country: the shop refuses another one."""
        if found := self._waiting():
            address = {name: value for name, value in self._address().items() if name != "country_code"}
            self.staff.post(f"/admin/orders/{found}", {"shipping_address": address})
            self.happened["changed addresses"] += 1

    def cancel(self) -> None:
        if found := self._waiting():
            self.staff.post(f"/admin/orders/{found}/cancel")
            self.happened["cancelled"] += 1

    def _waiting(self) -> str | None:
        orders = self.staff.all("/admin/orders", "orders", "id,status")
        waiting = [str(each["id"]) for each in orders if each["status"] == "pending"]
        return self._random.choice(waiting) if waiting else None

    def _price(self) -> dict[str, Any]:
        return {"currency_code": "eur", "amount": Decimal(self._random.randint(1, 30_000)) / 100}

    # ---- buyers

    def order(self) -> None:
        """Of a customer or, one in six, of a guest, whom the shop makes a customer."""
        mail = f"guest{self._next()}@example.com"
        if self._random.random() > 1 / 6:
            customer = self.staff.ask("GET", f"/admin/customers/{self._random.choice(self.customers)}")["customer"]
            mail = customer["email"]
        chosen = self._random.sample(self.variants, self._random.randint(1, 4))
        lines = [{"variant_id": each, "quantity": self._random.randint(1, 7)} for each in chosen]
        address, post = self._address(), self.buyer.post
        whom = {"email": mail, "shipping_address": address, "billing_address": address}
        where = {"region_id": self._region, "sales_channel_id": self._channel}
        try:
            cart = post("/store/carts", where | {"items": lines} | whom)
        except SoldOutError:
            self.happened["sold out"] += 1
            return
        post(f"/store/carts/{cart['id']}/shipping-methods", {"option_id": self._posts[0]})
        payment = post("/store/payment-collections", {"cart_id": cart["id"]})
        post(f"/store/payment-collections/{payment['id']}/payment-sessions", {"provider_id": "pp_system_default"})
        done = self.buyer.ask("POST", f"/store/carts/{cart['id']}/complete", {})
        assert done["type"] == "order", done
        self.happened["orders"] += 1

    def _address(self) -> dict[str, str]:
        country, city = self._random.choice(CITIES)
        return {
            "first_name": self._random.choice(GIVEN),
            "last_name": self._random.choice(FAMILY),
            "address_1": f"Straße {self._random.randint(1, 99)}",
            "city": city,
            "postal_code": "2611 AB" if country == "NL" else "50667",
            "country_code": country.lower(),
        }

    # ---- together

    def act(self) -> None:
        """Somebody does something."""
        rare: list[Callable[[], None]] = [
            *(self.product, self.rename_product, self.reprice, self.restock, self.customer, self.rename_customer),
            *(self.readdress, self.cancel),
        ]
        self._random.choice([self.order] * len(rare) + rare)()

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers
