"""Compares the shop with the platform, field by field, by what their own APIs show; it uses nothing of crossdock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.long.peers.oscar.judge import Named, Record, differences, named, twice

PRODUCTS = "id,title,status,variants.id,variants.sku,variants.prices.amount,variants.prices.currency_code"
ITEMS = "id,sku,variants.id,location_levels.id,location_levels.location_id,location_levels.stocked_quantity"
ORDERS = "id,status,created_at,customer_id,currency_code,item_total,metadata,*items,*shipping_address"


@dataclass(frozen=True, slots=True)
class Sides:
    """What both have at the end.

    Attributes:
        products: The shop's, and so on.
        depot: The id of the depot's location.
        platform: The platform's records, by resource.
        effects: All that happened at the platform, oldest first.
    """

    products: Sequence[Record]
    customers: Sequence[Record]
    items: Sequence[Record]
    orders: Sequence[Record]
    depot: str
    platform: Mapping[str, Sequence[Record]]
    effects: Sequence[Record]


def faults(sides: Sides, letters: Mapping[tuple[str, str], str]) -> list[str]:
    """What is wrong; empty if nothing is. An order may be cancelled in the shop when the platform has shipped it."""
    names = {each["id"]: each["externalId"] for records in sides.platform.values() for each in records}
    lots = sides.platform["inventory_lot"]
    compared = {
        "products": (_products(sides.products), named(sides.platform["product"], _product)),
        "customers": (
            {f"shop:{each['id']}": (_name(each) or each["email"], each["email"]) for each in sides.customers},
            named(sides.platform["customer"], lambda each: (each["name"], each["email"])),
        ),
        "stock": (_stock(sides), named(lots, _lot(names), "shop:")),
        "depot": (_depot(sides), named(lots, lambda each: each["quantity"], "depot:")),
        "orders": (_orders(sides.orders), named(sides.platform["order"], _order(names))),
    }
    found = [f"{what}: {fault}" for what, (shop, other) in compared.items() for fault in differences(shop, other)]
    found += [f"created twice: {name}" for name in twice(sides.effects)]
    late = {("erp.shipped", each["id"]) for each in sides.orders if each["status"] == "canceled"}
    found += [f"not delivered: {each}: {why}" for each, why in letters.items() if each not in late]
    return found


def _products(products: Sequence[Record]) -> Named:
    return {
        f"shop:{variant['id']}": (
            variant["sku"],
            each["title"],
            Decimal(variant["prices"][0]["amount"]),
            variant["prices"][0]["currency_code"].upper(),
            each["status"] == "published",
        )
        for each in products
        for variant in each["variants"]
    }


def _product(each: Record) -> Any:
    return each["sku"], each["name"], each["unitPrice"], each["currency"], each["active"]


def _stock(sides: Sides) -> Named:
    return {
        f"shop:{level['id']}": (f"shop:{item['variants'][0]['id']}", item["sku"], level["stocked_quantity"])
        for item in sides.items
        for level in item["location_levels"]
        if level["location_id"] != sides.depot
    }


def _depot(sides: Sides) -> Named:
    return {
        f"depot:{item['id']}": level["stocked_quantity"]
        for item in sides.items
        for level in item["location_levels"]
        if level["location_id"] == sides.depot
    }


def _lot(names: Mapping[str, str]) -> Callable[[Record], Any]:
    return lambda each: (names[each["productId"]], each["lotNumber"], each["quantity"])


def _orders(orders: Sequence[Record]) -> Named:
    return {f"shop:{each['id']}": _shop_order(each) for each in orders if each["status"] != "canceled"}


def _shop_order(order: Record) -> Any:
    lines = ((f"shop:{each['variant_id']}", each["quantity"], Decimal(each["unit_price"])) for each in order["items"])
    goods, amount = Counter(lines), sum(Decimal(each["raw_total"]["value"]) for each in order["items"])
    at, told = order["shipping_address"], order["metadata"] or {}
    to = (_name(at), *(at[name] for name in ("address_1", "city", "postal_code")), at["country_code"].upper())
    shipped = told.get("erp_status"), told.get("tracking")
    placed, currency = datetime.fromisoformat(order["created_at"]), order["currency_code"].upper()
    return f"shop:{order['customer_id']}", currency, placed, goods, amount, to, shipped


def _order(names: Mapping[str, str]) -> Callable[[Record], Any]:
    def value(order: Record) -> Any:
        items = [(names[each["productId"]], each["quantity"], Decimal(each["unitPrice"])) for each in order["items"]]
        amount = sum(quantity * price for _, quantity, price in items)
        to = tuple(order["shippingAddress"][name] for name in ("name", "line1", "city", "postalCode", "country"))
        tracking = [each["number"] for each in order.get("tracking") or ()]
        shipped = order.get("status") if tracking else None, next(iter(tracking), None)
        placed = datetime.fromisoformat(order["placedAt"])
        return names[order["customerId"]], order["currency"], placed, Counter(items), amount, to, shipped

    return value


def _name(each: Record) -> str:
    return f"{each['first_name']} {each['last_name']}" if each["first_name"] else ""
