"""The judge of the shop's trip: compares the shop with what the 3PL has done and what the platform was told.

It reads the effects logs and the records of all three sides, and imports nothing of the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

STATUSES = {
    "UNFULFILLED": "open",
    "PARTIALLY_FULFILLED": "partially_shipped",
    "FULFILLED": "shipped",
}
INVOICED = {"PAID", "PARTIALLY_REFUNDED", "REFUNDED"}

Parcels = Mapping[tuple[str, str], Counter[str]]
"""The units by SKU of each parcel, by the shop's order and the tracking number."""
Letters = Mapping[tuple[str, str], tuple[str, str]]
"""The reason and the message of each dead letter, by stream and key."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What is at the end.

    Attributes:
        orders: The shop's.
        stock: The shop's quantity on hand by SKU and the 3PL's location.
        happened: The effects of the platform, oldest first.
        tables: The records of the 3PL, by table and id.
    """

    orders: Sequence[Any]
    stock: Mapping[tuple[str, str], int]
    happened: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]]


def faults(sides: Sides, letters: Letters) -> list[str]:
    """What is wrong; empty if nothing is."""
    held = _held(sides.happened)
    customers = {each: body["email"] for each, body in held["customer"].items()}
    compared: dict[str, tuple[Counter[Any], Counter[Any]]] = {
        "stock": (
            Counter(sides.stock),
            Counter(
                {
                    (each["sku"], each["location"]): int(each["quantity"])
                    for each in sides.tables["stock"].values()
                    if each["owner"] == "acme"
                }
            ),
        ),
        "orders of the platform": (
            Counter((f"shop:{each.legacy_resource_id}", _status(each), _numbers(each)) for each in sides.orders),
            Counter(
                (body["externalId"], body["status"], tuple(sorted(one["number"] for one in body.get("tracking", ()))))
                for body in held["order"].values()
            ),
        ),
        "invoices": (
            Counter(
                (order.email, order.total_price_set.shop_money.amount)
                for order in sides.orders
                if order.display_financial_status in INVOICED
            )
            + Counter(
                (order.email, -refund.total_refunded_set.shop_money.amount)
                for order in sides.orders
                for refund in order.refunds
            ),
            Counter((customers[body["customerId"]], _sum(body["items"])) for body in held["invoice"].values()),
        ),
    }
    return [
        f"{what}: the shop has {_some(shop - other)}, the other {_some(other - shop)}"
        for what, (shop, other) in compared.items()
        if shop != other
    ] + [*_wrong_parcels(sides, letters), *_wrong_orders(sides, letters)]


def _wrong_parcels(sides: Sides, letters: Letters) -> Iterable[str]:
    """Each parcel is at the shop once, or it is a dead letter of an order that the shop has changed too late."""
    shipped, told = _shipped(sides.tables), list(_told(sides.orders))
    shown = dict(told)
    if len(shown) != len(told):
        yield f"parcels are told twice: {_some(Counter(name for name, _ in told) - Counter(shown.keys()))}"
    refused = {tuple(key.split("|")) for stream, key in letters if stream == "plain.shipments"}
    changed = _changed(sides.orders)
    for name, units in shipped.items():
        if name in refused:
            if name in shown or name[0] not in changed:
                why = letters["plain.shipments", "|".join(name)]
                yield f"the parcel {name} is a dead letter without a reason: {why}"
        elif shown.get(name) != units:
            yield f"the parcel {name} has {units}, the shop was told {shown.get(name)}"
    if unknown := shown.keys() - shipped.keys():
        yield f"the shop was told of parcels that do not exist: {unknown}"


def _wrong_orders(sides: Sides, letters: Letters) -> Iterable[str]:
    """The 3PL has each order once, with the goods that the shop has of it, unless it was shipped before a change."""
    late = {f"erp:{key}" for stream, key in letters if stream == "erp.orders"}
    changed, received = _changed(sides.orders), _received(sides.tables)
    if others := {stream for stream, _ in letters} - {"erp.orders", "plain.shipments"}:
        yield f"records that nothing should stop are not delivered: {others}"
    for order in sides.orders:
        number = str(order.legacy_resource_id)
        found = received.pop(number, [])
        if len(found) > 1:
            yield f"the 3PL has {len(found)} orders {number}"
        wanted = Counter({line.sku: line.current_quantity for line in order.line_items if line.current_quantity})
        kept = [each for each in found if each["status"] != "cancelled"]
        if any(each["reference"] in late for each in found):
            if number not in changed or not any(line["shipped"] for line in found[0]["lines"]):
                yield f"the order {number} is a dead letter without a reason"
        elif order.cancelled_at and kept:
            yield f"the order {number} is cancelled in the shop, and the 3PL has it as {kept[0]['status']}"
        elif not order.cancelled_at and [_ordered(each) for each in kept] != [wanted]:
            yield f"the order {number} has {wanted}, the 3PL has {[_ordered(each) for each in kept]}"
    if received:
        yield f"the 3PL has orders that the shop does not know: {sorted(received)}"


def _received(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, list[Mapping[str, Any]]]:
    """The 3PL's orders from the platform, by the shop's order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for each in tables["orders"].values():
        if each["owner"] == "acme" and each["reference"].startswith("erp:"):
            found.setdefault(each["customer"]["code"].removeprefix("shop:"), []).append(each)
    return found


def _ordered(order: Mapping[str, Any]) -> Counter[str]:
    return _units(order["lines"])


def _changed(orders: Iterable[Any]) -> set[str]:
    """The orders that the merchant has changed."""
    return {str(order.legacy_resource_id) for order in orders if order.cancelled_at or order.refunds or order.edited}


def _shipped(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Parcels:
    return {
        (each["customer"]["code"].removeprefix("shop:"), each["tracking"]): _units(each["lines"])
        for each in tables["shipments"].values()
        if each["owner"] == "acme" and each["reference"].startswith("erp:")
    }


def _told(orders: Iterable[Any]) -> Iterable[tuple[tuple[str, str], Counter[str]]]:
    for order in orders:
        for one in order.fulfillments:
            (number,) = (parcel["number"] for parcel in one.tracking_info)
            units: Counter[str] = Counter()
            for line in one.fulfillment_line_items:
                units[line.line_item.sku] += line.quantity
            yield (str(order.legacy_resource_id), number), units


def _units(lines: Iterable[Mapping[str, Any]]) -> Counter[str]:
    units: Counter[str] = Counter()
    for line in lines:
        units[line["sku"]] += int(line["quantity"])
    return units


def _status(order: Any) -> str:
    return "cancelled" if order.cancelled_at else STATUSES[order.display_fulfillment_status]


def _numbers(order: Any) -> tuple[str, ...]:
    return tuple(sorted(parcel["number"] for one in order.fulfillments for parcel in one.tracking_info))


def _sum(items: Iterable[Mapping[str, Any]]) -> Decimal:
    return sum((Decimal(each["quantity"]) * Decimal(each["unitPrice"]) for each in items), Decimal(0))


def _some(records: Counter[Any]) -> list[Any]:
    return list(records.items())[:3]


def _held(happened: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The last body of each record, by resource and id; invoices that were created twice are two."""
    held: dict[str, dict[str, Mapping[str, Any]]] = {"customer": {}, "order": {}, "invoice": {}}
    for effect in happened:
        if effect["resource"] in held:
            held[effect["resource"]][effect["id"]] = effect["body"]
    return held
