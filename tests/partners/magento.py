"""A fake Magento 2 shop (Adobe Commerce, REST V1), as far as ``configs/magento.yaml`` uses it.

Made from Adobe's documentation: "Search using REST endpoints" (developer.adobe.com/commerce/webapi/rest/use-rest/
performing-searches), the reference of the admin API (adobe-commerce.redoc.ly/2.4.6-admin, and
magento2.doc.winkelstraat.nl), and the issues of magento/magento2 3787 and 26986 (the last page comes again), 24985
(times are UTC) and 37670 (stock moves no ``updated_at``).

| request | answer |
|---|---|
| ``GET`` of a list: see `_LISTS` | a page: ``items``, ``search_criteria``, ``total_count`` |
| ``GET /products/{sku}``, ``GET /orders/{id}`` | the record |
| ``PUT /products/{sku}`` | the product, with the stock that was set |
| ``POST /order/{id}/ship`` | the id of the shipment of all that was left |

Lists are filtered and sorted by ``searchCriteria``, with its names in snake case and camel case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock

TOKEN = "magento-token"
BASE = "/rest/all/V1"
Line = tuple[str, int, str]
"""The SKU, the quantity, and the price."""
_LISTS = {
    "/products": "products",
    "/customers/search": "customers",
    "/orders": "orders",
    "/invoices": "invoices",
    "/shipments": "shipments",
    "/inventory/source-items": "source_items",
}
_FILTER = re.compile(r"searchCriteria\[filter_?groups\]\[(\d+)\]\[filters\]\[(\d+)\]\[(\w+)\]", re.IGNORECASE)
_SORT = re.compile(r"searchCriteria\[sort_?orders\]\[(\d+)\]\[(\w+)\]", re.IGNORECASE)
_COMPARE: Mapping[str, Callable[[Any, str], bool]] = {
    "eq": lambda held, value: str(held) == value,
    "gt": lambda held, value: held is not None and str(held) > value,
    "gteq": lambda held, value: held is not None and str(held) >= value,
    "null": lambda held, _: held is None,
    "notnull": lambda held, _: held is not None,
}


class MagentoError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Magento:
    """One shop. Its tables are lists of records as the API shows them.

    Attributes:
        effects: The writes that were carried out, oldest first: ``kind`` (``product_saved`` or ``shipped``), ``id`` of
            the SKU or the order, and ``body`` as it was sent.
        before: Called with each request before it is answered; it may raise `MagentoError`.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.effects = clock, list[dict[str, Any]]()
        self.tables: dict[str, list[dict[str, Any]]] = {name: [] for name in _LISTS.values()}
        self.before: Callable[[PartnerRequest], None] = lambda _: None

    # ---- the shop's own work

    @property
    def now(self) -> str:
        return self.clock.now().strftime("%Y-%m-%d %H:%M:%S")

    def add_product(self, sku: str, price: str, *, kind: str = "simple", stock: str | None = "5") -> None:
        number = self._number("products")
        about = {"id": number, "sku": sku, "name": f"Product {sku}", "price": _number(price), "type_id": kind}
        stocked = {
            "stock_item": {"item_id": number, "product_id": number, "qty": _number(stock or "0"), "is_in_stock": True}
        }
        self._add("products", {**about, "status": 1, "visibility": 4, "extension_attributes": stocked})
        if stock is not None:
            held = {"sku": sku, "source_code": "default", "quantity": _number(stock), "status": 1}
            self.tables["source_items"].append(held)

    def add_customer(self, name: str) -> int:
        other, address = _address(name) | {"city": "Bonn"}, _address(name) | {"default_billing": True}
        number = self._number("customers")
        about = {"id": number, "firstname": name, "lastname": "Doe", "email": f"{name.lower()}@example.com"}
        self._add("customers", {**about, "addresses": [other, address]})
        return number

    def place(
        self, customer: int | None, lines: Sequence[Line], *, parents: Mapping[str, str] = {}, **money: str
    ) -> int:
        """An order, with a parent line before the line of a SKU in *parents*, as of a configurable product."""
        number, items = self._number("orders"), list[dict[str, Any]]()
        for sku, units, price in lines:
            line = {"sku": sku, "qty_ordered": units, "price": _number(price), "product_type": "simple"}
            line |= {"row_total": _number(str(units * Decimal(price)))}
            if sku in parents:
                parent = {
                    **line,
                    "item_id": 10 * number + len(items),
                    "product_type": "configurable",
                    "name": parents[sku],
                }
                items.append(parent)
                line |= {"price": 0, "row_total": 0, "parent_item_id": parent["item_id"], "parent_item": parent}
            items.append({**line, "item_id": 10 * number + len(items)})
        buyer = {"customer_is_guest": 1, "customer_email": "guest@example.com"} if customer is None else {}
        buyer |= {} if customer is None else {"customer_is_guest": 0, "customer_id": customer}
        shipping = {"shipping": {"address": _address("Ada")}}
        kinds = ("shipping", "discount", "tax", "discount_tax_compensation")
        charges: dict[str, int | Decimal] = {f"{name}_amount": 0 for name in kinds}
        charges |= {f"{name}_amount": _number(amount) for name, amount in money.items()}
        about = {"entity_id": number, "increment_id": f"{number:09}", "status": "processing", "items": items}
        about |= {"order_currency_code": "EUR", "billing_address": _address("Ada")}
        extension = {"extension_attributes": {"shipping_assignments": [shipping]}}
        charges["grand_total"] = sum((each["row_total"] for each in items), Decimal(0)) + sum(charges.values())
        self._add("orders", {**about, **buyer, **charges, **extension, "created_at": self.now})
        return number

    def add_bundle(self, order: int, sku: str, price: str) -> None:
        """Make one bundle with a dynamic price of all items of an order, which keep their own prices."""
        placed = self.order(order)
        number = placed["items"][0]["item_id"] + 9
        about = {"sku": sku, "qty_ordered": 1, "price": _number(price), "row_total": _number(price)}
        bundle = {**about, "item_id": number, "product_type": "bundle"}
        parts = [{**each, "parent_item_id": number, "parent_item": bundle} for each in placed["items"]]
        placed["items"] = [bundle, *parts]

    def invoice(self, order: int) -> int:
        """Invoices all of an order, as the shop does when it is paid. Of a parent and its children, those have a
        ``row_total`` there of which the price is calculated: the children of a bundle with a dynamic price.
        """
        placed, number = self.order(order), self._number("invoices")
        items = [
            {"sku": each["sku"], "qty": each["qty_ordered"], "order_item_id": each["item_id"], "price": each["price"]}
            | ({} if each["product_type"] == "bundle" else {"row_total": each["row_total"]})
            for each in placed["items"]
        ]
        names = [name for name in placed if name.endswith("_amount")]
        charges = {name: placed[name] for name in (*names, "grand_total")}
        about = {"entity_id": number, "order_id": order, "order_currency_code": "EUR", "items": items}
        self._add("invoices", about | charges)
        self.touch(placed)
        return number

    def ship(self, order: int, tracks: Sequence[Mapping[str, Any]]) -> int:
        placed, number = self.order(order), self._number("shipments")
        if placed["status"] == "complete":
            raise MagentoError(400, "The order does not allow a shipment to be created.")
        self._add("shipments", {"entity_id": number, "order_id": order, "tracks": [dict(each) for each in tracks]})
        placed["status"] = "complete"
        self.touch(placed)
        return number

    def order(self, number: int) -> dict[str, Any]:
        return next(each for each in self.tables["orders"] if each["entity_id"] == number)

    def touch(self, record: dict[str, Any], **changes: Any) -> None:
        """Change a record as an editor does, who moves ``updated_at``."""
        record.update(changes, updated_at=self.now)

    def _number(self, table: str) -> int:
        return len(self.tables[table]) + 1

    def _add(self, table: str, record: dict[str, Any]) -> None:
        self.tables[table].append({"created_at": self.now, **record, "updated_at": self.now})

    # ---- the API

    def throttled(self) -> PartnerAnswer:
        """What a proxy in front of the shop answers: Magento itself has no limit."""
        return PartnerAnswer(429, {"message": "Too Many Requests"}, {"retry-after": "7"})

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        try:
            self.before(request)
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                raise MagentoError(401, "The consumer isn't authorized to access %resources.")
            return PartnerAnswer(200, self._answer(request))
        except MagentoError as error:
            return PartnerAnswer(error.status, {"message": error.message})

    def _answer(self, request: PartnerRequest) -> Any:
        path = request.path.removeprefix(BASE)
        if request.method == "GET" and path in _LISTS:
            return self._page(self.tables[_LISTS[path]], request.params)
        match [request.method, *path.strip("/").split("/")]:
            case ["GET", "products", sku]:
                return self._product(sku)
            case ["GET", "orders", number]:
                return self._of("orders", "entity_id", number)
            case ["PUT", "products", sku]:
                product, sent = self._product(sku), request.json()["product"]
                product["extension_attributes"]["stock_item"] |= sent["extension_attributes"]["stock_item"]
                self.effects.append({"kind": "product_saved", "id": sku, "body": sent})
                return product
            case ["POST", "order", number, "ship"]:
                order = self._of("orders", "entity_id", number)
                shipment = self.ship(order["entity_id"], request.json().get("tracks", ()))
                self.effects.append({"kind": "shipped", "id": number, "body": request.json()})
                return str(shipment)
        raise MagentoError(404, "Request does not match any route.")

    def _product(self, sku: str) -> dict[str, Any]:
        return self._of("products", "sku", sku)

    def _of(self, table: str, name: str, value: str) -> dict[str, Any]:
        found = [each for each in self.tables[table] if str(each[name]) == value]
        if not found:
            raise MagentoError(404, f"The {table} that was requested doesn't exist.")
        return found[0]

    def _page(self, records: list[dict[str, Any]], params: Mapping[str, list[str]]) -> dict[str, Any]:
        groups, orders = _criteria(params)
        found = [each for each in records if all(any(_meets(each, one) for one in group) for group in groups)]
        for order in reversed(orders):
            descends = order.get("direction", "DESC") == "DESC"
            found.sort(key=lambda each, name=order["field"]: each.get(name, 0), reverse=descends)  # type: ignore[misc]
        size, current = (_whole(params, name) for name in ("pageSize", "currentPage"))
        last = max(1, -(-len(found) // size)) if size else 1
        first = (min(max(current, 1), last) - 1) * size
        items = found[first : first + size] if size else found
        return {"items": items, "search_criteria": {"page_size": size or None}, "total_count": len(found)}


def _criteria(params: Mapping[str, list[str]]) -> tuple[list[list[dict[str, str]]], list[dict[str, str]]]:
    groups: dict[str, dict[str, dict[str, str]]] = {}
    orders: dict[str, dict[str, str]] = {}
    for name, (value, *_) in params.items():
        if found := _FILTER.fullmatch(name):
            groups.setdefault(found[1], {}).setdefault(found[2], {})[found[3].lower().replace("_", "")] = value
        elif found := _SORT.fullmatch(name):
            orders.setdefault(found[1], {})[found[2]] = value
        elif not re.fullmatch(r"searchCriteria\[(pageSize|currentPage)\]|fields", name):
            raise MagentoError(400, f'"{name}" is not a parameter.')
    return [list(group.values()) for _, group in sorted(groups.items())], [order for _, order in sorted(orders.items())]


def _meets(record: Mapping[str, Any], condition: Mapping[str, str]) -> bool:
    return _COMPARE[condition.get("conditiontype", "eq")](record.get(condition["field"]), condition["value"])


def _whole(params: Mapping[str, list[str]], name: str) -> int:
    return int(params.get(f"searchCriteria[{name}]", ["0"])[0])


def _number(text: str) -> int | Decimal:
    """A number as PHP writes a float: without a fraction of zero."""
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number.normalize()


def _address(name: str) -> dict[str, Any]:
    street = {"street": ["1 Main St"], "city": "Berlin", "postcode": "10115", "country_id": "DE"}
    return {"firstname": name, "lastname": "Doe", **street, "telephone": "030 1"}
