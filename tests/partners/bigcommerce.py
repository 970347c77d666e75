"""A fake BigCommerce shop: V2 orders, V3 catalogue, customers and inventory, as ``configs/bigcommerce.yaml`` uses them.

Made from BigCommerce's documentation: "Orders V2" (developer.bigcommerce.com/docs/rest-management/orders, and
``reference/orders.v2.oas2.yml`` of github.com/bigcommerce/api-specs), "Order shipments", "API rate limits"
(developer.bigcommerce.com/docs/start/best-practices/api-rate-limits), "Catalog", "Customers V3" and "Inventory".

| request | answer |
|---|---|
| ``GET /v2/orders`` | a list, or 204 without a body where it has no order |
| ``GET /v2/orders/{id}/products``, ``/shipping_addresses``, ``/shipments`` | the same |
| ``POST /v2/orders/{id}/shipments`` | the shipment; the order becomes Shipped or Partially Shipped |
| ``GET /v3/catalog/products``, ``/v3/customers``, ``/v3/inventory/items`` | ``data``, and ``meta.pagination`` |
| ``PUT /v3/inventory/adjustments/absolute`` | ``transaction_id`` |

Each answer has ``X-Rate-Limit-*`` headers. All apps of the shop share one quota, which is there again when its window
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock

TOKEN = "bigcommerce-token"
BASE = "/stores/acme"
QUOTA, WINDOW_MS = 150, 30_000
INCOMPLETE, SHIPPED, PARTIALLY_SHIPPED, CANCELLED, DECLINED, AWAITING_FULFILLMENT = 0, 2, 3, 5, 6, 11
STATUSES = {
    0: "Incomplete", 2: "Shipped", 3: "Partially Shipped", 5: "Cancelled", 6: "Declined", 11: "Awaiting Fulfillment",
}  # fmt: skip
Line = tuple[str, int, str]
"""The SKU, the quantity, and the price without tax."""
_V3 = {"/v3/catalog/products": "products", "/v3/customers": "customers", "/v3/inventory/items": "items"}
_BELOW = ("products", "shipping_addresses", "shipments")


class BigCommerceError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class BigCommerce:
    """One shop. Its tables are lists of records as the API shows them.

    Attributes:
        effects: The writes that were carried out, oldest first: ``kind`` (``shipped`` or ``stock_set``), ``id`` of the
            order or the SKU, and ``body`` as it was sent.
        before: Called with each request before it is answered; it may raise `BigCommerceError`.
        refused_at: When requests were refused with 429, in the milliseconds of `ManualClock.monotonic`.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.effects = clock, list[dict[str, Any]]()
        self.tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("orders", *_V3.values())}
        self.below: dict[tuple[int, str], list[dict[str, Any]]] = {}
        self.before: Callable[[PartnerRequest], None] = lambda _: None
        self.refused_at = list[int]()
        self._window, self._used = -1, 0

    # ---- the shop's own work

    def add_product(self, name: str, skus: Sequence[str], price: str, stock: int = 5) -> None:
        number = self._number("products")
        variants = [
            {"id": 10 * number + place, "product_id": number, "sku": sku, "calculated_price": Decimal(price), "upc": ""}
            for place, sku in enumerate(skus)
        ]
        about = {"id": number, "name": name, "is_visible": True, "variants": variants}
        self.tables["products"].append(about | {"date_modified": self.clock.now().isoformat(timespec="seconds")})
        for each in variants:
            identity = {"sku": each["sku"], "variant_id": each["id"], "product_id": number}
            held = {"location_id": 1, "total_inventory_onhand": stock, "available_to_sell": stock}
            self.tables["items"].append({"identity": identity, "locations": [held]})

    def add_customer(self, name: str) -> int:
        number = self._number("customers")
        address = {"address1": "1 Main St", "city": "Austin", "postal_code": "78751", "country_code": "US"}
        about = {"id": number, "first_name": name, "last_name": "Doe", "email": f"{name.lower()}@example.com"}
        now = self.clock.now().isoformat(timespec="seconds")
        self.tables["customers"].append({**about, "phone": "", "addresses": [address], "date_modified": now})
        return number

    def place(
        self, customer: int, lines: Sequence[Line], money: Mapping[str, str] = {}, status: int = AWAITING_FULFILLMENT
    ) -> int:
        """An order; *customer* is 0 for a guest."""
        number = self._number("orders") + 100
        ids = {each["identity"]["sku"]: each["identity"] for each in self.tables["items"]}
        address = {"first_name": "Ada", "last_name": "Doe", "street_1": "1 Main St", "city": "Austin", "zip": "78751"}
        address |= {"state": "Texas", "country_iso2": "US", "email": "ada@example.com", "phone": ""}
        about: dict[str, Any] = {"id": number, "customer_id": customer, "billing_address": address}
        about |= {name: {"url": f"https://shop.example/v2/orders/{number}/{name}"} for name in _BELOW[:2]}
        about |= {"currency_code": "EUR", "default_currency_code": "USD"}
        zeros = dict.fromkeys(("shipping_cost_ex_tax", "handling_cost_ex_tax", "wrapping_cost_ex_tax"), "0.0000")
        zeros |= dict.fromkeys(("discount_amount", "coupon_discount", "total_tax"), "0.0000")
        sums = sum((_amount(name) * Decimal(value) for name, value in money.items()), Decimal())
        sums += sum(units * Decimal(price) for _, units, price in lines)
        about["total_inc_tax"] = f"{sums:.4f}"
        self.tables["orders"].append({**about, **zeros, **money, "date_created": rfc_2822(self.clock.now())})
        self.move(number, status)
        self.below[number, "products"] = [
            {**ids[sku], "id": 10 * number + place, "order_id": number, "type": "physical", "quantity": units}
            | {"price_ex_tax": f"{Decimal(price):.4f}", "quantity_shipped": 0}
            for place, (sku, units, price) in enumerate(lines)
        ]
        self.below[number, "shipping_addresses"] = [{**address, "id": number + 500}]
        return number

    def move(self, number: int, status: int) -> None:
        """Give an order another status, which moves ``date_modified``."""
        modified = rfc_2822(self.clock.now())
        self.order(number).update(status_id=status, status=STATUSES[status], date_modified=modified)

    def order(self, number: int) -> dict[str, Any]:
        found = [each for each in self.tables["orders"] if each["id"] == number]
        if not found:
            raise BigCommerceError(404, "The requested resource was not found.")
        return found[0]

    def _number(self, table: str) -> int:
        return len(self.tables[table]) + 1

    # ---- the API

    def use_up(self) -> None:
        """Other apps use the rest of the shop's quota in this window."""
        self._count(QUOTA)

    def _count(self, number: int) -> int:
        """Count requests of the present window, and return what is left of the quota."""
        window = int(self.clock.monotonic() * 1000) // WINDOW_MS
        if window != self._window:
            self._window, self._used = window, 0
        self._used += number
        return QUOTA - self._used

    def _limits(self, left: int) -> dict[str, str]:
        rest = WINDOW_MS - int(self.clock.monotonic() * 1000) % WINDOW_MS
        names = {"requests-left": max(left, 0), "requests-quota": QUOTA}
        names |= {"time-reset-ms": rest, "time-window-ms": WINDOW_MS}
        return {f"x-rate-limit-{name}": str(value) for name, value in names.items()}

    def throttled(self) -> PartnerAnswer:
        self.refused_at.append(int(self.clock.monotonic() * 1000))
        body = {"status": 429, "title": "You have made too many requests to the API. See the X-Rate-Limit headers."}
        return PartnerAnswer(429, body, self._limits(0))

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if (left := self._count(1)) < 0:
            return self.throttled()
        try:
            self.before(request)
            if request.headers.get("x-auth-token") != TOKEN:
                raise BigCommerceError(401, "You are not authorized.")
            found = self._answer(request)
        except BigCommerceError as error:
            found = PartnerAnswer(error.status, [{"status": error.status, "message": error.message}])
        return PartnerAnswer(found.status, found.body, self._limits(left))

    def _answer(self, request: PartnerRequest) -> PartnerAnswer:
        path = request.path.removeprefix(BASE)
        if request.method == "GET" and path in _V3:
            return PartnerAnswer(200, self._v3_page(_V3[path], request))
        match [request.method, *path.strip("/").split("/")]:
            case ["GET", "v2", "orders"]:
                return _v2_page(self._orders(request), request)
            case ["GET", "v2", "orders", number, name] if name in _BELOW:
                return _v2_page(self.below.get((self.order(int(number))["id"], name), []), request)
            case ["POST", "v2", "orders", number, "shipments"] if number.isdigit():
                return PartnerAnswer(201, self._ship(int(number), request.json()))
            case ["PUT", "v3", "inventory", "adjustments", "absolute"]:
                return PartnerAnswer(200, {"transaction_id": self._adjust(request.json())})
        raise BigCommerceError(404, "The requested resource was not found.")

    def _orders(self, request: PartnerRequest) -> list[dict[str, Any]]:
        since = request.param("min_date_modified")
        after = datetime.fromisoformat(since) if since else None
        wanted = {name: request.param(name) for name in ("status_id", "customer_id") if name in request.params}
        found = [
            each
            for each in self.tables["orders"]
            if all(str(each[name]) == value for name, value in wanted.items())
            and (after is None or modified(each) >= after)
        ]
        by_id = "sort" not in request.params
        return sorted(found, key=lambda each: (0, each["id"]) if by_id else (modified(each).timestamp(), each["id"]))

    def _v3_page(self, table: str, request: PartnerRequest) -> dict[str, Any]:
        records, since, skus = self.tables[table], request.param("date_modified:min"), request.param("sku:in")
        if since:
            after = datetime.fromisoformat(since)
            records = [each for each in records if datetime.fromisoformat(each["date_modified"]) >= after]
        if skus:
            records = [each for each in records if each["identity"]["sku"] in skus.split(",")]
        page, limit = int(request.param("page", "1")), int(request.param("limit", "50"))
        data, pages = records[(page - 1) * limit : page * limit], max(1, -(-len(records) // limit))
        links = {"current": f"?page={page}"} | ({"next": f"?page={page + 1}"} if page < pages else {})
        about = {"total": len(records), "count": len(data), "per_page": limit, "current_page": page}
        return {"data": data, "meta": {"pagination": {**about, "total_pages": pages, "links": links}}}

    def _ship(self, number: int, sent: dict[str, Any]) -> dict[str, Any]:
        self.order(number)
        lines = {each["id"]: each for each in self.below[number, "products"]}
        if sent["order_address_id"] not in {each["id"] for each in self.below[number, "shipping_addresses"]}:
            raise BigCommerceError(400, "The field 'order_address_id' is invalid.")
        for item in sent["items"]:
            line = lines.get(item["order_product_id"])
            if line is None or line["quantity"] - line["quantity_shipped"] < item["quantity"]:
                raise BigCommerceError(400, "The field 'items' is invalid.")
            line["quantity_shipped"] += item["quantity"]
        about = {"tracking_number": sent["tracking_number"], "tracking_carrier": sent.get("tracking_carrier", "")}
        shipments = self.below.setdefault((number, "shipments"), [])
        shipments.append({"id": number * 10 + len(shipments), "order_id": number, "shipping_provider": "", **about})
        shipments[-1]["tracking_link"] = ""
        is_whole = all(each["quantity_shipped"] == each["quantity"] for each in lines.values())
        self.move(number, SHIPPED if is_whole else PARTIALLY_SHIPPED)
        self.effects.append({"kind": "shipped", "id": number, "body": sent})
        return shipments[-1]

    def _adjust(self, sent: dict[str, Any]) -> str:
        for item in sent["items"]:
            found = [each for each in self.tables["items"] if each["identity"]["sku"] == item["sku"]]
            if not found:
                raise BigCommerceError(422, f"SKU {item['sku']} does not exist.")
            held = next(each for each in found[0]["locations"] if each["location_id"] == item["location_id"])
            held.update(total_inventory_onhand=item["quantity"], available_to_sell=item["quantity"])
            self.effects.append({"kind": "stock_set", "id": item["sku"], "body": item})
        return f"transaction-{len(self.effects)}"


def _amount(name: str) -> int:
    """The sign of a member in the order's total."""
    return -1 if name in {"discount_amount", "coupon_discount"} else 1


def rfc_2822(moment: datetime) -> str:
    return format_datetime(moment.replace(microsecond=0))


def modified(order: dict[str, Any]) -> datetime:
    return datetime.strptime(order["date_modified"], "%a, %d %b %Y %H:%M:%S %z")


def _v2_page(records: list[dict[str, Any]], request: PartnerRequest) -> PartnerAnswer:
    page, limit = int(request.param("page", "1")), min(int(request.param("limit", "50")), 250)
    found = records[(page - 1) * limit : page * limit]
    return PartnerAnswer(200, found) if found else PartnerAnswer(204)
