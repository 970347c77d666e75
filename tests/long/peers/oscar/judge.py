"""Compares the shop with the platform, field by field, by what their own APIs show; it uses nothing of crossdock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

Record = Mapping[str, Any]
Named = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sides:
    """What both have at the end.

    Attributes:
        products: The shop's, and so on.
        lines: The shop's lines of each order, by its number.
        platform: The platform's records, by resource.
        effects: All that happened at the platform, oldest first.
    """

    products: Sequence[Record]
    users: Sequence[Record]
    orders: Sequence[Record]
    lines: Mapping[str, Sequence[Record]]
    platform: Mapping[str, Sequence[Record]]
    effects: Sequence[Record]


def faults(sides: Sides, letters: Mapping[tuple[str, str], str]) -> list[str]:
    """What is wrong; empty if nothing is. An order may be cancelled in the shop when the platform has shipped it."""
    names = {each["id"]: each["externalId"] for records in sides.platform.values() for each in records}
    cancelled = {f"shop:{each['number']}" for each in sides.orders if each["status"] == "Cancelled"}
    compared = {
        "products": (_products(sides.products), named(sides.platform["product"], _product, "shop:", active=True)),
        "customers": (
            _customers(sides),
            named(sides.platform["customer"], lambda each: (each["name"], each["email"])),
        ),
        "stock": (_stock(sides.products, 1, "shop"), named(sides.platform["inventory_lot"], _lot(names), "shop:")),
        "depot": (
            {name: quantity for name, (_, _, quantity) in _stock(sides.products, 2, "depot").items()},
            named(sides.platform["inventory_lot"], lambda each: each["quantity"], "depot:"),
        ),
        "orders": (_orders(sides), named(sides.platform["order"], _order(names))),
    }
    found = [f"{what}: {fault}" for what, (shop, other) in compared.items() for fault in differences(shop, other)]
    found += [f"created twice: {name}" for name in twice(sides.effects)]
    found += [f"cancelled, and on the platform: {each}" for each in cancelled & set(names.values())]
    late = {("erp.shipped", each.removeprefix("shop:")) for each in cancelled}
    found += [f"not delivered: {each}: {why}" for each, why in letters.items() if each not in late]
    return found


def total(orders: Iterable[Record]) -> Decimal:
    return sum((Decimal(each["total_incl_tax"]) for each in orders if each["status"] != "Cancelled"), Decimal(0))


def differences(shop: Named, other: Named) -> list[str]:
    wrong = [
        f"{name}: {shop[name]} and {other[name]}" for name in shop.keys() & other.keys() if shop[name] != other[name]
    ]
    lost = [f"{name} is lost: {shop[name]}" for name in shop.keys() - other.keys()]
    return wrong + lost + [f"{name} is not in the shop: {other[name]}" for name in other.keys() - shop.keys()]


def named(records: Sequence[Record], value: Any, prefix: str = "", *, active: bool | None = None) -> Named:
    kept = [each for each in records if each["externalId"].startswith(prefix)]
    named = {each["externalId"]: value(each) for each in kept}
    assert len(named) == len(kept)
    return named if active is None else {name: each for name, each in named.items() if each[-1] is active}


def _products(products: Sequence[Record]) -> Named:
    """Those that are shown."""
    return {
        f"shop:{each['id']}": (each["upc"], each["title"], *_price(each["stockrecords"][0]), True)
        for each in products
        if each["is_public"]
    }


def _price(record: Record) -> tuple[Decimal, str]:
    return Decimal(record["price"]), record["price_currency"]


def _product(each: Record) -> Any:
    return each["sku"], each["name"], each.get("unitPrice"), each.get("currency"), each["active"]


def _customers(sides: Sides) -> Named:
    users = {
        f"shop:{each['id']}": (f"{each['first_name']} {each['last_name']}".strip() or each["email"], each["email"])
        for each in sides.users
        if each["username"] != "staff"
    }
    guests = {
        f"guests:{each['email']}": (_recipient(each), each["email"]) for each in sides.orders if not each["owner"]
    }
    return users | {name.replace("@", "%40"): value for name, value in guests.items()}


def _recipient(order: Record) -> str:
    return f"{order['shipping_address']['first_name']} {order['shipping_address']['last_name']}"


def _stock(products: Sequence[Record], partner: int, prefix: str) -> Named:
    return {
        f"{prefix}:{_id(record['url'])}": (f"shop:{each['id']}", record["partner_sku"], record["num_in_stock"])
        for each in products
        for record in each["stockrecords"]
        if record["partner"].endswith(f"/{partner}/")
    }


def _lot(names: Mapping[str, str]) -> Any:
    return lambda each: (names[each["productId"]], each["lotNumber"], each["quantity"])


def _orders(sides: Sides) -> Named:
    """Those that are not cancelled, with the lines that they have; the sum of all must be the shop's own."""
    return {
        f"shop:{each['number']}": _shop_order(each, sides) for each in sides.orders if each["status"] != "Cancelled"
    }


def _shop_order(order: Record, sides: Sides) -> Any:
    lines = sides.lines[order["number"]]
    goods = Counter(
        (f"shop:{_id(each['product'])}", each["quantity"], Decimal(each["unit_price_incl_tax"])) for each in lines
    )
    address = order["shipping_address"]
    owner = f"shop:{_id(order['owner'])}" if order["owner"] else f"guests:{order['email']}".replace("@", "%40")
    to = (_recipient(order), address["line1"], address["line4"], address["postcode"], _id(address["country"]))
    placed, status = datetime.fromisoformat(order["date_placed"]), order["status"] == "Shipped"
    return owner, order["currency"], placed, status, goods, Decimal(order["total_incl_tax"]), to


def _order(names: Mapping[str, str]) -> Any:
    def value(order: Record) -> Any:
        items = [(names[each["productId"]], each["quantity"], Decimal(each["unitPrice"])) for each in order["items"]]
        goods = Counter(each for each in items if not each[0].startswith("charges:"))
        to = tuple(order["shippingAddress"][name] for name in ("name", "line1", "city", "postalCode", "country"))
        placed, status = datetime.fromisoformat(order["placedAt"]), order.get("status") == "shipped"
        amount = sum((quantity * price for _, quantity, price in items), Decimal(0))
        return names[order["customerId"]], order["currency"], placed, status, goods, amount, to

    return value


def twice(effects: Sequence[Record]) -> list[str]:
    """Records that were created although they were there."""
    there, found = dict[str, tuple[str, str]](), []
    for each in effects:
        if each["operation"] == "delete":
            there.pop(each["id"], None)
        elif each["operation"] == "create":
            name = each["resource"], each["body"]["externalId"]
            found += [" ".join(name)] if name in there.values() else []
            there[each["id"]] = name
    return found


def _id(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]
